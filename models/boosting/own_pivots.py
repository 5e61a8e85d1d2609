"""MP-Boost's rounds: each label has weights of its own, and searches a pivot of its own (algorithm 2).

The search screens quickly and decides exactly, as in ``shared_pivot.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints, Labels
from models.boosting.hypothesis import Rule
from models.boosting.negative_sums import OwnNegativeSums
from models.boosting.screening import (
    PositivePairs,
    free_loss,
    positives_of,
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
        self._take_stock()

    def _take_stock(self) -> None:
        """The totals of the weights as they are now."""
        flat = self.weights.reshape(-1)
        self._positive_weights: Floats = flat[self._places]
        self._positive = np.bincount(
            self._positive_labels, self._positive_weights, minlength=len(self.weights)
        )
        flat[self._places] = 0
        self._negative = -self.weights.sum(axis=1)
        if self._stumps.by_presence:
            self._negative_sums.renew_if_needed(self.learning, lambda labels: -self.weights[labels])
        flat[self._places] = self._positive_weights
        self._weight = self._positive + self._negative

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
        for place, (label, suspect) in enumerate(zip(labels.tolist(), suspects.tolist(), strict=True)):
            W[:, place] = self._weigh(label, suspect)
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
            W[:, place] = self._weigh(label, int(pivots[label]))
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
        row = self.weights[label]
        listed = self._stumps.listed(candidate)
        rows = self._positives[label]
        mine = self._positive_weights[self._starts[label] : self._starts[label + 1]]
        self._listed[listed] = True
        held = self._listed[rows]
        self._listed[listed] = False
        inside = np.minimum(row[listed], 0)
        if self._stumps.by_presence:
            self._negative_sums.follow(label, listed, -inside, unlisted_negative, listed_negative)
        row *= unlisted_negative
        row[listed] = inside * listed_negative
        row[rows] = mine * np.where(held, listed_positive, unlisted_positive)

    def _suspects(self) -> tuple[Ints, Ints]:
        """Labels, ascending, and candidates that may be a label's best or tied with it."""
        found = self._suspects_by_presence() if self._stumps.by_presence else self._suspects_by_threshold()
        none = np.zeros(0, dtype=np.int64)
        labels = np.concatenate([none, *(part[0] for part in found)])
        candidates = np.concatenate([none, *(part[1] for part in found)])
        order = np.lexsort((candidates, labels))
        return labels[order], candidates[order]

    def _reach(self, error: Floats, weight: Floats) -> Floats:
        error = error + sum_error(self.weights.shape[1]) * weight
        return 2 * slack(error, weight) + TIE * weight

    def _suspects_by_presence(self) -> list[tuple[Ints, Ints]]:
        pairs, sums = self._pairs, self._negative_sums
        W = pairs.weights(self._positive_weights, sums.of_pairs(), self._positive, self._negative)
        Z = normaliser(self._variant, loss(self._variant, W), self._weight[pairs.labels])
        best = np.full(len(self.weights), np.inf)
        filled = np.flatnonzero(np.diff(pairs.starts))
        if len(filled):
            best[filled] = np.minimum.reduceat(Z, pairs.starts[filled])
        largest = sums.largest_free()
        best_free = np.full(len(self.weights), np.inf)
        some = largest > -np.inf
        best_free[some] = self._free_normaliser(
            self._positive[some], self._negative[some], self._weight[some], largest[some]
        )
        limit = np.minimum(best, best_free) + self._reach(self._negative_sums.error, self._weight)
        within = np.flatnonzero(limit[pairs.labels] >= Z)
        still = np.zeros(len(self.weights), dtype=np.bool_)
        still[self.learning] = True
        within = within[still[pairs.labels[within]]]
        found = [(pairs.labels[within], pairs.candidates[within].astype(np.int64))]
        for label in np.flatnonzero((best_free <= limit) & some & still).tolist():
            free_Z = self._free_normaliser(
                self._positive[label], self._negative[label], self._weight[label], sums.free(label)
            )
            free = np.flatnonzero(free_Z <= limit[label])
            found.append((np.full(len(free), label), free))
        return found

    def _free_normaliser(self, positive: Floats, negative: Floats, weight: Floats, held: Floats) -> Floats:
        """Z of candidates that list negatives of weight ``held``, or ∞ where that is −∞, and no positive."""
        absent = np.maximum(negative - held, 0)
        absent_or_none = np.where(np.isinf(absent), 0, absent)
        Z = normaliser(self._variant, free_loss(self._variant, positive, absent_or_none), weight)
        return np.where(np.isinf(absent), np.inf, Z)

    def _suspects_by_threshold(self) -> list[tuple[Ints, Ints]]:
        found: list[tuple[Ints, Ints]] = []
        still = set(self.learning.tolist())
        for block, losses, error in threshold_losses(
            self._stumps, lambda block: self.weights[block].T, self._positive, self._negative, self._variant
        ):
            weight = self._weight[block]
            Z = normaliser(self._variant, np.maximum(losses, 0), weight)
            reach = self._reach(error, weight)
            for place, label in enumerate(range(block.start, block.stop)):
                if label not in still:
                    continue
                own = Z[:, place]
                if self._allowed is not None:
                    mine = self._allowed[label].candidates
                    if len(mine):
                        near = mine[own[mine] <= own[mine].min() + reach[place]]
                        found.append((np.full(len(near), label), near))
                else:
                    near = np.flatnonzero(own <= own.min() + reach[place])
                    found.append((np.full(len(near), label), near))
        return found

    def _weigh(self, label: int, candidate: int) -> tuple[float, float, float, float]:
        """The four W of a candidate for a label, exact up to the rounding of a sum of positive numbers."""
        row = self.weights[label]
        listed = self._stumps.listed(candidate)
        mine = self._positive_weights[self._starts[label] : self._starts[label + 1]]
        self._listed[listed] = True
        held = self._listed[self._positives[label]]
        inside = float(mine[held].sum())
        outside = float(mine[~held].sum())
        negative_inside = -float(np.minimum(row[listed], 0).sum())
        negative_outside = float(self._negative[label]) - negative_inside
        if negative_outside < CANCELLED * self._negative[label]:
            negative_outside = -float(np.minimum(row[~self._listed], 0).sum())
        self._listed[listed] = False
        if self._stumps.lists_absent[candidate]:
            return inside, negative_inside, outside, negative_outside
        return outside, negative_outside, inside, negative_inside
