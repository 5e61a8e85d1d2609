"""The weights of AdaBoost.LC: W₊ and W₋ of figure 2 over a training part, at the price of one product.

Relevant labels are few, so the sums over them go over a short list of (example, label) entries, and only
the irrelevant ones need a product of the transposed features with a dense block. Such a product waits for
memory half of its time; numbering the features by falling frequency keeps the busy ones together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from models.arrays import Floats, Ints, Labels, Matrix, with_data
from models.boosting.covering import CompiledCovering, Piece

_BLOCK = 8_388_608
"""Scores (examples times labels) held at once: 64 MiB."""

_KEPT = 268_435_456
"""Values of relevant entries that are kept from round to round (3 GiB); more are gathered anew each time."""

_RARE = 8
"""Columns with at most so many values are looked through for twins: fuller ones hardly ever are."""

_FEATURES = 128
"""Features in a block of sums, which then stays in the processor's cache."""


@dataclass(frozen=True)
class Columns:
    """The distinct columns of the training features, by falling frequency.

    Features whose columns are equal are twins: they have the same sums in every round. Features without a
    value are left out.

    Attributes:
        first: (u,) the first feature of each column.
        count: (u,) how many features share it.
        of_feature: (r,) the column of each feature, -1 for a feature without a value.
    """

    first: Ints
    count: Ints
    of_feature: Ints

    @classmethod
    def of(cls, X: Matrix, *, join_twins: bool) -> Columns:
        """The columns of (g, r) features; without ``join_twins`` every feature has its own."""
        r = X.shape[1]
        frequency = np.bincount(X.indices, minlength=r)
        stands_for = _twins(X, frequency) if join_twins else np.arange(r)
        standing = np.flatnonzero((stands_for == np.arange(r)) & (frequency > 0))
        first = standing[np.argsort(-frequency[standing], kind="stable")]
        column = np.full(r, -1, dtype=np.int64)
        column[first] = np.arange(len(first))
        of_feature = column[stands_for]
        count = np.bincount(of_feature[of_feature >= 0], minlength=len(first))
        return cls(first, count.astype(np.int64), of_feature)

    def chosen(self, X: Matrix) -> Matrix:
        """The distinct columns of features, (n, u) from (n, r), with sorted indices."""
        column = self.of_feature.astype(X.indices.dtype)[X.indices]
        standing = self.first[column] == X.indices
        before = np.concatenate([[0], np.cumsum(standing)]).astype(X.indptr.dtype)
        shape = (X.shape[0], len(self.first))
        chosen = csr_array((X.data[standing], column[standing], before[X.indptr]), shape=shape)
        chosen.sort_indices()
        return chosen

    def spread(self, weights: Floats) -> Floats:
        """(r, k) weights of features from (u, k) weights of columns; 0 for absent features."""
        result = np.zeros((len(self.of_feature), weights.shape[1]))
        present = self.of_feature >= 0
        result[present] = weights[self.of_feature[present]]
        return result


def _twins(X: Matrix, frequency: Ints) -> Ints:
    """(r,) for each feature the first with the same column, itself if there is none or it is not rare."""
    rare = frequency <= _RARE
    entries = np.flatnonzero(rare[X.indices])
    rows = np.searchsorted(X.indptr, entries, side="right") - 1
    columns = X.indices[entries]
    # Entries by feature, examples in order: place is the how manieth value of its feature each one is.
    order = np.argsort(columns, kind="stable")
    columns, rows, values = columns[order], rows[order], X.data[entries][order]
    starts = np.flatnonzero(np.diff(columns, prepend=-1))
    place = np.arange(len(columns)) - np.repeat(starts, np.diff(starts, append=len(columns)))
    features = columns[starts]
    nth = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(columns)))
    keys = np.full((len(starts), 2 * _RARE), -1, dtype=np.int64)
    keys[nth, place] = rows
    keys[nth, _RARE + place] = values.view(np.int64)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    stands_for = np.arange(X.shape[1])
    stands_for[features] = features[first[inverse.ravel()]]
    return stands_for


@dataclass(frozen=True)
class Weights:
    """What figure 2 asks of the training examples at some α.

    W is kept in the units of the features: as sums of q |x|, which is W times the scale of h. Sums over
    relevant labels are kept apart from those over irrelevant ones, and where features are signed, the sums
    over negative values stand u columns after those over positive ones.

    Attributes:
        positives: (k, u or 2u) sums over relevant labels.
        negatives: (u or 2u, k) sums over irrelevant labels.
        total: all sums of all features together, at least as large as any of them.
        loss: mean covering loss.
        error: mean covering error.
    """

    positives: Floats
    negatives: Floats
    total: float
    loss: float
    error: float

    def blocks(self, u: int, more: float = 0.0) -> Iterator[tuple[slice, Floats, Floats]]:
        """W₊ and W₋ of some of the u columns at a time, (columns, k) each; the next take their place.

        Args:
            u: columns.
            more: added to each.
        """
        signed = len(self.negatives) > u
        agree_at_once, differ_at_once = np.empty((2, min(_FEATURES, u), self.negatives.shape[1]))
        for a in range(0, u, _FEATURES):
            b = min(a + _FEATURES, u)
            agree = np.add(self.positives[:, a:b].T, more, out=agree_at_once[: b - a])
            differ = np.add(self.negatives[a:b], more, out=differ_at_once[: b - a])
            if signed:
                agree += self.negatives[u + a : u + b]
                differ += self.positives[:, u + a : u + b].T
            yield slice(a, b), agree, differ

    def mean(self, count: Ints) -> float:
        """The mean of W₊ + W₋ over the pairs of feature and label where it is positive, 0 if it is nowhere.

        Args:
            count: (u,) how many features share each column.
        """
        u, k = len(count), len(self.positives)
        signed = len(self.negatives) > u
        # W₋ is hardly ever 0: W₊ is looked up there only.
        empty = self.negatives == 0
        if signed:
            empty = empty[:u] & empty[u:]
        columns, labels = np.divmod(np.flatnonzero(empty), k)
        agree = self.positives[labels, columns]
        if signed:
            agree = agree + self.positives[labels, columns + u]
        pairs = k * int(count.sum()) - int(count[columns[agree == 0]].sum())
        return self.total / pairs if pairs else 0.0


class CoveringProblem:
    """The training examples, ready to be weighed again and again.

    Args:
        X: (g, r) features.
        Y: (g, k) label sets.
        covering: compiled for the labels.
        join_twins: features with equal columns are weighed once, for templates that treat them alike.

    Attributes:
        columns: the u distinct columns that the weights are of.
        scale: the largest absolute feature value, which h divides by.
    """

    def __init__(self, X: Matrix, Y: Labels, covering: CompiledCovering, *, join_twins: bool) -> None:
        self.columns = Columns.of(X, join_twins=join_twins)
        self.scale = float(np.abs(X.data).max()) if X.nnz else 1.0
        u, k = len(self.columns.first), Y.shape[1]
        self._examples = Y.shape[0]
        signed = bool(X.nnz and X.data.min() < 0)
        # A product with a block writes all sums: blocks grow with these, so that they stay a small part.
        size = max(_BLOCK, u * k) // max(1, k)
        keep = int(np.diff(X.indptr).astype(np.int64) @ np.diff(Y.indptr)) <= _KEPT
        self._blocks = [
            _Block.of(self.columns, X[a : a + size], Y[a : a + size], covering, signed=signed, keep=keep)
            for a in range(0, Y.shape[0], size)
        ]

    def weigh(self, weights: Floats) -> Weights:
        """The sums of figure 2, the loss and the error.

        Args:
            weights: (u, k) α over the scale of h, a row for each column.
        """
        parts = (block.weigh(weights) for block in self._blocks)
        positives, negatives, totals, loss, error = next(parts)
        for more_positives, more_negatives, more, more_loss, more_error in parts:
            positives += more_positives
            negatives += more_negatives
            totals += more
            loss += more_loss
            error += more_error
        total = math.fsum(totals)  # exact, so that the order of the labels cannot matter
        return Weights(positives, negatives, total, loss / self._examples, error / self._examples)


@dataclass(frozen=True)
class _Block:
    """Some consecutive examples.

    Attributes:
        X: (n, u) features times the number of features that share the column, for scores.
        folded: (n, u or 2u) features, signs kept apart, for sums.
        sizes: (n,) the sum of each example's absolute features.
        labels: (n, k) label sets.
        pieces: the examples grouped by cover.
        order: the relevant entries by label.
        gathered: for every relevant entry, by label, a column with the folded features of its example; the
            rows are (label, feature) pairs. None where it is gathered anew each time.
    """

    X: Matrix
    folded: Matrix
    sizes: Floats
    labels: Labels
    pieces: list[Piece]
    order: Ints
    gathered: csc_array[Any] | None

    @classmethod
    def of(
        cls, columns: Columns, X: Matrix, Y: Labels, covering: CompiledCovering, *, signed: bool, keep: bool
    ) -> _Block:
        """The block of (n, r) features and (n, k) label sets."""
        X = columns.chosen(X)
        folded = X
        if signed:
            below = np.where(X.data < 0, X.shape[1], 0).astype(X.indices.dtype)
            shape = (X.shape[0], 2 * X.shape[1])
            folded = csr_array((np.abs(X.data), X.indices + below, X.indptr.copy()), shape=shape)
            folded.sort_indices()
        if (columns.count > 1).any():
            X = with_data(X, X.data * columns.count[X.indices])
        order = np.argsort(Y.indices, kind="stable")
        gathered = _gathered(folded, Y, order) if keep else None
        sizes = np.asarray(abs(X).sum(axis=1), dtype=np.float64)
        return cls(X, folded, sizes, Y, covering.pieces(Y), order, gathered)

    def weigh(self, weights: Floats) -> tuple[Floats, Floats, Floats, float, float]:
        """The block's share of ``Weights``; totals label by label, loss and error as sums over examples."""
        q = self.X @ weights
        relevant = np.empty(self.labels.nnz)
        totals = np.zeros(self.labels.shape[1])
        loss = error = 0.0
        for piece in self.pieces:
            found = piece.evaluate(q[piece.rows])
            q[piece.rows] = found.negatives
            relevant[piece.positions] = found.positives
            sizes = self.sizes[piece.rows]
            # Not a product: the order of a product's additions could change with its threads.
            totals += np.einsum("i,ij->j", sizes, found.negatives)
            spent = found.positives * sizes[piece.entries.rows]
            totals += np.bincount(piece.entries.columns, spent, len(totals))
            loss += float(found.loss.sum())
            error += float(found.error.sum())
        gathered = _gathered(self.folded, self.labels, self.order) if self.gathered is None else self.gathered
        positives = (gathered @ relevant[self.order]).reshape(self.labels.shape[1], self.folded.shape[1])
        return positives, self.folded.T @ q, totals, loss, error


def _gathered(folded: Matrix, labels: Labels, order: Ints) -> csc_array[Any]:
    (n, width), k = folded.shape, labels.shape[1]
    rows = np.repeat(np.arange(n), np.diff(labels.indptr))[order]
    values = folded[rows]
    wide = np.dtype(np.int64 if width * k > np.iinfo(np.int32).max else np.int32)
    first = labels.indices[order].astype(wide) * width
    indices = values.indices + np.repeat(first, np.diff(values.indptr))
    return csc_array((values.data, indices, values.indptr), shape=(k * width, len(rows)))
