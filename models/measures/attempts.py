"""The level of repeated comparisons on the same test documents, and how these are recognized.

If ten versions are compared with the live one on the same documents, each at the level 0.05, chance promotes
one of them far too often. So the comparisons share one level: the n-th has only a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from models.arrays import Ints

SKETCH_SIZE: Final = 512
"""Maximum number of digests in a sketch."""


def level_of_attempt(alpha: float, attempt: int) -> float:
    """Return the level of a comparison: ``alpha / (n (n + 1))`` for the n-th one.

    The levels of any number of comparisons sum to less than ``alpha``. So with this probability at most, any
    of them finds a difference between versions that are equally good, whatever the comparisons have to do
    with each other and with their results (alpha-spending: Tian and Ramdas 2021, "Online control of the
    familywise error rate").

    Args:
        alpha: the level of all comparisons together.
        attempt: the number of the comparison on these documents, from 1.

    >>> [level_of_attempt(0.06, attempt) for attempt in (1, 2, 3)]
    [0.03, 0.01, 0.005]
    """
    return alpha / (attempt * (attempt + 1))


def document_sketch(digests: Ints) -> list[int]:
    """Return the smallest digests of documents, each once, in ascending order, at most ``SKETCH_SIZE``.

    Two sets with many documents in common have small digests in common, too (Broder 1997, "On the resemblance
    and containment of documents"): if they share one document in a hundred, their sketches share one with a
    probability above 0.99. So a data set of any size takes little space.

    Args:
        digests: (n,) a digest of each document, of 64 random bits.

    >>> import numpy as np
    >>> document_sketch(np.array([7, -2, 7]))
    [-2, 7]
    """
    smallest: list[int] = np.unique(digests)[:SKETCH_SIZE].tolist()
    return smallest


def attempt_number(documents: Sequence[int], earlier: Iterable[Sequence[int]]) -> int:
    """Return the number of a comparison, from 1: one more than the earlier comparisons that share a document.

    One common document is enough. Otherwise, a few other documents, or another random split of the same data
    set, would begin again with the whole level.

    Args:
        documents: the sketch of the documents of the comparison.
        earlier: the sketches of the earlier comparisons.

    >>> attempt_number([1, 5], [[5, 9], [2, 3], [1, 5]])
    3
    """
    own = set(documents)
    return 1 + sum(not own.isdisjoint(sketch) for sketch in earlier)
