"""Estimates and limits of the memory of trainings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Ints, Labels, Matrix
from models.base.training import Context
from models.errors import MemoryLimitError, UnsuitableDataError

GIB = 2**30

WEIGHTS_LIMIT = 4 * GIB
"""Maximum size of the weights of a model in bytes."""

MATRIX_BYTES = 12
"""Bytes for each stored value of the features that checking and converting them takes, in every learner."""

FIXED_BYTES = 2**20
"""Memory for small objects, in every learner."""


@dataclass(frozen=True)
class ProblemSize:
    """The size of a learning problem: everything that the memory of a training depends on.

    Attributes:
        examples: number g of training examples.
        features: number r of features.
        labels: number k of labels.
        entries: number of stored values of X.
        label_counts: (k,) number of examples of each label.
        parents: (k,) index of each label's parent, -1 for a root; None without a label tree.
        numeric_features: ``Context.numeric_features``.
        unknown_entries: number of pairs of an example and an unknown label.
        n_jobs: number of threads that the learner may use.
    """

    examples: int
    features: int
    labels: int
    entries: int
    label_counts: Ints
    parents: Ints | None = None
    numeric_features: bool = False
    unknown_entries: int = 0
    n_jobs: int = 1

    @classmethod
    def of(cls, X: Matrix, Y: Labels, context: Context) -> ProblemSize:
        """Return the size of a problem with (g, r) features and (g, k) relevant labels."""
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        shape = (X.shape[0], X.shape[1], Y.shape[1])
        unknown = 0 if context.unknown is None else int(context.unknown.nnz)
        return cls(
            *shape, int(X.nnz), counts, context.parents, context.numeric_features, unknown, context.n_jobs
        )

    @property
    def weights(self) -> int:
        """Bytes of one float64 for each feature and label."""
        return 8 * self.features * self.labels

    @property
    def scores(self) -> int:
        """Bytes of one float64 for each example and label."""
        return 8 * self.examples * self.labels

    @property
    def label_entries(self) -> int:
        """Number of features of all examples, counted once for each label of the example, on average."""
        return self.entries * int(self.label_counts.sum()) // max(1, self.examples)


def check_memory(needed: int, limit: int | None, size: ProblemSize, what: str) -> None:
    """Check an estimate of the memory of a training before it starts.

    Args:
        needed: the estimate in bytes.
        limit: the limit in bytes; None if there is none.
        size: the size of the problem, for the error message.
        what: what needs the memory.

    Raises:
        MemoryLimitError: the estimate exceeds the limit.
    """
    if limit is not None and needed > limit:
        raise MemoryLimitError(
            f"{what} would need about {needed / GIB:,.1f} GiB of memory for {size.examples:,} examples, "
            f"{size.features:,} features and {size.labels:,} labels, but the limit is "
            f"{limit / GIB:,.1f} GiB; select fewer features, merge rare labels, use fewer examples, or raise "
            "the limit"
        )


def check_weights_size(n_weights: int, itemsize: int, what: str) -> None:
    """Check the size of weights before they are allocated.

    Args:
        n_weights: number of weights.
        itemsize: bytes per weight.
        what: what the weights are for, in the plural, for the error message.

    Raises:
        UnsuitableDataError: the weights need more than ``WEIGHTS_LIMIT`` bytes.
    """
    size = n_weights * itemsize
    if size > WEIGHTS_LIMIT:
        raise UnsuitableDataError(
            f"{what} need {size / GIB:.1f} GiB of weights ({n_weights:,} of {itemsize} bytes each), but the "
            f"limit is {WEIGHTS_LIMIT / GIB:.0f} GiB; select fewer features or merge rare labels"
        )
