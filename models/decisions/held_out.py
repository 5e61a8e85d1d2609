"""Held-out scores, on which decisions are tuned and probabilities are calibrated.

They are moved to the scale on which the fitted learner scores new documents, once, before anything uses them.
A model keeps a sample of them, so that partial fits can fit its decision again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Floats, Ints, Labels
from models.serialization.state import State, read_array, read_csr, read_integer, require

N_FOLDS = 3
"""Number of folds of held-out scores, and of positive examples that a label needs in order to be tuned."""

HeldOutSource: TypeAlias = Literal["folds", "validation", "test_then_train"]

_GAP = 0.9
"""Share of the gap between seen and unseen examples that is left with all folds instead of all but one.

The gap shrinks more slowly than in proportion to the number of examples, which would leave two thirds of it.
"""

_RATIOS = (0.2, 5.0)
_SHIFTS = (-1.0, 1.0)
"""Bounds of changes of a scale, which labels with few different scores would exceed."""

_ALIGNED = 50
"""Number of positive examples with which the scores of boosting count as much as aligned ones."""

MAX_SCORES = 2**20
"""Maximum number of scores of a sample, which limits it to 8 MiB. Of more examples it has a random part."""

REFIT_SHARE = 20
"""A decision is fitted again when one of so many examples of the learner is new.

Fewer change the scores little, and then a partial fit of a few examples takes no longer than before.
"""

_SHIFTED = 20
"""Number of examples whose mean shift of a label's scores counts as much as no shift."""


@dataclass(frozen=True)
class HeldOut:
    """Scores of h examples by learners that were not trained on them, on the scale of the fitted learner.

    Attributes:
        scores: (h, k) the scores.
        Y: (h, k) the relevant labels of the examples.
        unknown: (h, k) their unknown labels; None if there are none.
        folds: (h,) the fold, 0 … ``N_FOLDS`` − 1, of each example. A learner that was trained on the other
            folds scored it. If the examples are validation examples, the fitted learner itself scored all of
            them, and the folds only serve to value a decision on examples on which it was not tuned.
        tunable: (k,) whether a label has enough positive examples for tuning.
        source: where the examples come from: folds of the training examples, validation examples, or either
            of them and examples of partial fits, each scored before it was learned.
    """

    scores: Floats
    Y: Labels
    unknown: Labels | None
    folds: Ints
    tunable: Bools
    source: HeldOutSource = "folds"

    def relevant(self) -> Bools:
        """Return whether each example has each label, (h, k)."""
        relevant: Bools = self.Y.toarray() != 0
        return relevant

    def known(self) -> Bools | None:
        """Return whether each label of each example is known, (h, k); None if all are."""
        return None if self.unknown is None else self.unknown.toarray() == 0

    def where(self, rows: Bools) -> HeldOut:
        """Return the examples that a mask, (h,), selects."""
        return replace(
            self,
            scores=self.scores[rows],
            Y=self.Y[rows],
            unknown=None if self.unknown is None else self.unknown[rows],
            folds=self.folds[rows],
        )


def rows_of(known: Bools | None, rows: Bools) -> Bools | None:
    """Return the rows of a mask, (h, k), that another mask, (h,), selects; None for None."""
    return None if known is None else known[rows]


@dataclass(frozen=True)
class ScoreScale:
    """Where the scores of each label are, and how far they are apart.

    Attributes:
        center: (k,) mean of the scores of each label.
        spread: (k,) their standard deviation, or 1 if they are all equal.
    """

    center: Floats
    spread: Floats

    @classmethod
    def of(cls, scores: Floats, known: Bools | None) -> Self:
        """Return the scale of scores, (n, k); ``known`` is false for those that do not count.

        >>> ScoreScale.of(np.array([[1.0, 5.0], [3.0, 5.0]]), None)
        ScoreScale(center=array([2., 5.]), spread=array([1., 1.]))
        """
        counted = np.ones(scores.shape, dtype=np.bool_) if known is None else known
        return cls(*center_and_spread(scores.T, counted.T))


def center_and_spread(scores: Floats, known: Bools | Floats) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation of the known scores of each label.

    Args:
        scores: (l, n) scores of each label.
        known: (l, n) whether each label of each example is known.

    Returns:
        (l,) means and (l,) standard deviations; 1 if all scores are equal, up to rounding errors.
    """
    largest = np.abs(scores * known).max(axis=1, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)[:, np.newaxis]  # so that no square overflows
    scaled, n_known = scores / unit, np.maximum(known.sum(axis=1, keepdims=True), 1.0)
    center = (scaled * known).sum(axis=1, keepdims=True) / n_known
    spread = np.sqrt((known * (scaled - center) ** 2).sum(axis=1, keepdims=True) / n_known)
    spread = np.where(spread > 1e-12, spread * unit, 1.0)
    return (center * unit)[:, 0], spread[:, 0]


def align(held_out: HeldOut, scale: ScoreScale, of_folds: Sequence[ScoreScale] | None) -> HeldOut:
    """Move held-out scores to the scale of the fitted learner's scores of unseen examples.

    The learner of a fold saw fewer examples than the fitted learner, so its scores of unseen examples are on
    another scale. The scale of the fitted learner on unseen examples is not known. But the one on its
    training examples is, and so is the gap between training examples and unseen ones in each fold.

    Sums of boosting have no fixed scale: for a rare label, the scores of a fold can be around -320, and those
    of the fitted learner around -160. Such scores get the mean and the standard deviation of the fitted
    learner's training scores. Those of labels with many examples are comparable, and better as they are.

    Args:
        held_out: scores of training examples, each by the learner of a fold.
        scale: scale of the fitted learner's scores of its training examples.
        of_folds: scale of the scores of each fold's learner for the examples that it was trained on; None if
            the scores have no fixed scale.
    """
    known = held_out.known()
    positives = np.bincount(held_out.Y.indices, minlength=held_out.Y.shape[1])
    trust = positives / (positives + _ALIGNED)
    scores = np.empty(held_out.scores.shape)
    for fold in np.unique(held_out.folds).tolist():
        rows = held_out.folds == fold
        of_fold = held_out.scores[rows]
        unseen = ScoreScale.of(of_fold, None if known is None else known[rows])
        if of_folds is None:
            aligned = _move(of_fold, unseen, scale)
            scores[rows] = trust * of_fold + (1.0 - trust) * aligned
        else:
            scores[rows] = _move(of_fold, unseen, _on_unseen(scale, of_folds[fold], unseen))
    return replace(held_out, scores=scores)


def _on_unseen(scale: ScoreScale, seen_of_fold: ScoreScale, unseen_of_fold: ScoreScale) -> ScoreScale:
    """Return the scale on unseen examples, from the one on training examples and from both of a fold."""
    ratio = 1.0 - _GAP * (1.0 - unseen_of_fold.spread / seen_of_fold.spread)
    shift = _GAP * (unseen_of_fold.center - seen_of_fold.center) / seen_of_fold.spread
    return ScoreScale(
        scale.center + np.clip(shift, *_SHIFTS) * scale.spread, scale.spread * np.clip(ratio, *_RATIOS)
    )


def _move(scores: Floats, old: ScoreScale, new: ScoreScale) -> Floats:
    moved: Floats = (scores - old.center) / old.spread * new.spread + new.center
    return moved


@dataclass(frozen=True, eq=False)
class HeldOutSample:
    """Scores of h examples by learners that had not learned from them, on the scale of a fitted learner.

    They are scores of the training, and those of the examples of partial fits before each was learned. The
    sample contains no features.

    Attributes:
        held_out: the examples.
        new: (h,) whether an example is one of a partial fit.
        pending: number of examples of partial fits since the decision was last fitted.
    """

    held_out: HeldOut
    new: Bools
    pending: int = 0

    @classmethod
    def of(cls, held_out: HeldOut) -> Self:
        """Return a sample of the held-out scores of a training."""
        return cls._limited(held_out, np.zeros(len(held_out.scores), dtype=np.bool_), 0)

    @classmethod
    def empty(cls, n_labels: int) -> Self:
        """Return the sample of a training without held-out scores."""
        nothing = HeldOut(
            scores=np.empty((0, n_labels)),
            Y=_nothing(0, n_labels),
            unknown=None,
            folds=np.empty(0, dtype=np.int64),
            tunable=np.zeros(n_labels, dtype=np.bool_),
        )
        return cls(nothing, np.empty(0, dtype=np.bool_))

    def extended(self, before: Floats, scores: Floats, Y: Labels) -> Self:
        """Add the examples of a partial fit, and move the other scores to the scale of the updated learner.

        A partial fit shifts the scores of a label: another label may have gained weight, or a sum has more
        terms. The shift is the mean difference of the scores of the same new examples by the learner after
        about three quarters of them and by the learner before all, drawn towards 0 if they are few. Both
        learners had not learned from them, and differences of the same examples depend little on which
        examples they are: corrections are no random sample.

        Args:
            before: (n, k) scores of the new examples by the learner before all of them.
            scores: (n, k) scores of each by the learner before it.
            Y: (n, k) their labels.
        """
        n, old = len(scores), self.held_out
        later = slice(n // 2 if n >= 2 * _SHIFTED else 0, None)
        shift = n / (n + _SHIFTED) * (scores[later] - before[later]).mean(axis=0)
        unknown = old.unknown
        if unknown is not None:
            unknown = _stack(unknown, _nothing(n, Y.shape[1]))
        joined = HeldOut(
            scores=np.concatenate([old.scores + shift, scores]),
            Y=_stack(old.Y, Y),
            unknown=unknown,
            folds=np.concatenate([old.folds, np.arange(len(old.folds), len(old.folds) + n) % N_FOLDS]),
            tunable=old.tunable,
            source="test_then_train",
        )
        new = np.concatenate([self.new, np.ones(n, dtype=np.bool_)])
        return self._limited(joined, new, self.pending + n)

    def is_due(self, n_learned: int) -> bool:
        """Whether to fit the decision again, for a learner that has learned from so many examples."""
        fittable = self.held_out.tunable.any() and len(np.unique(self.held_out.folds)) == N_FOLDS
        return bool(fittable) and self.pending * REFIT_SHARE >= n_learned

    def decided(self) -> Self:
        """Return the sample after the decision was fitted on it."""
        return replace(self, pending=0)

    def get_state(self) -> State:
        """Return the arrays by name."""
        held_out = self.held_out
        state: State = {
            "scores": held_out.scores,
            "folds": held_out.folds.astype(np.int8),
            "new": self.new,
            "pending": np.array(self.pending),
            **_csr_state("labels", held_out.Y),
        }
        return state if held_out.unknown is None else {**state, **_csr_state("unknown", held_out.unknown)}

    @classmethod
    def from_state(cls, state: Mapping[str, AnyArray], n_labels: int) -> Self:
        """Restore the sample of k labels from ``get_state``.

        Raises:
            ArtifactError: the state is invalid.
        """
        scores = read_array(state, "scores", "float64", (None, n_labels))
        h = len(scores)
        folds: Ints = read_array(state, "folds", "int8", (h,)).astype(np.int64)
        require(((folds >= 0) & (folds < N_FOLDS)).all(), f"'folds' are not from 0 to {N_FOLDS - 1}")
        new = read_array(state, "new", "bool", (h,))
        Y = _read_ones(state, "labels", h, n_labels)
        unknown = _read_ones(state, "unknown", h, n_labels) if "unknown.data" in state else None
        held_out = HeldOut(
            scores, Y, unknown, folds, _tunable(Y), "test_then_train" if new.any() else "folds"
        )
        return cls(held_out, new, read_integer(state, "pending"))

    @classmethod
    def _limited(cls, held_out: HeldOut, new: Bools, pending: int) -> Self:
        """Return a sample of at most ``MAX_SCORES``, with the labels that can be tuned on it."""
        h, k = held_out.scores.shape
        size = max(N_FOLDS, MAX_SCORES // k)
        if h > size:
            rows = np.zeros(h, dtype=np.bool_)
            rows[np.random.default_rng(h).permutation(h)[:size]] = True
            held_out, new = held_out.where(rows), new[rows]
        return cls(replace(held_out, tunable=_tunable(held_out.Y)), new, pending)


def _nothing(n: int, k: int) -> Labels:
    nothing = np.empty(0, dtype=np.int64)
    return csr_array((nothing.astype(np.int8), nothing, np.zeros(n + 1, dtype=np.int64)), shape=(n, k))


def _stack(one: Labels, other: Labels) -> Labels:
    stacked: Labels = csr_array(sparse.vstack([one, other]))
    return stacked


def _tunable(Y: Labels) -> Bools:
    return np.bincount(Y.indices, minlength=Y.shape[1]) >= N_FOLDS


def _csr_state(name: str, matrix: Labels) -> State:
    return {
        f"{name}.data": matrix.data.astype(np.int8),
        f"{name}.indices": matrix.indices,
        f"{name}.indptr": matrix.indptr,
    }


def _read_ones(state: Mapping[str, AnyArray], name: str, h: int, k: int) -> Labels:
    matrix = read_csr(state, name, k, n_rows=h, dtype="int8")
    require((matrix.data == 1).all(), f"{name!r} contains a number that is not 1")
    return matrix
