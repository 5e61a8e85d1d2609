"""Leaves the unknown labels of examples out of measures."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Floats, Labels


def without_unknown(predicted: Labels, scores: Floats, unknown: Labels) -> tuple[Labels, Floats]:
    """Return predictions in which unknown labels are not predicted and rank last.

    An unknown label is not in the true label set either. So it is never wrong, and it is never in the wrong
    order with a relevant label: every measure of label sets and rankings depends on the known labels alone.

    Args:
        predicted: (n, k) predicted label sets.
        scores: (n, k) scores.
        unknown: (n, k) unknown labels.

    >>> predicted, unknown = csr_array([[1, 1]]), csr_array([[0, 1]])
    >>> known, scores = without_unknown(predicted, np.array([[0.5, 2.0]]), unknown)
    >>> known.toarray().tolist(), scores.tolist()
    ([[1, 0]], [[0.5, -inf]])
    """
    known = csr_array(predicted - predicted.multiply(unknown))
    known.eliminate_zeros()
    known.sort_indices()
    return known, np.where(unknown.toarray() != 0, -np.inf, scores)
