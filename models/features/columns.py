"""Operations on sparse matrices that SciPy lacks or performs more slowly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Floats, Ints, Matrix, Vector, with_data

_FIRST = np.zeros(1, dtype=np.int64)


def stack_rows(parts: Sequence[Matrix], n_columns: int) -> Matrix:
    """Stack matrices vertically into a matrix with ``n_columns`` columns. A part may have fewer columns."""
    if not parts:
        return csr_array((0, n_columns), dtype=np.float64)
    indptr = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)]).cumsum()
    data = np.concatenate([part.data for part in parts])
    indices = np.concatenate([part.indices for part in parts])
    if len(data) <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    return csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns))


def empty_rows(X: Matrix | Vector) -> Bools:
    """Return whether each example has no feature, (n,)."""
    return np.array([not len(X.indices)]) if isinstance(X, Vector) else np.diff(X.indptr) == 0


def move_columns(matrix: Matrix, new_columns: AnyArray, n_columns: int) -> Matrix:
    """Move or drop the columns of a matrix.

    Args:
        matrix: (n, m) values.
        new_columns: (m,) the new index of each column, or -1 to drop the column. The indices are distinct.
        n_columns: number of columns of the result.

    Returns:
        (n, n_columns) the result, with sorted indices and without explicit zeros.
    """
    indices = new_columns.astype(np.int32)[matrix.indices]
    kept = (indices >= 0) & (matrix.data != 0)
    indptr = np.cumsum(np.concatenate(([False], kept)), dtype=matrix.indptr.dtype)[matrix.indptr]
    moved = csr_array((matrix.data[kept], indices[kept], indptr), shape=(matrix.shape[0], n_columns))
    if moved.has_sorted_indices:
        return moved
    return csr_array(moved.tocsc().tocsr())  # a counting sort, in linear time


def keep_columns(matrix: Matrix, kept: Ints) -> Matrix:
    """Return the columns with some distinct indices, in the order of these, without explicit zeros."""
    new_columns = np.full(matrix.shape[1], -1, dtype=np.int32)
    new_columns[kept] = np.arange(len(kept), dtype=np.int32)
    return move_columns(matrix, new_columns, len(kept))


def first_columns(matrix: Matrix, n_columns: int) -> Matrix:
    """Return the first columns of a matrix with sorted indices."""
    kept = matrix.indices < n_columns
    indptr = np.cumsum(np.concatenate(([False], kept)), dtype=matrix.indptr.dtype)[matrix.indptr]
    return csr_array((matrix.data[kept], matrix.indices[kept], indptr), shape=(matrix.shape[0], n_columns))


def normalize_rows(matrix: Matrix) -> Matrix:
    """Divide every row by its Euclidean length. Rows of zeros stay zero.

    >>> normalize_rows(csr_array([[3.0, 4.0], [0.0, 0.0]])).toarray().tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    sizes = np.diff(matrix.indptr)
    filled = sizes > 0
    if not filled.any():
        return matrix
    starts, sizes = matrix.indptr[:-1][filled], sizes[filled]
    largest = np.repeat(np.maximum.reduceat(np.abs(matrix.data), starts), sizes)
    data = matrix.data / largest  # prevents overflow and underflow of the squares
    length = np.sqrt(np.add.reduceat(data * data, starts))
    return with_data(matrix, data / np.repeat(length, sizes))


def normalize_row(data: Floats) -> Floats:
    """Divide the values of one row by its Euclidean length, exactly as ``normalize_rows`` does."""
    if not len(data):
        return data
    scaled = data / np.abs(data).max()
    # Another function than ``reduceat`` could add the squares in another order.
    normalized: Floats = scaled / np.sqrt(np.add.reduceat(scaled * scaled, _FIRST))
    return normalized
