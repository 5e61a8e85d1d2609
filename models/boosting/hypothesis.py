"""The final hypothesis, compressed (section 2.2 of the MP-Boost paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Floats, Ints, Matrix, Vector
from models.base.products import sum_of_rows
from models.boosting.score_curves import ScoreCurves
from models.serialization.state import read_array, require, require_index_range

State = dict[str, AnyArray]

TABLE_BYTES = 64 * 2**20
"""Maximum size of the table of all contributions to all labels."""

_BLOCK_CONTRIBUTIONS = 1 << 16  # contributions that are computed at a time


@dataclass(frozen=True)
class WeakHypothesis:
    """The weak hypothesis of one round: for n labels, a decision stump and its two predictions.

    Attributes:
        labels: (n,) labels.
        features: (n,) their pivots.
        thresholds: (n,) the documents above them are on the present side; 0 for presence, for which these
            are the documents with any value but 0.
        absent: (n,) a₀.
        present: (n,) a₁.
    """

    labels: Ints
    features: Ints
    thresholds: Floats
    absent: Floats
    present: Floats


@dataclass(frozen=True)
class Hypothesis:
    """A sum of weak hypotheses: one pair (a₀, a₁) for each label and each stump that was chosen for it.

    A document's score for a label is a constant, which is the score of an empty document, plus the
    contributions of the pivots in the document.

    Attributes:
        shape: numbers of features and labels (r, k).
        by_presence: whether stumps test x ≠ 0; otherwise they test x > threshold.
        labels: (n,) labels of the pairs, which are ordered by feature, threshold and label.
        features: (n,) their pivots.
        thresholds: (n,) their thresholds.
        absent: (n,) Σ a₀ (equation 9).
        present: (n,) Σ a₁.
    """

    shape: tuple[int, int]
    by_presence: bool
    labels: Ints
    features: Ints
    thresholds: Floats
    absent: Floats
    present: Floats

    @classmethod
    def compressed(
        cls, shape: tuple[int, int], rounds: list[WeakHypothesis], *, by_presence: bool
    ) -> Hypothesis:
        """The sum of weak hypotheses, added in the order of their rounds.

        Args:
            shape: numbers of features and labels (r, k).
            rounds: the weak hypothesis of each round.
            by_presence: whether stumps test x ≠ 0; otherwise they test x > threshold.
        """
        labels, features, thresholds, order, new = _sorted_stumps(rounds)
        pair = np.cumsum(new) - 1
        n_pairs = int(new.sum())
        absent = group_sums(pair, _concatenate([one.absent for one in rounds], np.float64)[order], n_pairs)
        present = group_sums(pair, _concatenate([one.present for one in rounds], np.float64)[order], n_pairs)
        return cls(shape, by_presence, labels[new], features[new], thresholds[new], absent, present)

    def distinct_pivots(self) -> Ints:
        """(k,) the number of distinct pivots of each label: Δ_j of table 1."""
        pairs = np.unique(np.stack([self.labels, self.features]), axis=1)
        return np.bincount(pairs[0], minlength=self.shape[1])

    def scores(self, X: Matrix | Vector) -> Floats:
        """(n, k) scores of n documents; n is 1 for a vector. The cost depends only on the pivots in them.

        If the contributions of all intervals fit in ``TABLE_BYTES``, a table contains them. Otherwise they
        are computed from the pairs for the values that occur in ``X``. Both ways add the same numbers in the
        same order.
        """
        if not self._has_table:
            matrix = X.to_matrix(self.shape[0]) if isinstance(X, Vector) else X
            scores = self._scores_without_table(matrix)
        elif isinstance(X, Vector) and len(X.indices) * self.shape[1] <= _BLOCK_CONTRIBUTIONS:
            _, intervals = self._intervals(X)
            scores = sum_of_rows(self._contributions.take(intervals, axis=0))
        else:
            matrix = X.to_matrix(self.shape[0]) if isinstance(X, Vector) else X
            keep, intervals = self._intervals(matrix)
            starts = np.concatenate([[0], np.cumsum(keep)])[matrix.indptr]
            shape = (matrix.shape[0], len(self._contributions))
            indicator = csr_array((np.ones(len(intervals)), intervals, starts), shape=shape)
            scores = np.asarray(indicator @ self._contributions)
        scores += self._constant
        return scores

    def _scores_without_table(self, X: Matrix) -> Floats:
        """(n, k) the sum of the contributions of each document's features, in the order of the features."""
        scores = np.zeros((X.shape[0], self.shape[1]))
        columns, curves = X.tocsc(), self._curves
        for feature in np.flatnonzero(np.diff(columns.indptr)).tolist():
            labels = curves.labels_of(feature)
            if not len(labels):
                continue
            begin, end = columns.indptr[feature : feature + 2].tolist()
            step = max(1, _BLOCK_CONTRIBUTIONS // len(labels))
            for first in range(begin, end, step):
                block = slice(first, min(first + step, end))
                values, places = np.unique(columns.data[block], return_inverse=True)
                contributions = curves.contributions(feature, values)
                rows = columns.indices[block]
                if 4 * len(labels) < self.shape[1]:
                    scores[rows[:, np.newaxis], labels] += contributions[places]
                else:  # adding whole rows, with 0 for the other labels, is faster
                    padded = np.zeros((len(values), self.shape[1]))
                    padded[:, labels] = contributions
                    scores[rows] += padded[places]
        return scores

    def contributions(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """The contribution of each pivot of one example to the score of a label.

        Returns:
            The pivots of the label among the example's features, and for each of them the score minus the
            score if the feature were 0; for presence this is a₁ − a₀.
        """
        return self._curves.contributions_to(label, x.indices.astype(np.int64), x.data)

    def state(self) -> State:
        """The hypothesis as named arrays."""
        return {
            "shape": np.array([*self.shape, self.by_presence], dtype=np.int64),
            "labels": self.labels,
            "features": self.features,
            "thresholds": self.thresholds,
            "absent": self.absent,
            "present": self.present,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, AnyArray]) -> Hypothesis:
        """The hypothesis with a state that ``state`` returned.

        Raises:
            ArtifactError: the pivots are out of range or out of order.
        """
        r, k, by_presence = read_array(state, "shape", "int64", (3,)).tolist()
        labels = read_array(state, "labels", "int64", (None,))
        features = read_array(state, "features", "int64", labels.shape)
        thresholds, absent, present = (
            read_array(state, name, "float64", labels.shape) for name in ("thresholds", "absent", "present")
        )
        require_index_range(features, r, "features")
        require_index_range(labels, k, "labels")
        require(by_presence in (0, 1), "by_presence is neither 0 nor 1")
        require(not (by_presence and thresholds.any()), "stumps that test presence must not have thresholds")
        step = np.stack([np.diff(features), np.sign(np.diff(thresholds)), np.diff(labels)])
        first = np.take_along_axis(step, (step != 0).argmax(axis=0)[np.newaxis], axis=0)
        require(bool((first > 0).all()), "the pivots are not in order, or one of them is repeated")
        return cls((r, k), bool(by_presence), labels, features, thresholds, absent, present)

    @cached_property
    def _curves(self) -> ScoreCurves:
        steps = self.present - self.absent
        return ScoreCurves.of(
            self.features, self.labels, self.thresholds, steps, by_presence=self.by_presence
        )

    # The t thresholds of a feature divide the real line into t + 1 intervals with a constant score in each.
    # Presence has one interval. Its row of `_contributions` is its difference from the interval of 0.

    @cached_property
    def _stumps(self) -> tuple[Ints, Floats, Ints]:
        """Distinct stumps: features, thresholds, and the stump of each pair."""
        new = np.ones(len(self.features), dtype=np.bool_)
        new[1:] = (np.diff(self.features) != 0) | (np.diff(self.thresholds) != 0)
        return self.features[new], self.thresholds[new], np.cumsum(new) - 1

    @cached_property
    def _steps(self) -> Floats:
        """(stumps, k) a₁ − a₀."""
        features, _, stump = self._stumps
        steps = np.zeros((len(features), self.shape[1]))
        steps[stump, self.labels] = self.present - self.absent
        return steps

    @cached_property
    def _interval_features(self) -> Ints:
        features, _, _ = self._stumps
        if self.by_presence:
            return features
        pivots, thresholds = np.unique(features, return_counts=True)
        return np.repeat(pivots, thresholds + 1)

    @cached_property
    def _contributions(self) -> Floats:
        """(intervals, k) the difference of the score from that of a document in which the feature is 0."""
        features, thresholds, _ = self._stumps
        if self.by_presence:
            return self._steps
        contributions = np.zeros((len(self._interval_features), self.shape[1]))
        row = 0
        for pivot in np.unique(features):
            own = features == pivot
            levels = np.zeros((int(own.sum()) + 1, self.shape[1]))
            np.cumsum(self._steps[own], axis=0, out=levels[1:])
            contributions[row : row + len(levels)] = levels - levels[np.count_nonzero(thresholds[own] < 0)]
            row += len(levels)
        return contributions

    @cached_property
    def _constant(self) -> Floats:
        """(k,) the score of the empty document."""
        zero_is_present = (self.thresholds < 0) & (not self.by_presence)
        predictions = np.where(zero_is_present, self.present, self.absent)
        return group_sums(self.labels, predictions, self.shape[1])

    @property
    def _has_table(self) -> bool:
        return 8 * len(self._interval_features) * self.shape[1] <= TABLE_BYTES

    @cached_property
    def _first_interval(self) -> Ints:
        """(r,) the first interval of each pivot, and -1 for other features."""
        features, _, _ = self._stumps
        pivots, first = np.unique(features, return_index=True)
        first_interval = np.full(self.shape[0], -1)
        first_interval[pivots] = first if self.by_presence else first + np.arange(len(pivots))
        return first_interval

    def _intervals(self, X: Matrix | Vector) -> tuple[Bools, Ints]:
        """The intervals of the values of X in the pivots' columns.

        Returns:
            Whether the feature of each value is a pivot, and the intervals of these values.
        """
        intervals = self._first_interval[X.indices]
        keep = intervals >= 0
        intervals = intervals[keep]
        if not self.by_presence:
            intervals = intervals + self._thresholds_below(X.indices[keep].astype(np.int64), X.data[keep])
        return keep, intervals

    @cached_property
    def _levels(self) -> Floats:
        """The distinct thresholds of all features, ascending."""
        _, thresholds, _ = self._stumps
        return np.unique(thresholds)

    @cached_property
    def _threshold_keys(self) -> Ints:
        """For each distinct stump its feature and the rank of its threshold, as one number."""
        features, thresholds, _ = self._stumps
        ranks = np.searchsorted(self._levels, thresholds, side="right")
        return np.asarray(features * (len(self._levels) + 1) + ranks)

    def _thresholds_below(self, columns: Ints, values: Floats) -> Ints:
        """How many of its feature's thresholds each value exceeds.

        Thresholds and values are first ranked together, so that one binary search over integers is enough for
        all features.
        """
        width = len(self._levels) + 1
        value_keys = columns * width + np.searchsorted(self._levels, values, side="left")
        first = np.searchsorted(self._threshold_keys, columns * width, side="left")
        return np.searchsorted(self._threshold_keys, value_keys, side="right") - first


def group_sums(groups: Ints, numbers: Floats, n_groups: int) -> Floats:
    """(n_groups,) the sum of each group's numbers, added in their order; float64 even without numbers."""
    sums: Floats = np.bincount(groups, numbers, n_groups).astype(np.float64, copy=False)
    return sums


def pairs_of(rounds: Sequence[WeakHypothesis]) -> Ints:
    """For each round and label, the pair of the compressed hypothesis that its stump belongs to."""
    _, _, _, order, new = _sorted_stumps(rounds)
    pairs = np.empty(len(order), dtype=np.int64)
    pairs[order] = np.cumsum(new) - 1
    return pairs


def _sorted_stumps(rounds: Sequence[WeakHypothesis]) -> tuple[Ints, Ints, Floats, Ints, Bools]:
    """Sort the stumps of all rounds and labels by feature, threshold, label and round.

    Returns:
        Their labels, features and thresholds, their order, and whether each one is the first of its pair.
    """
    labels = _concatenate([one.labels for one in rounds], np.int64)
    features = _concatenate([one.features for one in rounds], np.int64)
    thresholds = _concatenate([one.thresholds for one in rounds], np.float64)
    order = np.lexsort((labels, thresholds, features))  # stable, so rounds stay in order
    labels, features, thresholds = labels[order], features[order], thresholds[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (np.diff(labels) != 0) | (np.diff(features) != 0) | (np.diff(thresholds) != 0)
    return labels, features, thresholds, order, new


def _concatenate(parts: list[AnyArray], dtype: type) -> AnyArray:
    return np.concatenate([np.zeros(0, dtype=dtype), *parts]).astype(dtype, copy=False)
