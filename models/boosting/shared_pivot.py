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
from models.boosting.hypothesis import Rule
from models.boosting.negative_sums import SharedNegativeSums
from models.boosting.screening import (
    PositivePairs,
    free_loss,
    positives_of,
    slack,
    sum_error,
    threshold_losses,
)
from models.boosting.stumps import Stumps
from models.boosting.variants import TIE, Variant, answers, loss, normaliser

CANCELLED = 1e-3
"""A weight found by subtraction is summed directly where less than this share is left."""

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
            self._negative_sums = SharedNegativeSums(rows, k)
        self._take_stock()

    def _take_stock(self) -> None:
        """The totals of the weights as they are now."""
        flat = self.weights.reshape(-1)
        self._positive_weights: Floats = flat[self._places]
        self._positive = np.bincount(
            self._positive_labels, self._positive_weights, minlength=self.weights.shape[1]
        )
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
        losses, error = self._screened()
        weight = np.array(self._total)
        Z = normaliser(self._variant, np.maximum(losses, 0), weight)
        reach = 2 * slack(error, weight) + TIE * weight
        return np.flatnonzero(Z.min() + reach >= Z).tolist()

    def _screened(self) -> tuple[Floats, Floats]:
        """(n,) losses over all labels, and the summed error of the W behind them."""
        if not self._stumps.by_presence:
            losses = np.zeros(len(self._stumps))
            error = np.zeros(self.weights.shape[1])
            for block, part, part_error in threshold_losses(
                self._stumps,
                lambda block: self.weights[:, block],
                self._positive,
                self._negative,
                self._variant,
            ):
                losses += part.sum(axis=1)
                error[block] = part_error
        else:
            pairs = self._pairs
            losses = self._negative_sums.free_losses(self._variant, self._positive, self._negative)
            W = pairs.weights(
                self._positive_weights, self._negative_sums.of_pairs(pairs), self._positive, self._negative
            )
            extra = loss(self._variant, W)
            extra -= free_loss(self._variant, self._positive[pairs.labels], W[1])
            losses += np.bincount(pairs.candidates, extra, minlength=len(losses))
            error = self._negative_sums.error
        return losses, np.array(error.sum() + sum_error(len(self.weights)) * self._total)

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
        inside = np.bincount(self._positive_labels, np.where(held, self._positive_weights, 0.0), minlength=k)
        outside = np.bincount(self._positive_labels, np.where(held, 0.0, self._positive_weights), minlength=k)
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
    if not len(weights):
        return np.zeros(weights.shape[1])
    return np.asarray(np.add.reduceat(weights, np.arange(0, len(weights), 128), axis=0).sum(axis=0))
