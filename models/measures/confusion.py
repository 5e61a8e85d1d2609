"""Which labels are taken for which."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Ints, Labels


def is_single_label(Y: Labels) -> bool:
    """Whether every example has exactly one label."""
    return bool((np.diff(Y.indptr) == 1).all()) and Y.shape[0] > 0


def confusion(Y: Labels, guessed: Ints) -> Ints:
    """The confusion matrix of single-label data.

    Args:
        Y: (n, k) true label sets of one label each.
        guessed: (n,) the index of the label taken for each example.

    Returns:
        (k, k) counts; row: the true label, column: the guessed one.

    Raises:
        ValueError: an example has no label, or several.
    """
    if not is_single_label(Y):
        raise ValueError("a confusion matrix needs exactly one label an example; use co_errors")
    counts = np.zeros((Y.shape[1], Y.shape[1]), dtype=np.int64)
    np.add.at(counts, (Y.indices, guessed), 1)
    return counts


def co_errors(Y: Labels, predicted: Labels) -> csr_array[Any, tuple[int, int]]:
    """The errors of multilabel data that come together.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.

    Returns:
        (k, k) sparse counts of the examples that miss the row's label and wrongly have the column's. On
        single-label sets these are the off-diagonal counts of the confusion matrix.
    """
    true, given = Y.astype(np.int64), predicted.astype(np.int64)
    shared = true.multiply(given)
    counts = csr_array((true - shared).T @ (given - shared))
    counts.eliminate_zeros()
    counts.sort_indices()
    return counts
