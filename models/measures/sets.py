"""Measures of label sets, averaged over examples."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Labels


def hamming_loss(Y: Labels, predicted: Labels, unknown: Labels | None = None) -> float:
    """Fraction of (example, label) pairs that are wrong, among the pairs that are known.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
        unknown: (n, k) unknown labels, disjoint from the predicted ones; None if there are none.

    >>> from scipy.sparse import csr_array
    >>> hamming_loss(csr_array([[1, 0], [0, 1]]), csr_array([[1, 0], [1, 1]]))
    0.25
    """
    pairs = Y.shape[0] * Y.shape[1] - (0 if unknown is None else int(unknown.nnz))
    return int(wrong_labels(Y, predicted).sum()) / pairs if pairs else float("nan")


def subset_zero_one(Y: Labels, predicted: Labels) -> float:
    """Fraction of examples whose predicted label set differs from the true one."""
    return _mean(wrong_labels(Y, predicted) > 0)


def accuracy(Y: Labels, predicted: Labels) -> float:
    """Fraction of examples whose predicted label set equals the true one.

    For single-label data, this is the usual accuracy.
    """
    return _mean(wrong_labels(Y, predicted) == 0)


def wrong_labels(Y: Labels, predicted: Labels) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return (n,) the number of wrongly predicted and missing labels of each example."""
    shared = Y.multiply(predicted).sum(axis=1, dtype=np.int64)
    return np.asarray(Y.sum(axis=1, dtype=np.int64) + predicted.sum(axis=1, dtype=np.int64) - 2 * shared)


def _mean(flags: Bools) -> float:
    return int(flags.sum()) / len(flags) if len(flags) else float("nan")
