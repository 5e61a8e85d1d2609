"""The final hypothesis, compressed (section 2.2 of the MP-Boost paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Floats, Ints, Matrix
from models.base.memory import check_weights_size
from models.serialization.state import read_array, require, require_index_range

State = dict[str, AnyArray]


@dataclass(frozen=True)
class Rule:
    """The weak hypothesis of one round: for some labels a question and its two answers.

    Attributes:
        labels: (n,) labels that the rule speaks of.
        features: (n,) their pivots.
        thresholds: (n,) what the feature must exceed; 0 for presence, where any value but 0 counts.
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
    """A sum of weak hypotheses with one pair (a₀, a₁) for each label and question that was ever asked for it.

    A document's score is a constant for each label, as if the document were empty, plus what each of the
    document's pivots adds to that.

    Attributes:
        shape: numbers of features and labels (r, k).
        by_presence: questions ask x ≠ 0; otherwise x > threshold.
        labels: (n,) the pairs' labels.
        features: (n,) their pivots; pairs are ordered by feature, threshold and label.
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
    def compressed(cls, shape: tuple[int, int], rules: list[Rule], *, by_presence: bool) -> Hypothesis:
        """The sum of the rules, in their order."""
        labels = _joined([rule.labels for rule in rules], np.int64)
        features = _joined([rule.features for rule in rules], np.int64)
        thresholds = _joined([rule.thresholds for rule in rules], np.float64)
        order = np.lexsort((labels, thresholds, features))  # stable: rounds stay in order
        labels, features, thresholds = labels[order], features[order], thresholds[order]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (np.diff(labels) != 0) | (np.diff(features) != 0) | (np.diff(thresholds) != 0)
        pair = np.cumsum(new) - 1
        absent = group_sums(pair, _joined([rule.absent for rule in rules], np.float64)[order], int(new.sum()))
        present = group_sums(
            pair, _joined([rule.present for rule in rules], np.float64)[order], int(new.sum())
        )
        return cls(shape, by_presence, labels[new], features[new], thresholds[new], absent, present)

    def pivots_of(self) -> Ints:
        """Distinct pivots of each label, (k,): Δ_j of table 1."""
        pairs = np.unique(np.stack([self.labels, self.features]), axis=1)
        return np.bincount(pairs[0], minlength=self.shape[1])

    def scores(self, X: Matrix) -> Floats:
        """Scores (n, k) of the rows of X; costs only the pivots that a document contains."""
        starts, cells = self._entries(X)
        asked = csr_array((np.ones(len(cells)), cells, starts), shape=(X.shape[0], len(self._added)))
        scores = np.asarray(asked @ self._added)
        scores += self._constant
        return scores

    def added(self, x: Matrix, label: int) -> tuple[Ints, Floats]:
        """What each pivot of one example adds to the score of a label, against the feature being 0.

        Returns:
            pivots of the label among the example's features, and a₁ − a₀ of each.
        """
        _, cells = self._entries(x)
        of_label = np.isin(self._cell_features[cells], self.features[self.labels == label])
        cells = cells[of_label]
        return self._cell_features[cells], self._added[cells, label]

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
        """The hypothesis whose ``state`` this was.

        Raises:
            ArtifactError: pivots out of range or out of order.
            UnsuitableDataError: too many questions to hold what each adds to every label.
        """
        r, k, by_presence = read_array(state, "shape", "int64", (3,)).tolist()
        labels = read_array(state, "labels", "int64", (None,))
        features = read_array(state, "features", "int64", labels.shape)
        thresholds, absent, present = (
            read_array(state, name, "float64", labels.shape) for name in ("thresholds", "absent", "present")
        )
        require_index_range(features, r, "features")
        require_index_range(labels, k, "labels")
        require(by_presence in (0, 1), "pivots are asked for neither by presence nor by thresholds")
        require(not (by_presence and thresholds.any()), "presence knows no thresholds")
        step = np.stack([np.diff(features), np.sign(np.diff(thresholds)), np.diff(labels)])
        first = np.take_along_axis(step, (step != 0).argmax(axis=0)[np.newaxis], axis=0)
        require(bool((first > 0).all()), "the pivots are not in order, or one is there twice")
        found = cls((r, k), bool(by_presence), labels, features, thresholds, absent, present)
        questions = len(found._cell_features)
        check_weights_size(questions * k, 8, f"{questions:,} answers about {k:,} labels")
        return found

    # A feature with t thresholds cuts the line in t + 1 cells; within a cell the scores are the same.
    # Presence has one cell. A cell's row of `_added` holds its difference from the cell of 0.

    @cached_property
    def _questions(self) -> tuple[Ints, Floats, Ints]:
        """Distinct questions: features, thresholds, and the question of each pair."""
        new = np.ones(len(self.features), dtype=np.bool_)
        new[1:] = (np.diff(self.features) != 0) | (np.diff(self.thresholds) != 0)
        return self.features[new], self.thresholds[new], np.cumsum(new) - 1

    @cached_property
    def _steps(self) -> Floats:
        """(questions, k): what a yes adds to a no."""
        features, _, question = self._questions
        steps = np.zeros((len(features), self.shape[1]))
        steps[question, self.labels] = self.present - self.absent
        return steps

    @cached_property
    def _cell_features(self) -> Ints:
        features, _, _ = self._questions
        if self.by_presence:
            return features
        pivots, thresholds = np.unique(features, return_counts=True)
        return np.repeat(pivots, thresholds + 1)

    @cached_property
    def _added(self) -> Floats:
        features, thresholds, _ = self._questions
        if self.by_presence:
            return self._steps
        added = np.zeros((len(self._cell_features), self.shape[1]))
        row = 0
        for pivot in np.unique(features):
            mine = features == pivot
            levels = np.zeros((int(mine.sum()) + 1, self.shape[1]))
            np.cumsum(self._steps[mine], axis=0, out=levels[1:])
            added[row : row + len(levels)] = levels - levels[np.count_nonzero(thresholds[mine] < 0)]
            row += len(levels)
        return added

    @cached_property
    def _constant(self) -> Floats:
        """(k,) the score of the empty document."""
        zero_says_yes = (self.thresholds < 0) & (not self.by_presence)
        says = np.where(zero_says_yes, self.present, self.absent)
        return group_sums(self.labels, says, self.shape[1])

    def _entries(self, X: Matrix) -> tuple[Ints, Ints]:
        """The cells of the values of X that stand under a pivot, row after row, and where each row starts."""
        features, _, _ = self._questions
        pivots, first = np.unique(features, return_index=True)
        first_cell = np.full(self.shape[0], -1)
        first_cell[pivots] = first if self.by_presence else first + np.arange(len(pivots))
        cells = first_cell[X.indices]
        keep = cells >= 0
        starts = np.concatenate([[0], np.cumsum(keep)])[X.indptr]
        cells = cells[keep]
        if not self.by_presence:
            cells = cells + self._thresholds_below(X.indices[keep].astype(np.int64), X.data[keep])
        return starts, cells

    def _thresholds_below(self, columns: Ints, values: Floats) -> Ints:
        """How many of its feature's thresholds each value exceeds.

        Thresholds and values are ranked together first, so that one search over whole numbers serves all
        features.
        """
        features, thresholds, _ = self._questions
        levels = np.unique(thresholds)
        width = len(levels) + 1
        questions = features * width + np.searchsorted(levels, thresholds, side="right")
        asked = columns * width + np.searchsorted(levels, values, side="left")
        first = np.searchsorted(questions, columns * width, side="left")
        return np.searchsorted(questions, asked, side="right") - first


def group_sums(groups: Ints, numbers: Floats, n_groups: int) -> Floats:
    """(n_groups,) sums of each group's numbers, in their order; float64 even where there are none."""
    sums: Floats = np.bincount(groups, numbers, n_groups).astype(np.float64, copy=False)
    return sums


def _joined(parts: list[AnyArray], dtype: type) -> AnyArray:
    return np.concatenate([np.zeros(0, dtype=dtype), *parts]).astype(dtype, copy=False)
