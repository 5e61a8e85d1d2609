"""Rankings: the labels of an example by descending score. Ties are broken by label order."""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, Ints

_MIN_PARTITIONED = 256
"""Labels from which it is faster to select the best ones before sorting them."""


def ranking(scores: Floats, top: int | None = None) -> Ints:
    """Return the labels of each example, best first.

    Args:
        scores: (n, k) scores.
        top: number of labels of each example; None for all.

    Returns:
        (n, min(top, k)) label indices. Labels with equal scores are in label order.

    >>> ranking(np.array([[0.5, 2.0, 0.5]]))
    array([[1, 0, 2]])
    >>> ranking(np.array([[0.5, 2.0, 0.5]]), top=2)
    array([[1, 0]])
    """
    negated, k = -scores, scores.shape[1]
    if top is None or k < _MIN_PARTITIONED or 4 * top > k:
        return np.argsort(negated, axis=1, kind="stable").astype(np.int64, copy=False)[:, :top]
    order = np.empty((len(scores), top), dtype=np.int64)
    if top:
        for row, best in zip(negated, order, strict=True):
            # Labels with the same score as the last one that is selected can be on both sides of a partition.
            candidates = np.flatnonzero(row <= np.partition(row, top - 1)[top - 1])
            best[:] = candidates[np.argsort(row[candidates], kind="stable")[:top]]
    return order


def ranks(scores: Floats) -> Ints:
    """Return the 1-based position r(c) of each label in its example's ranking, (n, k).

    >>> ranks(np.array([[0.5, 2.0, 0.5]]))
    array([[2, 1, 3]])
    """
    order = ranking(scores)
    positions = np.empty_like(order)
    np.put_along_axis(positions, order, np.arange(1, order.shape[1] + 1)[np.newaxis, :], axis=1)
    return positions
