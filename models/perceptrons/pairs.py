"""Pairs of labels, and the votes of their perceptrons."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from models.arrays import AnyArray, Bools, Floats

Voting: TypeAlias = Literal["max_wins", "weighted"]

_BLOCK_PRODUCTS = 1 << 17
"""Inner products that are counted at once; few enough to fit in the processor's cache."""


class Pairs:
    """The k(k-1)/2 pairs (u, v), u < v, of k labels, in lexicographic order.

    Attributes:
        n_labels: k.
        first: (pairs,) the label u of each pair.
        second: (pairs,) the label v of each pair.
        index: (k, k) the index of the pair of two labels, in either order; 0 on the diagonal.
        of_label: (k, k-1) for each label the indices of its pairs, ordered by the other label.
        is_first: (k, k-1) whether the label is the u of each of these pairs.

    >>> pairs = Pairs(3)
    >>> list(zip(pairs.first.tolist(), pairs.second.tolist()))
    [(0, 1), (0, 2), (1, 2)]
    >>> pairs.of_label[1].tolist(), pairs.is_first[1].tolist()
    ([0, 2], [False, True])
    """

    def __init__(self, k: int) -> None:
        self.n_labels = k
        self.first: NDArray[np.intp]
        self.second: NDArray[np.intp]
        self.first, self.second = np.triu_indices(k, 1)
        self.index: NDArray[np.intp] = np.zeros((k, k), dtype=np.intp)
        self.index[self.first, self.second] = self.index[self.second, self.first] = np.arange(len(self))
        others = ~np.eye(k, dtype=np.bool_)
        self.of_label: NDArray[np.intp] = self.index[others].reshape(k, max(k - 1, 0))
        after: Bools = np.triu(np.ones((k, k), dtype=np.bool_), 1)
        self.is_first: Bools = after[others].reshape(k, max(k - 1, 0))

    def __len__(self) -> int:
        return len(self.first)


@lru_cache(maxsize=16)
def pairs_of(k: int) -> Pairs:
    """Return the pairs of k labels, which are cached."""
    return Pairs(k)


def side_votes(products: AnyArray, is_first: Bools | np.bool_, voting: Voting) -> Floats:
    """Return the votes that one label of each pair receives.

    Args:
        products: inner products w_uv·x, any shape.
        is_first: whether the label is u; broadcasts against ``products``. The perceptron votes for u if the
            product is at least 0 (sgn(0) = +1), else for v.
        voting: a vote counts 1 (``max_wins``) or |w_uv·x| (``weighted``).

    Returns:
        float64 of the same shape.
    """
    wins: Bools = (products >= 0) == is_first
    if voting == "max_wins":
        return wins.astype(np.float64)
    return np.where(wins, np.abs(products), 0.0).astype(np.float64, copy=False)


def full_votes(products: AnyArray, pairs: Pairs, voting: Voting) -> Floats:
    """Return the (n, k) votes from the (n, pairs) inner products of all perceptrons."""
    result = np.empty((products.shape[0], pairs.n_labels))
    block_rows = max(1, _BLOCK_PRODUCTS // max(1, pairs.of_label.size))
    for start in range(0, len(result), block_rows):
        rows = slice(start, start + block_rows)
        own = products[rows].take(pairs.of_label, axis=1)
        result[rows] = side_votes(own, pairs.is_first, voting).sum(axis=2)
    return result
