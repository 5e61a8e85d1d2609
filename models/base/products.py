"""Products of examples and weights, with the same rounding for one example as for many."""

from __future__ import annotations

import numpy as np

from models.arrays import AnyArray, Floats, Matrix, Vector

_MAX_GATHERED = 2**18
"""Weights of one example that are copied at once, which limits the memory."""


def product(X: Matrix | Vector, weights: AnyArray) -> Floats:
    """Return the (n, p) products of n examples and (r, p) weights; n is 1 for a vector.

    The sum over the features of an example is sequential, as in SciPy, so that an example has the same bits
    alone as in a batch. Only the rows of the example's features are read, so that weights can be a memory map
    of a file.

    >>> weights = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> product(Vector(np.array([0, 2]), np.array([1.0, 10.0])), weights)
    array([[51., 62.]])
    """
    if isinstance(X, Vector):
        if len(X.indices) * weights.shape[1] > _MAX_GATHERED:
            return np.asarray(X.to_matrix(len(weights)) @ weights)
        rows = weights.take(X.indices, axis=0)
        rows *= X.data[:, np.newaxis]
        return sum_of_rows(rows)
    return np.asarray(X @ weights)


def sum_of_rows(rows: Floats) -> Floats:
    """Return the (1, p) sum of (m, p) rows, added one after the other to 0.

    >>> sum_of_rows(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[4., 6.]])
    """
    if rows.shape[1] == 1:  # NumPy sums a single column pairwise
        return np.add.accumulate(np.concatenate([np.zeros((1, 1)), rows]))[-1:]
    return np.add.reduce(rows, axis=0, initial=0.0, keepdims=True)
