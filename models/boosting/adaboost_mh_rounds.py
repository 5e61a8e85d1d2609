"""The rounds of AdaBoost.MH: the weights of all (document, label) pairs, and the search for a shared pivot.

The search filters, then refines. The filter bounds the loss of every candidate quickly. Every candidate that
can be the best or tie with it then gets exact weights: its four W are sums of the weights themselves, each
side separately. So a W of no documents is exactly 0, and no subtraction loses the digits of a small W. Only
the exact numbers decide. So pivots depend neither on the filter nor on the order of the labels, and a
training can resume from its pivots alone.
"""

from __future__ import annotations

from math import fsum

import numpy as np

from models.arrays import Floats, Ints, Labels
from models.boosting.hypothesis import WeakHypothesis, group_sums
from models.boosting.loss_bounds import (
    CANCELLED,
    TOTALS_ERROR,
    loss_bounds,
    negatives_only_loss,
    normaliser_error,
    threshold_loss_bounds,
)
from models.boosting.negative_sums import SharedNegativeSums
from models.boosting.positive_pairs import positives_of
from models.boosting.rounds import Rounds, growth_of, labels_of
from models.boosting.stumps import Stumps
from models.boosting.variants import TIE, BoostingVariant, loss, normaliser, predictions

_BLOCK_ROWS = 128
_BUFFER_SIZE = 1 << 20  # weights gathered at a time


class AdaBoostMHRounds(Rounds):
    """The state of a training between two rounds.

    Attributes:
        weights: (g, k) D, with the sign of Φ: negative if the label is irrelevant.
    """

    def __init__(
        self,
        stumps: Stumps,
        Y: Labels,
        variant: BoostingVariant,
        smoothing: float,
        *,
        shares: Floats | None = None,
    ) -> None:
        """Start with equal weights, or with the (g,) shares of the examples."""
        g, k = Y.shape
        positives = positives_of(Y)
        self._positive_rows = np.concatenate(positives).astype(np.int64)
        places = self._positive_rows * k + labels_of(positives)
        weights = np.full((g, k), 1 / (g * k))
        if shares is not None:
            weights = np.repeat(shares[:, np.newaxis] / k, k, axis=1)
        super().__init__(stumps, variant, smoothing, positives, weights, places)
        if stumps.by_presence:
            self._of_pairs = np.zeros(len(self._pairs))
            self._negative_sums = SharedNegativeSums(self._rows_of_stumps, k)
        self._update_totals()

    def _sum_negatives(self) -> Floats:
        if self._stumps.by_presence:
            self._negative_sums.recompute_if_needed(lambda labels: -self.weights[:, labels])
        return -_column_sums(self.weights)

    def _update_totals(self) -> None:
        super()._update_totals()
        self._total = fsum([*self._positive, *self._negative])
        self._exact_weights: dict[int, Floats] = {}

    def choose_pivots(self) -> Ints | None:
        """(1,) the candidate with the smallest Z; None if no candidate reduces Z."""
        if not len(self._stumps):
            return None
        near_best = self._near_best()
        total = np.array(self._total)
        Z = [
            float(normaliser(self._variant, np.array(self._exact_loss(candidate)), total))
            for candidate in near_best
        ]
        best = min(Z)
        if best >= (1 - TIE) * self._total:
            return None
        tied = (c for c, z in zip(near_best, Z, strict=True) if z <= best + TIE * self._total)
        return np.array([min(tied)])

    def boost(self, pivots: Ints) -> tuple[WeakHypothesis, Floats]:
        """Take a round with this candidate as pivot.

        Args:
            pivots: (1,) from ``choose_pivots``.

        Returns:
            The weak hypothesis, and (1,) its true normaliser Z*.
        """
        candidate = int(pivots[0])
        W = self._weights_of(candidate)
        absent, present = predictions(
            self._variant, W, np.array(self._exact_loss(candidate)), self._smoothing
        )
        growth = growth_of(absent, present)
        Z = fsum((W * growth).ravel().tolist())
        growth /= Z
        if self._stumps.lists_absent[candidate]:
            growth = growth[[2, 3, 0, 1]]
        listed = self._stumps.listed(candidate)
        self._listed[listed] = True
        positive_listed = self._listed[self._positive_rows]
        self._listed[listed] = False
        inside = self.weights[listed]
        np.minimum(inside, 0, out=inside)
        if self._stumps.by_presence:
            self._negative_sums.update(listed, -inside, growth[1], growth[3])
        self.weights *= growth[1]
        inside *= growth[3]
        self.weights[listed] = inside
        factors = np.where(
            positive_listed, growth[2][self._positive_labels], growth[0][self._positive_labels]
        )
        self.weights.reshape(-1)[self._places] = self._positive_weights * factors
        before = self._total
        self._update_totals()
        labels = np.arange(len(absent))
        pivot = np.full(len(labels), candidate)
        hypothesis = WeakHypothesis(
            labels, self._stumps.features[pivot], self._stumps.thresholds[pivot], absent, present
        )
        return hypothesis, np.array([Z / before])

    def stop(self, labels: Ints) -> None:
        """Do nothing: labels share their pivot, so training stops for all of them or for none."""

    def _near_best(self) -> list[int]:
        """The candidates that can be the best or tie with it."""
        weight = np.array(self._total)
        if self._stumps.by_presence:
            candidates, low, high = self._presence_bounds()
        else:
            candidates = np.arange(len(self._stumps))
            low, high = np.zeros((2, len(candidates)))
            for _, part_low, part_high in threshold_loss_bounds(
                self._stumps,
                lambda block: self.weights[:, block],
                self._positive,
                self._negative,
                self._variant,
            ):
                low += part_low.sum(axis=1)
                high += part_high.sum(axis=1)
        rounding = TOTALS_ERROR * self._total
        low = normaliser(self._variant, np.maximum(low - rounding, 0), weight)
        high = normaliser(self._variant, high + rounding, weight)
        near_best: list[int] = candidates[low <= high.min() + TIE * self._total].tolist()
        return near_best

    def _presence_bounds(self) -> tuple[Ints, Floats, Floats]:
        """The candidates near the best, and lower and upper bounds of their losses."""
        sums = self._negative_sums
        losses = sums.negatives_only_losses(self._variant, self._positive, self._negative)
        for block in self._pairs.blocks:
            W = block.weights(self._positive_weights, sums.of_pairs(block), self._positive, self._negative)
            self._of_pairs[block.where] = W[2]
            extra = loss(self._variant, W)
            extra -= negatives_only_loss(self._variant, self._positive[block.labels], W[1])
            np.add.at(losses, block.candidates, extra)
        weight = np.array(self._total)
        error = sums.error + self._totals_error * (self._positive + self._negative)
        Z = normaliser(self._variant, np.maximum(losses, 0), weight)
        margin = 2 * normaliser_error(error.sum(), weight) + TIE * weight
        near = np.flatnonzero(Z.min() + margin >= Z)
        place = np.full(len(losses), -1)
        place[near] = np.arange(len(near))
        positive = np.zeros((len(near), len(error)))
        for block in self._pairs.blocks:
            pairs = np.flatnonzero(place[block.candidates] >= 0)
            rows = place[block.candidates[pairs]]
            positive[rows, block.labels[pairs]] = self._of_pairs[block.where][pairs]
        negative = sums.of(near)
        near_W = np.stack([self._positive - positive, self._negative - negative, positive, negative])
        low, high = loss_bounds(self._variant, np.maximum(near_W, 0), error)
        return near, low.sum(axis=1), high.sum(axis=1)

    def _exact_loss(self, candidate: int) -> float:
        """Loss of a candidate over all labels; it does not depend on their order."""
        return fsum(loss(self._variant, self._weights_of(candidate)).tolist())

    def _weights_of(self, candidate: int) -> Floats:
        """(4, k) the W of a candidate, exact up to the rounding of a sum of positive numbers."""
        if candidate not in self._exact_weights:
            self._exact_weights[candidate] = self._sum_weights(candidate)
        return self._exact_weights[candidate]

    def _sum_weights(self, candidate: int) -> Floats:
        k = self.weights.shape[1]
        listed = self._stumps.listed(candidate)
        self._listed[listed] = True
        positive_listed = self._listed[self._positive_rows]
        inside = group_sums(self._positive_labels, np.where(positive_listed, self._positive_weights, 0.0), k)
        outside = group_sums(self._positive_labels, np.where(positive_listed, 0.0, self._positive_weights), k)
        negative_inside = np.zeros(k)
        height = max(1, _BUFFER_SIZE // k)
        for first in range(0, len(listed), height):
            rows = self.weights[listed[first : first + height]]
            negative_inside -= _column_sums(np.minimum(rows, 0, out=rows))
        negative_outside = self._negative - negative_inside
        cancelled = np.flatnonzero(negative_outside < CANCELLED * self._negative)
        if len(cancelled):
            unlisted = np.flatnonzero(~self._listed)
            for label in cancelled.tolist():
                negative_outside[label] = -np.minimum(self.weights[unlisted, label], 0).sum()
        self._listed[listed] = False
        sides = np.stack([outside, negative_outside, inside, negative_inside])
        return sides[[2, 3, 0, 1]] if self._stumps.lists_absent[candidate] else sides


def _column_sums(weights: Floats) -> Floats:
    """Column sums in two levels, so that rounding errors are small.

    The sum of a column does not depend on the column's position.
    """
    whole = len(weights) - len(weights) % _BLOCK_ROWS
    blocks = weights[:whole].reshape(-1, _BLOCK_ROWS, weights.shape[1]).sum(axis=1)
    return np.asarray(blocks.sum(axis=0) + weights[whole:].sum(axis=0))
