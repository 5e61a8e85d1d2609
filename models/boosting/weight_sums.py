"""The success and failure sums W₊ and W₋ of AdaBoost.LC (figure 2), at the cost of one product.

Relevant labels are few, so the sums over them use a short list of (example, label) entries. Only the sums
over irrelevant labels need a product of the transposed features with a dense block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from models.arrays import Floats, Ints, Labels, Matrix, with_data
from models.boosting.distinct_columns import DistinctColumns
from models.covering import CompiledCovering, ExampleBatch

BLOCK_SCORES = 8_388_608
"""Scores (examples times labels) in memory at once: 64 MiB."""

MAX_GATHERED = 268_435_456
"""Values of relevant entries that stay in memory between rounds (3 GiB); more are gathered in every round."""

_BLOCK_COLUMNS = 128
"""Columns in a block of sums, which then stays in the processor's cache."""


@dataclass(frozen=True)
class WeightSums:
    """W₊ and W₋ of the training examples at some α, with the loss and the error.

    The sums have the units of the features: they are sums of q |x|, which are W times the scale of h. Sums
    over relevant labels and over irrelevant labels are separate arrays. If there are negative features, the
    sums over negative values stand u columns after the sums over positive values.

    Attributes:
        positives: (k, u or 2u) sums over relevant labels.
        negatives: (u or 2u, k) sums over irrelevant labels.
        total: the sum of all W₊ and W₋ of all features, at least as large as any of them.
        loss: mean covering loss.
        error: mean covering error.
    """

    positives: Floats
    negatives: Floats
    total: float
    loss: float
    error: float

    def blocks(self, u: int, smoothing: float = 0.0) -> Iterator[tuple[slice, Floats, Floats]]:
        """W₊ and W₋, a block of columns at a time.

        Args:
            u: number of columns.
            smoothing: added to every W₊ and W₋.

        Yields:
            the columns, and (columns, k) W₊ and W₋. The next block overwrites these arrays.
        """
        signed = len(self.negatives) > u
        success_buffer, failure_buffer = np.empty((2, min(_BLOCK_COLUMNS, u), self.negatives.shape[1]))
        for a in range(0, u, _BLOCK_COLUMNS):
            b = min(a + _BLOCK_COLUMNS, u)
            success = np.add(self.positives[:, a:b].T, smoothing, out=success_buffer[: b - a])
            failure = np.add(self.negatives[a:b], smoothing, out=failure_buffer[: b - a])
            if signed:
                success += self.negatives[u + a : u + b]
                failure += self.positives[:, u + a : u + b].T
            yield slice(a, b), success, failure

    def mean(self, multiplicity: Ints) -> float:
        """The mean of W₊ + W₋ over the pairs of feature and label in which it is positive.

        It is 0 if there are no such pairs.

        Args:
            multiplicity: (u,) how many features have each column.
        """
        u, k = len(multiplicity), len(self.positives)
        signed = len(self.negatives) > u
        # W₋ is hardly ever 0, so W₊ is needed only for those few pairs.
        no_failure = self.negatives == 0
        if signed:
            no_failure = no_failure[:u] & no_failure[u:]
        columns, labels = np.divmod(np.flatnonzero(no_failure), k)
        success = self.positives[labels, columns]
        if signed:
            success = success + self.positives[labels, columns + u]
        pairs = k * int(multiplicity.sum()) - int(multiplicity[columns[success == 0]].sum())
        return self.total / pairs if pairs else 0.0


class CoveringTrainingSet:
    """The training examples, prepared for computing their weights in every round.

    Args:
        X: (g, r) features.
        Y: (g, k) label sets.
        covering: compiled for the labels.
        merge_equal: whether features with equal columns share a column, for templates that treat them alike.

    Attributes:
        columns: the u distinct columns.
        scale: the largest absolute feature value, the divisor of h.
    """

    def __init__(self, X: Matrix, Y: Labels, covering: CompiledCovering, *, merge_equal: bool) -> None:
        self.columns = DistinctColumns.of(X, merge_equal=merge_equal)
        self.scale = float(np.abs(X.data).max()) if X.nnz else 1.0
        u, k = len(self.columns.first_feature), Y.shape[1]
        self._examples = Y.shape[0]
        signed = bool(X.nnz and X.data.min() < 0)
        # Each block's product writes all sums. So a block is at least as large as the sums.
        size = max(BLOCK_SCORES, u * k) // max(1, k)
        gather_once = int(np.diff(X.indptr).astype(np.int64) @ np.diff(Y.indptr)) <= MAX_GATHERED
        self._blocks = [
            _Block.of(
                self.columns,
                X[a : a + size],
                Y[a : a + size],
                covering,
                signed=signed,
                gather_once=gather_once,
            )
            for a in range(0, Y.shape[0], size)
        ]

    def sums(self, weights: Floats) -> WeightSums:
        """The sums of figure 2, the loss and the error.

        Args:
            weights: (u, k) α over the scale of h, a row for each column.
        """
        parts = (block.sums(weights) for block in self._blocks)
        positives, negatives, totals, loss, error = next(parts)
        for part_positives, part_negatives, part_totals, part_loss, part_error in parts:
            positives += part_positives
            negatives += part_negatives
            totals += part_totals
            loss += part_loss
            error += part_error
        total = math.fsum(totals)  # exact, so that it does not depend on the order of the labels
        return WeightSums(positives, negatives, total, loss / self._examples, error / self._examples)


@dataclass(frozen=True)
class _Block:
    """Some consecutive examples.

    Attributes:
        X: (n, u) features times the multiplicity of their columns, for scores.
        signless: (n, u or 2u) absolute features, negative ones u columns further right, for sums.
        sizes: (n,) the sum of each example's absolute features.
        labels: (n, k) label sets.
        batches: the examples grouped by cover.
        order: the relevant entries, ordered by label.
        gathered: (k u or 2 k u, entries) for every relevant entry, in this order, a column with the signless
            features of its example in the rows of its label. None if it is gathered in every round.
    """

    X: Matrix
    signless: Matrix
    sizes: Floats
    labels: Labels
    batches: list[ExampleBatch]
    order: Ints
    gathered: csc_array[Any] | None

    @classmethod
    def of(
        cls,
        columns: DistinctColumns,
        X: Matrix,
        Y: Labels,
        covering: CompiledCovering,
        *,
        signed: bool,
        gather_once: bool,
    ) -> _Block:
        """The block of (n, r) features and (n, k) label sets.

        Args:
            columns: the distinct columns of the whole training set.
            X: features.
            Y: label sets.
            covering: compiled for the labels.
            signed: whether the training set has negative features.
            gather_once: whether ``gathered`` fits in memory.
        """
        X = columns.select(X)
        signless = X
        if signed:
            shift = np.where(X.data < 0, X.shape[1], 0).astype(X.indices.dtype)
            shape = (X.shape[0], 2 * X.shape[1])
            signless = csr_array((np.abs(X.data), X.indices + shift, X.indptr.copy()), shape=shape)
            signless.sort_indices()
        if (columns.multiplicity > 1).any():
            X = with_data(X, X.data * columns.multiplicity[X.indices])
        order = np.argsort(Y.indices, kind="stable")
        gathered = _gather(signless, Y, order) if gather_once else None
        sizes = np.asarray(abs(X).sum(axis=1), dtype=np.float64)
        return cls(X, signless, sizes, Y, covering.batches(Y), order, gathered)

    def sums(self, weights: Floats) -> tuple[Floats, Floats, Floats, float, float]:
        """The block's part of ``WeightSums``: totals by label, loss and error as sums over examples."""
        q = self.X @ weights
        relevant = np.empty(self.labels.nnz)
        totals = np.zeros(self.labels.shape[1])
        loss = error = 0.0
        for batch in self.batches:
            evaluation = batch.evaluate(q[batch.rows])
            q[batch.rows] = evaluation.negatives
            relevant[batch.positions] = evaluation.positives
            sizes = self.sizes[batch.rows]
            # Not a matrix product, whose order of additions may depend on the number of threads.
            totals += np.einsum("i,ij->j", sizes, evaluation.negatives)
            weighted = evaluation.positives * sizes[batch.entries.rows]
            totals += np.bincount(batch.entries.columns, weighted, len(totals))
            loss += float(evaluation.loss.sum())
            error += float(evaluation.error.sum())
        gathered = self.gathered
        if gathered is None:
            gathered = _gather(self.signless, self.labels, self.order)
        positives = (gathered @ relevant[self.order]).reshape(self.labels.shape[1], self.signless.shape[1])
        return positives, self.signless.T @ q, totals, loss, error


def _gather(signless: Matrix, labels: Labels, order: Ints) -> csc_array[Any]:
    """See ``_Block.gathered``."""
    (n, width), k = signless.shape, labels.shape[1]
    rows = np.repeat(np.arange(n), np.diff(labels.indptr))[order]
    values = signless[rows]
    index_type = np.dtype(np.int64 if width * k > np.iinfo(np.int32).max else np.int32)
    first = labels.indices[order].astype(index_type) * width
    indices = values.indices + np.repeat(first, np.diff(values.indptr))
    return csc_array((values.data, indices, values.indptr), shape=(k * width, len(rows)))
