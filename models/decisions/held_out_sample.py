"""The held-out scores that a model keeps, so that partial fits can fit its decision again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy import sparse
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Floats, Ints, Labels
from models.decisions.held_out import N_FOLDS, HeldOut
from models.serialization.state import State, read_array, read_csr, read_integer, require

MAX_SCORES = 2**20
"""Maximum number of scores of a sample, which limits it to 8 MiB. Of more examples it has a random part."""

REFIT_SHARE = 20
"""A decision is fitted again when one of so many examples of the learner is new.

Fewer change the scores little, and then a partial fit of a few examples takes no longer than before.
"""

_TRUSTED = 20
"""Number of examples whose mean shift of a label's scores counts as much as no shift."""


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
        later = slice(n // 2 if n >= 2 * _TRUSTED else 0, None)
        shift = n / (n + _TRUSTED) * (scores[later] - before[later]).mean(axis=0)
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
