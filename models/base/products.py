"""Products of examples and weights, with the same rounding for one example as for many."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Floats, Matrix, Vector, read_only

_MAX_GATHERED = 2**18
"""Weights of one example that are copied at once, which limits the memory."""

_MAX_CONVERTED = 2**22
"""Weights that are converted to float64 at once, unless one example has more, which limits the memory."""


def product(X: Matrix | Vector, weights: AnyArray | Matrix) -> Floats:
    """Return the (n, p) products of n examples and (r, p) weights; n is 1 for a vector.

    The weights are an array or a sparse matrix, of float64 or float32. Sums are always in float64.

    The sum over the features of an example is sequential, as in SciPy, so that an example has the same bits
    alone as in a batch. Only the rows of the example's features are read, so that weights can be a memory map
    of a file.

    >>> weights = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> product(Vector(np.array([0, 2]), np.array([1.0, 10.0])), weights)
    array([[51., 62.]])
    """
    if isinstance(X, Vector):
        if not isinstance(weights, np.ndarray):
            return _sparse_product(X, weights)
        if len(X.indices) * weights.shape[1] > _MAX_GATHERED:
            return product(X.to_matrix(len(weights)), weights)
        rows = weights.take(X.indices, axis=0)
        if rows.dtype == np.float64:
            rows *= X.data[:, np.newaxis]
        else:
            rows = rows * X.data[:, np.newaxis]  # in float64
        return sum_of_rows(rows)
    if weights.dtype == np.float64:
        return _dense(X @ weights)
    return _converted_product(X, weights)


def _sparse_product(x: Vector, weights: Matrix) -> Floats:
    """Return the (1, p) product of one example and sparse weights."""
    begins = weights.indptr.take(x.indices).astype(np.int64)
    lengths = weights.indptr.take(x.indices + 1) - begins
    places = np.repeat(begins - lengths.cumsum() + lengths, lengths)
    places += np.arange(len(places))
    terms = np.repeat(x.data, lengths)
    terms *= weights.data.take(places)
    labels = weights.indices.take(places).astype(np.int64)
    sums = np.bincount(labels, weights=terms, minlength=weights.shape[1])
    return np.asarray(sums, dtype=np.float64)[np.newaxis]


def _converted_product(X: Matrix, weights: AnyArray | Matrix) -> Floats:
    """Return the products of examples and weights of another type, block by block of the examples.

    Only the weights of the features of a block are converted to float64, not all weights in each call.
    """
    n, p = X.shape[0], weights.shape[1]
    result = np.empty((n, p))
    start = 0
    while start < n:
        limit = X.indptr[start] + _MAX_CONVERTED // max(1, p)
        end = max(start + 1, int(np.searchsorted(X.indptr, limit, side="right")) - 1)
        block = X if end - start == n else X[start:end]
        features, columns = np.unique(block.indices, return_inverse=True)
        part = csr_array(
            (read_only(block.data), columns, read_only(block.indptr)), shape=(end - start, len(features))
        )
        result[start:end] = _dense(part @ weights[features].astype(np.float64))
        start = end
    return result


def _dense(products: AnyArray | Matrix) -> Floats:
    return np.asarray(products if isinstance(products, np.ndarray) else products.toarray())


def sum_of_rows(rows: Floats) -> Floats:
    """Return the (1, p) sum of (m, p) rows, added one after the other to 0.

    >>> sum_of_rows(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[4., 6.]])
    """
    if rows.shape[1] == 1:  # NumPy sums a single column pairwise
        return np.add.accumulate(np.concatenate([np.zeros((1, 1)), rows]))[-1:]
    return np.add.reduce(rows, axis=0, initial=0.0, keepdims=True)
