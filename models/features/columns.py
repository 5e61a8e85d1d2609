"""Small moves on sparse matrices that scipy makes slower or not at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Matrix, with_data


def stacked(parts: Sequence[Matrix], n_columns: int) -> Matrix:
    """The rows of all parts one below the other, in ``n_columns`` columns; a part may have fewer."""
    if not parts:
        return csr_array((0, n_columns), dtype=np.float64)
    bounds = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)]).cumsum()
    data = np.concatenate([part.data for part in parts])
    indices = np.concatenate([part.indices for part in parts])
    if len(data) <= np.iinfo(np.int32).max:
        bounds = bounds.astype(np.int32)
    return csr_array((data, indices, bounds), shape=(len(bounds) - 1, n_columns))


def renumbered(matrix: Matrix, places: AnyArray, n_columns: int) -> Matrix:
    """Every column moved to its place, or dropped where that is -1.

    Args:
        matrix: (n, m) values.
        places: (m,) distinct new columns, or -1.
        n_columns: columns of the result.

    Returns:
        (n, n_columns) with sorted indices and no explicit zeros.
    """
    indices = places.astype(np.int32)[matrix.indices]
    kept = (indices >= 0) & (matrix.data != 0)
    bounds = np.cumsum(np.concatenate(([False], kept)), dtype=matrix.indptr.dtype)[matrix.indptr]
    moved = csr_array((matrix.data[kept], indices[kept], bounds), shape=(matrix.shape[0], n_columns))
    if moved.has_sorted_indices:
        return moved
    return csr_array(moved.tocsc().tocsr())  # sorts by counting, in linear time


def first_columns(matrix: Matrix, n_columns: int) -> Matrix:
    """The first columns of a matrix with sorted indices; the others are dropped."""
    kept = matrix.indices < n_columns
    bounds = np.cumsum(np.concatenate(([False], kept)), dtype=matrix.indptr.dtype)[matrix.indptr]
    return csr_array((matrix.data[kept], matrix.indices[kept], bounds), shape=(matrix.shape[0], n_columns))


def unit_rows(matrix: Matrix) -> Matrix:
    """Every row divided by its Euclidean length; rows of zeros stay.

    >>> unit_rows(csr_array([[3.0, 4.0], [0.0, 0.0]])).toarray().tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    sizes = np.diff(matrix.indptr)
    filled = sizes > 0
    if not filled.any():
        return matrix
    starts, sizes = matrix.indptr[:-1][filled], sizes[filled]
    largest = np.repeat(np.maximum.reduceat(np.abs(matrix.data), starts), sizes)
    data = matrix.data / largest  # first, so that squares neither overflow nor vanish
    length = np.sqrt(np.add.reduceat(data * data, starts))
    return with_data(matrix, data / np.repeat(length, sizes))
