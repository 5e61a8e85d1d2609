"""The rounds of MP-Boost: each label has its own weights and searches for its own pivot (algorithm 2).

The search filters with quick bounds and decides with exact weights, as in ``adaboost_mh_rounds.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints, Labels
from models.boosting.hypothesis import WeakHypothesis
from models.boosting.loss_bounds import (
    CANCELLED,
    loss_bounds,
    negatives_only_loss,
    normaliser_error,
    required_negatives,
    threshold_loss_bounds,
)
from models.boosting.negative_sums import PerLabelNegativeSums
from models.boosting.positive_pairs import positives_of
from models.boosting.rounds import Rounds, growth_of, labels_of
from models.boosting.stumps import Stumps
from models.boosting.variants import TIE, BoostingVariant, loss, normaliser, predictions


@dataclass(frozen=True)
class AllowedCandidates:
    """The candidates of one label under local feature selection.

    Attributes:
        candidates: candidates that the label may use, ascending.
        features: for each candidate, the first of its features that the label may use.
    """

    candidates: Ints
    features: Ints


@dataclass(frozen=True)
class _CandidateBounds:
    """Candidates of some labels, and lower and upper bounds of their losses."""

    labels: Ints
    candidates: Ints
    low: Floats
    high: Floats


@dataclass(frozen=True)
class _ExactWeights:
    """The exact weights of a candidate for a label.

    Attributes:
        W: the four W.
        negatives: weights of the listed documents, 0 if a document is positive.
    """

    W: tuple[float, float, float, float]
    negatives: Floats


class MPBoostRounds(Rounds):
    """The state of a training between two rounds.

    Attributes:
        weights: (k, g) D of each label, with the sign of Φ: negative if the label is irrelevant.
        learning: labels that are still learning, ascending.
    """

    def __init__(
        self,
        stumps: Stumps,
        Y: Labels,
        variant: BoostingVariant,
        smoothing: float,
        allowed: Sequence[AllowedCandidates] | None = None,
        *,
        shares: Floats | None = None,
    ) -> None:
        """Start with equal weights, or with the (g,) shares of the examples."""
        g, k = Y.shape
        self._allowed = allowed
        self._positives = [rows.astype(np.int64) for rows in positives_of(Y)]
        self._starts = np.concatenate([[0], np.cumsum([len(rows) for rows in self._positives])])
        # If a label is relevant to all examples or to none, Z is 0 for every candidate, except in the variant
        # that abstains, whose Z includes the weight of the absent side.
        n_positive = np.diff(self._starts)
        self._one_sided = ((n_positive == 0) | (n_positive == g)) & (variant != "real_abstaining")
        places = np.concatenate(self._positives) + labels_of(self._positives) * g
        weights = np.full((k, g), 1 / g) if shares is None else np.tile(shares, (k, 1))
        excluded = None
        if allowed is not None:
            excluded = [np.setdiff1d(np.arange(len(stumps)), own.candidates) for own in allowed]
        super().__init__(stumps, variant, smoothing, self._positives, weights, places, excluded=excluded)
        self.learning: Ints = np.arange(k) if len(stumps) else np.arange(0)
        if stumps.by_presence:
            self._negative_sums = PerLabelNegativeSums(self._rows_of_stumps, self._pairs, excluded)
        self._update_totals()

    def _sum_negatives(self) -> Floats:
        if self._stumps.by_presence:
            self._negative_sums.recompute_if_needed(self.learning, lambda labels: -self.weights[labels])
        return np.asarray(-self.weights.sum(axis=1))

    def _update_totals(self) -> None:
        super()._update_totals()
        self._weight = self._positive + self._negative
        self._exact_weights: dict[tuple[int, int], _ExactWeights] = {}

    def choose_pivots(self) -> Ints | None:
        """For each label, the candidate with the smallest Z.

        Returns:
            (k,) candidates, -1 for a label that has stopped learning or whose Z no candidate reduces. None if
            all labels have stopped.
        """
        chosen = np.full(len(self.weights), -1)
        if len(self.learning) == 0:
            return None
        labels, candidates = self._near_best()
        if len(labels) == 0:
            return None
        W = np.empty((4, len(labels)))
        for place, pair in enumerate(zip(labels.tolist(), candidates.tolist(), strict=True)):
            W[:, place] = self._weights_of(*pair).W
        weight = self._weight[labels]
        Z = normaliser(self._variant, loss(self._variant, W), weight)
        first = np.flatnonzero(np.diff(labels, prepend=-1))
        searched = labels[first]
        best = np.minimum.reduceat(Z, first)
        tied = np.repeat(best, np.diff(np.append(first, len(labels)))) + TIE * weight >= Z
        order = np.where(tied, self._order(labels, candidates), np.iinfo(np.int64).max)
        for begin, end in zip(first, np.append(first[1:], len(labels)), strict=True):
            chosen[labels[begin]] = candidates[begin + int(order[begin:end].argmin())]
        stops = searched[best >= (1 - TIE) * self._weight[searched]]
        chosen[stops] = -1
        return chosen if (chosen >= 0).any() else None

    def stop(self, labels: Ints) -> None:
        """End the training of labels."""
        self.learning = np.setdiff1d(self.learning, labels)

    def feature_of(self, label: int, candidate: int) -> int:
        """The feature that a candidate stands for when a label uses it."""
        if self._allowed is None:
            return int(self._stumps.features[candidate])
        own = self._allowed[label]
        return int(own.features[np.searchsorted(own.candidates, candidate)])

    def _order(self, labels: Ints, candidates: Ints) -> Ints:
        """Keys that sort each label's candidates by feature and threshold."""
        if self._allowed is None or not self._stumps.by_presence:
            return candidates
        return np.array(
            [self.feature_of(*pair) for pair in zip(labels.tolist(), candidates.tolist(), strict=True)]
        )

    def boost(self, pivots: Ints) -> tuple[WeakHypothesis, Floats]:
        """Take a round with these candidates as pivots.

        Args:
            pivots: (k,) from ``choose_pivots``.

        Returns:
            The weak hypothesis, and for each of its labels the true normaliser Z*.
        """
        labels = self.learning = np.flatnonzero(pivots >= 0)
        W = np.empty((4, len(labels)))
        for place, label in enumerate(labels.tolist()):
            W[:, place] = self._weights_of(label, int(pivots[label])).W
        absent, present = predictions(self._variant, W, loss(self._variant, W), self._smoothing)
        growth = growth_of(absent, present)
        Z = (W * growth).sum(axis=0)
        growth /= Z
        for place, label in enumerate(labels.tolist()):
            self._update_weights(label, int(pivots[label]), growth[:, place].tolist())
        weight = self._weight[labels]
        self._update_totals()
        features = [self.feature_of(label, int(pivots[label])) for label in labels.tolist()]
        thresholds = self._stumps.thresholds[pivots[labels]]
        hypothesis = WeakHypothesis(labels, np.array(features, dtype=np.int64), thresholds, absent, present)
        return hypothesis, Z / weight

    def _update_weights(self, label: int, candidate: int, growth: list[float]) -> None:
        """Multiplies a label's weights by the factors of the four W."""
        unlisted_positive, unlisted_negative, listed_positive, listed_negative = growth
        if self._stumps.lists_absent[candidate]:
            listed_positive, unlisted_positive = unlisted_positive, listed_positive
            listed_negative, unlisted_negative = unlisted_negative, listed_negative
        negatives = self._weights_of(label, candidate).negatives
        listed = self._stumps.listed(candidate)
        positives = self._positive_weights[self._starts[label] : self._starts[label + 1]]
        if self._stumps.by_presence:
            self._negative_sums.update(
                label, candidate, listed, negatives, unlisted_negative, listed_negative
            )
        row, rows = self.weights[label], self._positives[label]
        row *= unlisted_negative
        row[listed] = negatives * -listed_negative
        self._listed[listed] = True
        row[rows] = positives * np.where(self._listed[rows], listed_positive, unlisted_positive)
        self._listed[listed] = False

    def _near_best(self) -> tuple[Ints, Ints]:
        """The candidates that can be the best of a label or tie with it.

        Returns:
            The labels, ascending, and a candidate for each.
        """
        parts = self._presence_bounds() if self._stumps.by_presence else self._threshold_bounds()
        if not parts:
            return np.arange(0), np.arange(0)
        labels = np.concatenate([part.labels for part in parts])
        candidates = np.concatenate([part.candidates for part in parts])
        weight = self._weight[labels]
        low = normaliser(self._variant, np.concatenate([part.low for part in parts]), weight)
        high = normaliser(self._variant, np.concatenate([part.high for part in parts]), weight)
        best = np.full(len(self.weights), np.inf)
        np.minimum.at(best, labels, high)
        keep = np.flatnonzero(low <= best[labels] + TIE * weight)
        keep = keep[np.lexsort((candidates[keep], labels[keep]))]
        if self._allowed is None:
            # If Z is 0 for every candidate, the first one wins, and the others need no exact weights.
            first = np.diff(labels[keep], prepend=-1) > 0
            keep = keep[first | ~self._one_sided[labels[keep]]]
        return labels[keep], candidates[keep]

    def _presence_bounds(self) -> list[_CandidateBounds]:
        sums = self._negative_sums
        best_without_positives = self._best_without_positives()
        error = sums.error + self._totals_error * self._weight
        margin = 2 * normaliser_error(error, self._weight) + TIE * self._weight
        stopped = np.ones(len(self.weights), dtype=np.bool_)
        stopped[self.learning] = False
        limit = best_without_positives + margin
        limit[np.isinf(limit)] = -1  # a label without such a candidate
        parts: list[_CandidateBounds] = []
        for block in self._pairs.blocks:
            labels, nonempty = block.labels, block.nonempty
            W = block.weights(self._positive_weights, sums.of_pairs(block), self._positive, self._negative)
            Z = normaliser(self._variant, loss(self._variant, W), self._weight[labels])
            best = np.minimum(np.minimum.reduceat(Z, block.starts), best_without_positives[nonempty])
            limit[nonempty] = best + margin[nonempty]
            limit[stopped] = -1
            near = np.flatnonzero(limit[labels] >= Z)
            low, high = loss_bounds(self._variant, W[:, near], error[labels[near]])
            parts.append(_CandidateBounds(labels[near], block.candidates[near], low, high))
        limit[stopped] = -1
        least = required_negatives(self._variant, self._positive, self._negative, self._weight, limit)
        for label in np.flatnonzero(best_without_positives <= limit).tolist():
            candidates, listed_negative = sums.negatives_only_from(label, least[label])
            positive = self._positive[label]
            absent = np.maximum(self._negative[label] - listed_negative, 0)
            low = negatives_only_loss(
                self._variant, np.maximum(positive - error[label], 0), np.maximum(absent - error[label], 0)
            )
            high = negatives_only_loss(self._variant, positive + error[label], absent + error[label])
            parts.append(_CandidateBounds(np.full(len(candidates), label), candidates, low, high))
        return parts

    def _best_without_positives(self) -> Floats:
        """(k,) the smallest Z of the candidates that list no positive document; ∞ without such candidates."""
        listed_negative = self._negative_sums.largest_negatives_only()
        exists = listed_negative > -np.inf
        absent = np.maximum(self._negative - np.where(exists, listed_negative, 0), 0)
        losses = negatives_only_loss(self._variant, self._positive, absent)
        return np.where(exists, normaliser(self._variant, losses, self._weight), np.inf)

    def _threshold_bounds(self) -> list[_CandidateBounds]:
        parts: list[_CandidateBounds] = []
        learning = set(self.learning.tolist())
        for block, low, high in threshold_loss_bounds(
            self._stumps, lambda block: self.weights[block].T, self._positive, self._negative, self._variant
        ):
            for place, label in enumerate(range(block.start, block.stop)):
                if label not in learning:
                    continue
                own = np.arange(len(low)) if self._allowed is None else self._allowed[label].candidates
                if not len(own):
                    continue
                limit = high[own, place].min() + TIE * self._weight[label]
                near = own[low[own, place] <= limit] if self._variant != "discrete" else own
                parts.append(
                    _CandidateBounds(np.full(len(near), label), near, low[near, place], high[near, place])
                )
        return parts

    def _weights_of(self, label: int, candidate: int) -> _ExactWeights:
        """The weights of a candidate for a label, exact up to the rounding of a sum of positive numbers."""
        cached = self._exact_weights.get((label, candidate))
        if cached is not None:
            return cached
        row = self.weights[label]
        listed = self._stumps.listed(candidate)
        inside = row[listed]
        negatives = np.maximum(-inside, 0)
        positive_inside = float(np.add.reduce(inside + negatives))
        negative_inside = float(np.add.reduce(negatives))
        positive, negative = float(self._positive[label]), float(self._negative[label])
        positive_outside, negative_outside = positive - positive_inside, negative - negative_inside
        positives_cancelled = positive_outside < CANCELLED * positive
        negatives_cancelled = negative_outside < CANCELLED * negative
        if positives_cancelled or negatives_cancelled:
            self._listed[listed] = True
            if positives_cancelled:
                rows = self._positives[label]
                positive_outside = float(np.add.reduce(row[rows[~self._listed[rows]]]))
            if negatives_cancelled:
                negative_outside = float(np.add.reduce(np.maximum(-row[~self._listed], 0)))
            self._listed[listed] = False
        W = positive_outside, negative_outside, positive_inside, negative_inside
        if self._stumps.lists_absent[candidate]:
            W = positive_inside, negative_inside, positive_outside, negative_outside
        exact = self._exact_weights[label, candidate] = _ExactWeights(W, negatives)
        return exact
