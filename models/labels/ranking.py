"""Rankings: the labels of an example by descending score. Ties are broken by label order."""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, Ints


def ranking(scores: Floats) -> Ints:
    """Return the labels of each example, best first.

    Args:
        scores: (n, k) scores.

    Returns:
        (n, k) label indices. Labels with equal scores are in label order.

    >>> ranking(np.array([[0.5, 2.0, 0.5]]))
    array([[1, 0, 2]])
    """
    return np.argsort(-scores, axis=1, kind="stable").astype(np.int64, copy=False)


def ranks(scores: Floats) -> Ints:
    """Return the 1-based position r(c) of each label in its example's ranking, (n, k).

    >>> ranks(np.array([[0.5, 2.0, 0.5]]))
    array([[2, 1, 3]])
    """
    order = ranking(scores)
    positions = np.empty_like(order)
    np.put_along_axis(positions, order, np.arange(1, order.shape[1] + 1)[np.newaxis, :], axis=1)
    return positions
