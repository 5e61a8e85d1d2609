"""MP-Boost's rounds: each label has weights of its own, and searches a pivot of its own (algorithm 2).

The search screens quickly and decides exactly, as in ``shared_pivot.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints, Labels
from models.boosting.hypothesis import Rule, group_sums
from models.boosting.negative_sums import OwnNegativeSums
from models.boosting.positive_pairs import PositivePairs, positives_of
from models.boosting.screening import (
    TOTALS_ERROR,
    free_loss,
    free_reach,
    interval,
    slack,
    sum_error,
    threshold_losses,
)
from models.boosting.shared_pivot import CANCELLED
from models.boosting.stumps import Stumps
from models.boosting.variants import TIE, Variant, answers, loss, normaliser


@dataclass(frozen=True)
class Allowed:
    """What local feature selection leaves to one label.

    Attributes:
        candidates: candidates that the label may use, ascending.
        features: for each the first of its features that the label may use.
    """

    candidates: Ints
    features: Ints


@dataclass(frozen=True)
class _Screened:
    """Some labels' candidates, and bounds of their losses."""

    labels: Ints
    candidates: Ints
    low: Floats
    high: Floats


@dataclass(frozen=True)
class _Weighed:
    """A candidate weighed for a label.

    Attributes:
        W: the four W.
        negatives: weights of the listed documents, 0 where a document is positive.
    """

    W: tuple[float, float, float, float]
    negatives: Floats


class OwnPivotsRounds:
    """The state of a training between rounds.

    Attributes:
        weights: (k, g) each label's D, with the sign of Φ: negative where the label is off.
        learning: labels that still learn, ascending.
    """

    def __init__(
        self,
        stumps: Stumps,
        Y: Labels,
        variant: Variant,
        smoothing: float,
        allowed: Sequence[Allowed] | None = None,
    ) -> None:
        """Start with equal weights."""
        g, k = Y.shape
        self._stumps = stumps
        self._variant: Variant = variant
        self._smoothing = smoothing
        self._allowed = allowed
        self._positives = [rows.astype(np.int64) for rows in positives_of(Y)]
        self._starts = np.concatenate([[0], np.cumsum([len(rows) for rows in self._positives])])
        # Every candidate separates a label that is off (or on) everywhere; only abstaining pays for the
        # absent.
        n_positive = np.diff(self._starts)
        self._one_sided = ((n_positive == 0) | (n_positive == g)) & (variant != "real_abstaining")
        self._positive_labels: Ints = np.repeat(np.arange(k), np.diff(self._starts))
        self._places = np.concatenate(self._positives) + self._positive_labels * g
        self.weights = np.full((k, g), -1 / g)
        self.weights.flat[self._places] *= -1
        self.learning: Ints = np.arange(k) if len(stumps) else np.arange(0)
        self._listed = np.zeros(g, dtype=np.bool_)
        if stumps.by_presence:
            rows = stumps.matrix().T.tocsr()
            barred = None
            if allowed is not None:
                barred = [np.setdiff1d(np.arange(len(stumps)), own.candidates) for own in allowed]
            self._pairs = PositivePairs(rows, self._positives, barred)
            self._negative_sums = OwnNegativeSums(rows, self._pairs, barred)
            self._totals_error = TOTALS_ERROR + sum_error(self._pairs.longest)
        self._take_stock()

    def _take_stock(self) -> None:
        """The totals of the weights as they are now."""
        flat = self.weights.reshape(-1)
        self._positive_weights: Floats = flat[self._places]
        self._positive = group_sums(self._positive_labels, self._positive_weights, len(self.weights))
        flat[self._places] = 0
        self._negative = -self.weights.sum(axis=1)
        if self._stumps.by_presence:
            self._negative_sums.renew_if_needed(self.learning, lambda labels: -self.weights[labels])
        flat[self._places] = self._positive_weights
        self._weight = self._positive + self._negative
        self._weighed: dict[tuple[int, int], _Weighed] = {}

    def choose(self) -> Ints | None:
        """(k,) each label's candidate of the smallest Z, -1 for a label that has stopped learning.

        A label whose Z no candidate reduces stops here; None where none goes on.
        """
        chosen = np.full(len(self.weights), -1)
        if len(self.learning) == 0:
            return None
        labels, suspects = self._suspects()
        if len(labels) == 0:
            return None
        W = np.empty((4, len(labels)))
        for place, search in enumerate(zip(labels.tolist(), suspects.tolist(), strict=True)):
            W[:, place] = self._weigh(*search).W
        weight = self._weight[labels]
        Z = normaliser(self._variant, loss(self._variant, W), weight)
        first = np.flatnonzero(np.diff(labels, prepend=-1))
        searched = labels[first]
        best = np.minimum.reduceat(Z, first)
        tied = np.repeat(best, np.diff(np.append(first, len(labels)))) + TIE * weight >= Z
        order = np.where(tied, self._order(labels, suspects), np.iinfo(np.int64).max)
        for begin, end in zip(first, np.append(first[1:], len(labels)), strict=True):
            chosen[labels[begin]] = suspects[begin + int(order[begin:end].argmin())]
        stops = searched[best >= (1 - TIE) * self._weight[searched]]
        chosen[stops] = -1
        return chosen if (chosen >= 0).any() else None

    def rest(self, labels: Ints) -> None:
        """Let labels learn no more."""
        self.learning = np.setdiff1d(self.learning, labels)

    def feature_of(self, label: int, candidate: int) -> int:
        """The feature that a candidate means to a label."""
        if self._allowed is None:
            return int(self._stumps.features[candidate])
        own = self._allowed[label]
        return int(own.features[np.searchsorted(own.candidates, candidate)])

    def _order(self, labels: Ints, candidates: Ints) -> Ints:
        """What orders a label's candidates by feature and threshold."""
        if self._allowed is None or not self._stumps.by_presence:
            return candidates
        return np.array(
            [self.feature_of(*pair) for pair in zip(labels.tolist(), candidates.tolist(), strict=True)]
        )

    def take(self, pivots: Ints) -> tuple[Rule, Floats]:
        """Make the candidates this round's pivots.

        Args:
            pivots: (k,) as ``choose`` gives them.

        Returns:
            the weak hypothesis, and for each of its labels Z*, the true normaliser under it.
        """
        labels = self.learning = np.flatnonzero(pivots >= 0)
        W = np.empty((4, len(labels)))
        for place, label in enumerate(labels.tolist()):
            W[:, place] = self._weigh(label, int(pivots[label])).W
        absent, present = answers(self._variant, W, loss(self._variant, W), self._smoothing)
        growth = np.exp(np.stack([-absent, absent, -present, present]))
        Z = (W * growth).sum(axis=0)
        growth /= Z
        for place, label in enumerate(labels.tolist()):
            self._update(label, int(pivots[label]), growth[:, place].tolist())
        weight = self._weight[labels]
        self._take_stock()
        features = [self.feature_of(label, int(pivots[label])) for label in labels.tolist()]
        thresholds = self._stumps.thresholds[pivots[labels]]
        return Rule(labels, np.array(features, dtype=np.int64), thresholds, absent, present), Z / weight

    def _update(self, label: int, candidate: int, growth: list[float]) -> None:
        """Multiply a label's weights by the factors of the four sides."""
        unlisted_positive, unlisted_negative, listed_positive, listed_negative = growth
        if self._stumps.lists_absent[candidate]:
            listed_positive, unlisted_positive = unlisted_positive, listed_positive
            listed_negative, unlisted_negative = unlisted_negative, listed_negative
        weighed = self._weigh(label, candidate)
        listed = self._stumps.listed(candidate)
        mine = self._positive_weights[self._starts[label] : self._starts[label + 1]]
        if self._stumps.by_presence:
            self._negative_sums.follow(
                label, candidate, listed, weighed.negatives, unlisted_negative, listed_negative
            )
        row, rows = self.weights[label], self._positives[label]
        row *= unlisted_negative
        row[listed] = weighed.negatives * -listed_negative
        self._listed[listed] = True
        row[rows] = mine * np.where(self._listed[rows], listed_positive, unlisted_positive)
        self._listed[listed] = False

    def _suspects(self) -> tuple[Ints, Ints]:
        """Labels, ascending, and candidates that may be a label's best or tied with it."""
        found = self._screened_by_presence() if self._stumps.by_presence else self._screened_by_threshold()
        if not found:
            return np.arange(0), np.arange(0)
        labels = np.concatenate([part.labels for part in found])
        candidates = np.concatenate([part.candidates for part in found])
        weight = self._weight[labels]
        low = normaliser(self._variant, np.concatenate([part.low for part in found]), weight)
        high = normaliser(self._variant, np.concatenate([part.high for part in found]), weight)
        best = np.full(len(self.weights), np.inf)
        np.minimum.at(best, labels, high)
        keep = np.flatnonzero(low <= best[labels] + TIE * weight)
        keep = keep[np.lexsort((candidates[keep], labels[keep]))]
        if self._allowed is None:
            # Where Z is 0 for every candidate the first wins; to weigh the others would change nothing.
            first = np.diff(labels[keep], prepend=-1) > 0
            keep = keep[first | ~self._one_sided[labels[keep]]]
        return labels[keep], candidates[keep]

    def _screened_by_presence(self) -> list[_Screened]:
        sums = self._negative_sums
        best_free = self._best_free()
        error = sums.error + self._totals_error * self._weight
        reach = 2 * slack(error, self._weight) + TIE * self._weight
        resting = np.ones(len(self.weights), dtype=np.bool_)
        resting[self.learning] = False
        limit = best_free + reach
        limit[np.isinf(limit)] = -1  # a label without such a candidate
        found: list[_Screened] = []
        for block in self._pairs.blocks:
            labels, filled = block.labels, block.filled
            W = block.weights(self._positive_weights, sums.of_pairs(block), self._positive, self._negative)
            Z = normaliser(self._variant, loss(self._variant, W), self._weight[labels])
            limit[filled] = (
                np.minimum(np.minimum.reduceat(Z, block.starts), best_free[filled]) + reach[filled]
            )
            limit[resting] = -1
            near = np.flatnonzero(limit[labels] >= Z)
            low, high = interval(self._variant, W[:, near], error[labels[near]])
            found.append(_Screened(labels[near], block.candidates[near], low, high))
        limit[resting] = -1
        reach = free_reach(self._variant, self._positive, self._negative, self._weight, limit)
        for label in np.flatnonzero(best_free <= limit).tolist():
            free, held = sums.free_above(label, reach[label])
            positive, absent = self._positive[label], np.maximum(self._negative[label] - held, 0)
            low = free_loss(
                self._variant, np.maximum(positive - error[label], 0), np.maximum(absent - error[label], 0)
            )
            high = free_loss(self._variant, positive + error[label], absent + error[label])
            found.append(_Screened(np.full(len(free), label), free, low, high))
        return found

    def _best_free(self) -> Floats:
        """(k,) the smallest Z of the candidates that list no positive document; ∞ where there are none."""
        held = self._negative_sums.largest_free()
        some = held > -np.inf
        absent = np.maximum(self._negative - np.where(some, held, 0), 0)
        Z = normaliser(self._variant, free_loss(self._variant, self._positive, absent), self._weight)
        return np.where(some, Z, np.inf)

    def _screened_by_threshold(self) -> list[_Screened]:
        found: list[_Screened] = []
        still = set(self.learning.tolist())
        for block, low, high in threshold_losses(
            self._stumps, lambda block: self.weights[block].T, self._positive, self._negative, self._variant
        ):
            for place, label in enumerate(range(block.start, block.stop)):
                if label not in still:
                    continue
                mine = np.arange(len(low)) if self._allowed is None else self._allowed[label].candidates
                if not len(mine):
                    continue
                reach = high[mine, place].min() + TIE * self._weight[label]
                near = mine[low[mine, place] <= reach] if self._variant != "discrete" else mine
                found.append(_Screened(np.full(len(near), label), near, low[near, place], high[near, place]))
        return found

    def _weigh(self, label: int, candidate: int) -> _Weighed:
        """The four W of a candidate for a label, exact up to the rounding of a sum of positive numbers."""
        known = self._weighed.get((label, candidate))
        if known is not None:
            return known
        row = self.weights[label]
        listed = self._stumps.listed(candidate)
        inside = row[listed]
        negatives = np.maximum(-inside, 0)
        positive_inside = float(np.add.reduce(inside + negatives))
        negative_inside = float(np.add.reduce(negatives))
        positive, negative = float(self._positive[label]), float(self._negative[label])
        positive_outside, negative_outside = positive - positive_inside, negative - negative_inside
        positives_lost = positive_outside < CANCELLED * positive
        negatives_lost = negative_outside < CANCELLED * negative
        if positives_lost or negatives_lost:
            self._listed[listed] = True
            if positives_lost:
                rows = self._positives[label]
                positive_outside = float(np.add.reduce(row[rows[~self._listed[rows]]]))
            if negatives_lost:
                negative_outside = float(np.add.reduce(np.maximum(-row[~self._listed], 0)))
            self._listed[listed] = False
        W = positive_outside, negative_outside, positive_inside, negative_inside
        if self._stumps.lists_absent[candidate]:
            W = positive_inside, negative_inside, positive_outside, negative_outside
        weighed = self._weighed[label, candidate] = _Weighed(W, negatives)
        return weighed
