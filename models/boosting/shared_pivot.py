"""AdaBoost.MH's rounds: the weights of all (document, label) pairs, and the search for a shared pivot.

The search has two stages. A *screen* computes the loss of every candidate quickly and with a known error;
every candidate that could be the best, or tied with it, is then weighed exactly: its four W are summed from
the weights themselves, each side on its own, so that a W of no documents is exactly 0 and no subtraction
loses the digits of a small one. Only the exact numbers decide, so pivots depend neither on how the screen
came about nor on the order of the labels, and a training can be resumed from its pivots alone.
"""

from __future__ import annotations

from math import fsum

import numpy as np

from models.arrays import Floats, Ints, Labels
from models.boosting.hypothesis import Rule, group_sums
from models.boosting.negative_sums import SharedNegativeSums
from models.boosting.positive_pairs import PositivePairs, positives_of
from models.boosting.screening import (
    TOTALS_ERROR,
    free_loss,
    interval,
    slack,
    sum_error,
    threshold_losses,
)
from models.boosting.stumps import Stumps
from models.boosting.variants import TIE, Variant, answers, loss, normaliser

CANCELLED = 1e-3
"""A weight found by subtraction is summed directly where less than this share is left."""

_BLOCK = 128
_NUMBERS = 1 << 20  # weights gathered at a time


class SharedPivotRounds:
    """The state of a training between rounds.

    Attributes:
        weights: (g, k) D, with the sign of Φ: negative where the label is off.
    """

    def __init__(self, stumps: Stumps, Y: Labels, variant: Variant, smoothing: float) -> None:
        """Start with equal weights."""
        g, k = Y.shape
        self._stumps = stumps
        self._variant: Variant = variant
        self._smoothing = smoothing
        positives = positives_of(Y)
        self._positive_rows = np.concatenate(positives).astype(np.int64)
        self._positive_labels: Ints = np.repeat(np.arange(k), [len(rows) for rows in positives])
        self._places = self._positive_rows * k + self._positive_labels
        self.weights = np.full((g, k), -1 / (g * k))
        self.weights.flat[self._places] *= -1
        self._listed = np.zeros(g, dtype=np.bool_)
        if stumps.by_presence:
            rows = stumps.matrix().T.tocsr()
            self._pairs = PositivePairs(rows, positives)
            self._of_pairs = np.zeros(len(self._pairs))
            self._totals_error = TOTALS_ERROR + sum_error(self._pairs.longest)
            self._negative_sums = SharedNegativeSums(rows, k)
        self._take_stock()

    def _take_stock(self) -> None:
        """The totals of the weights as they are now."""
        flat = self.weights.reshape(-1)
        self._positive_weights: Floats = flat[self._places]
        self._positive = group_sums(self._positive_labels, self._positive_weights, self.weights.shape[1])
        flat[self._places] = 0
        self._negative = -_column_sums(self.weights)
        if self._stumps.by_presence:
            self._negative_sums.renew_if_needed(lambda labels: -self.weights[:, labels])
        flat[self._places] = self._positive_weights
        self._total = fsum([*self._positive, *self._negative])
        self._weighed: dict[int, Floats] = {}

    def choose(self) -> Ints | None:
        """(1,) the candidate of the smallest Z; None where no candidate reduces Z."""
        if not len(self._stumps):
            return None
        suspects = self._suspects()
        total = np.array(self._total)
        Z = [
            float(normaliser(self._variant, np.array(self._exact_loss(candidate)), total))
            for candidate in suspects
        ]
        best = min(Z)
        if best >= (1 - TIE) * self._total:
            return None
        tied = (c for c, z in zip(suspects, Z, strict=True) if z <= best + TIE * self._total)
        return np.array([min(tied)])

    def take(self, pivots: Ints) -> tuple[Rule, Floats]:
        """Make the candidate this round's pivot.

        Args:
            pivots: (1,) as ``choose`` gives it.

        Returns:
            the weak hypothesis, and (1,) Z*, the true normaliser under it.
        """
        candidate = int(pivots[0])
        W = self._sides(candidate)
        absent, present = answers(self._variant, W, np.array(self._exact_loss(candidate)), self._smoothing)
        growth = np.exp(np.stack([-absent, absent, -present, present]))
        Z = fsum((W * growth).ravel().tolist())
        growth /= Z
        if self._stumps.lists_absent[candidate]:
            growth = growth[[2, 3, 0, 1]]
        listed = self._stumps.listed(candidate)
        self._listed[listed] = True
        held = self._listed[self._positive_rows]
        self._listed[listed] = False
        inside = self.weights[listed]
        np.minimum(inside, 0, out=inside)
        if self._stumps.by_presence:
            self._negative_sums.follow(listed, -inside, growth[1], growth[3])
        self.weights *= growth[1]
        inside *= growth[3]
        self.weights[listed] = inside
        factors = np.where(held, growth[2][self._positive_labels], growth[0][self._positive_labels])
        self.weights.reshape(-1)[self._places] = self._positive_weights * factors
        before = self._total
        self._take_stock()
        labels = np.arange(len(absent))
        pivot = np.full(len(labels), candidate)
        rule = Rule(labels, self._stumps.features[pivot], self._stumps.thresholds[pivot], absent, present)
        return rule, np.array([Z / before])

    def rest(self, labels: Ints) -> None:
        """Nothing to do: labels share their pivot, so training stops for all of them or for none."""

    def _suspects(self) -> list[int]:
        """Candidates that may be the best or tied with it."""
        weight = np.array(self._total)
        if self._stumps.by_presence:
            candidates, low, high = self._screened_by_presence()
        else:
            candidates = np.arange(len(self._stumps))
            low, high = np.zeros((2, len(candidates)))
            for _, part_low, part_high in threshold_losses(
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
        suspects: list[int] = candidates[low <= high.min() + TIE * self._total].tolist()
        return suspects

    def _screened_by_presence(self) -> tuple[Ints, Floats, Floats]:
        """Candidates near the best, and bounds of their losses."""
        sums = self._negative_sums
        losses = sums.free_losses(self._variant, self._positive, self._negative)
        for block in self._pairs.blocks:
            W = block.weights(self._positive_weights, sums.of_pairs(block), self._positive, self._negative)
            self._of_pairs[block.where] = W[2]
            extra = loss(self._variant, W)
            extra -= free_loss(self._variant, self._positive[block.labels], W[1])
            np.add.at(losses, block.candidates, extra)
        weight = np.array(self._total)
        error = sums.error + self._totals_error * (self._positive + self._negative)
        Z = normaliser(self._variant, np.maximum(losses, 0), weight)
        reach = 2 * slack(error.sum(), weight) + TIE * weight
        near = np.flatnonzero(Z.min() + reach >= Z)
        place = np.full(len(losses), -1)
        place[near] = np.arange(len(near))
        positive = np.zeros((len(near), len(error)))
        for block in self._pairs.blocks:
            theirs = np.flatnonzero(place[block.candidates] >= 0)
            held = self._of_pairs[block.where][theirs]
            positive[place[block.candidates[theirs]], block.labels[theirs]] = held
        negative = sums.of(near)
        near_W = np.stack([self._positive - positive, self._negative - negative, positive, negative])
        low, high = interval(self._variant, np.maximum(near_W, 0), error)
        return near, low.sum(axis=1), high.sum(axis=1)

    def _exact_loss(self, candidate: int) -> float:
        """Loss of a candidate over all labels, the same for any order of them."""
        return fsum(loss(self._variant, self._sides(candidate)).tolist())

    def _sides(self, candidate: int) -> Floats:
        """(4, k) the W of a candidate, exact up to the rounding of a sum of positive numbers."""
        if candidate not in self._weighed:
            self._weighed[candidate] = self._weigh(candidate)
        return self._weighed[candidate]

    def _weigh(self, candidate: int) -> Floats:
        k = self.weights.shape[1]
        listed = self._stumps.listed(candidate)
        self._listed[listed] = True
        held = self._listed[self._positive_rows]
        inside = group_sums(self._positive_labels, np.where(held, self._positive_weights, 0.0), k)
        outside = group_sums(self._positive_labels, np.where(held, 0.0, self._positive_weights), k)
        negative_inside = np.zeros(k)
        height = max(1, _NUMBERS // k)
        for first in range(0, len(listed), height):
            piece = self.weights[listed[first : first + height]]
            negative_inside -= _column_sums(np.minimum(piece, 0, out=piece))
        negative_outside = self._negative - negative_inside
        lost = np.flatnonzero(negative_outside < CANCELLED * self._negative)
        if len(lost):
            unlisted = np.flatnonzero(~self._listed)
            for label in lost.tolist():
                negative_outside[label] = -np.minimum(self.weights[unlisted, label], 0).sum()
        self._listed[listed] = False
        sides = np.stack([outside, negative_outside, inside, negative_inside])
        return sides[[2, 3, 0, 1]] if self._stumps.lists_absent[candidate] else sides


def _column_sums(weights: Floats) -> Floats:
    """Column sums in two levels, which keeps rounding small; each column's is the same wherever it stands."""
    whole = len(weights) - len(weights) % _BLOCK
    blocks = weights[:whole].reshape(-1, _BLOCK, weights.shape[1]).sum(axis=1)
    return np.asarray(blocks.sum(axis=0) + weights[whole:].sum(axis=0))
