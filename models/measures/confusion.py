"""Confusion between labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Ints, Labels


def is_single_label(Y: Labels) -> bool:
    """Whether every example has exactly one label."""
    return bool((np.diff(Y.indptr) == 1).all()) and Y.shape[0] > 0


def confusion(Y: Labels, predicted: Ints) -> Ints:
    """Return the confusion matrix of single-label data.

    Args:
        Y: (n, k) true label sets of one label each.
        predicted: (n,) the index of the predicted label of each example.

    Returns:
        (k, k) counts, with the true labels as rows and the predicted labels as columns.

    Raises:
        ValueError: an example has no label or several labels.
    """
    if not is_single_label(Y):
        raise ValueError("a confusion matrix needs exactly one label per example; use co_errors")
    counts = np.zeros((Y.shape[1], Y.shape[1]), dtype=np.int64)
    np.add.at(counts, (Y.indices, predicted), 1)
    return counts


def co_errors(Y: Labels, predicted: Labels) -> csr_array[Any, tuple[int, int]]:
    """Count pairs of errors of multilabel data.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.

    Returns:
        (k, k) sparse counts of the examples for which the row's label is missing and the column's label is
        wrongly predicted. For single-label data, these are the off-diagonal counts of the confusion matrix.
    """
    true, positive = Y.astype(np.int64), predicted.astype(np.int64)
    shared = true.multiply(positive)
    counts = csr_array((true - shared).T @ (positive - shared))
    counts.eliminate_zeros()
    counts.sort_indices()
    return counts
