"""The distinct columns of the training features of AdaBoost.LC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Floats, Ints, Matrix

_RARE = 8
"""Columns with at most so many values are compared; fuller columns are hardly ever equal."""


@dataclass(frozen=True)
class DistinctColumns:
    """The distinct columns of the training features, by falling frequency.

    Features with equal columns have the same sums in every round. Features without a value are left out. The
    order by frequency keeps the columns that a product reads most often close together in memory.

    Attributes:
        first_feature: (u,) the first feature of each column.
        multiplicity: (u,) how many features have this column.
        of_feature: (r,) the column of each feature, -1 for a feature without a value.
    """

    first_feature: Ints
    multiplicity: Ints
    of_feature: Ints

    @classmethod
    def of(cls, X: Matrix, *, merge_equal: bool) -> DistinctColumns:
        """The columns of training features.

        Args:
            X: (g, r) features.
            merge_equal: whether features with equal columns share a column.
        """
        r = X.shape[1]
        frequency = np.bincount(X.indices, minlength=r)
        representative = _representatives(X, frequency) if merge_equal else np.arange(r)
        kept = np.flatnonzero((representative == np.arange(r)) & (frequency > 0))
        first_feature = kept[np.argsort(-frequency[kept], kind="stable")]
        column = np.full(r, -1, dtype=np.int64)
        column[first_feature] = np.arange(len(first_feature))
        of_feature = column[representative]
        multiplicity = np.bincount(of_feature[of_feature >= 0], minlength=len(first_feature))
        return cls(first_feature, multiplicity.astype(np.int64), of_feature)

    def select(self, X: Matrix) -> Matrix:
        """(n, u) the distinct columns of (n, r) features, with sorted indices."""
        column = self.of_feature.astype(X.indices.dtype)[X.indices]
        kept = self.first_feature[column] == X.indices
        kept_before = np.concatenate([[0], np.cumsum(kept)]).astype(X.indptr.dtype)
        shape = (X.shape[0], len(self.first_feature))
        selected = csr_array((X.data[kept], column[kept], kept_before[X.indptr]), shape=shape)
        selected.sort_indices()
        return selected

    def expand(self, weights: Floats) -> Floats:
        """(r, k) weights of features from (u, k) weights of columns; 0 for features without a value."""
        expanded = np.zeros((len(self.of_feature), weights.shape[1]))
        present = self.of_feature >= 0
        expanded[present] = weights[self.of_feature[present]]
        return expanded


def _representatives(X: Matrix, frequency: Ints) -> Ints:
    """(r,) for each feature, the first feature with the same column; frequent features represent themselves.

    Args:
        X: (g, r) features.
        frequency: (r,) values of each column.
    """
    rare = frequency <= _RARE
    entries = np.flatnonzero(rare[X.indices])
    rows = np.searchsorted(X.indptr, entries, side="right") - 1
    columns = X.indices[entries]
    # Entries by feature, with the examples in order; `place` numbers the entries of each feature.
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
    representative = np.arange(X.shape[1])
    representative[features] = features[first[inverse.ravel()]]
    return representative
