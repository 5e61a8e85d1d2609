"""Estimates which share of the terms of a new document are no features."""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, Ints, Matrix
from models.features.limits import Frequency, n_documents
from models.features.selection import document_frequency


def unknown_if_held_out(counts: Matrix, total: Floats, features: Ints, min_df: Frequency) -> Floats:
    """Return the share of unknown terms that each training document would have if it was held out.

    A term that only this document contains would then be unknown, as in the estimate of unseen events of Good
    and Turing (Good 1953), and so would a term with fewer than ``min_df`` other documents. The other terms
    would be the same: what one document changes in the selection of terms is ignored.

    Args:
        counts: (g, r) occurrences of terms within the limits of the vocabulary.
        total: (g,) occurrences of all terms of each document.
        features: the columns of the terms that are features.
        min_df: minimum number of documents of a term.

    Returns:
        (g,) shares from 0 to 1; NaN for a document without terms.

    >>> from scipy.sparse import csr_array
    >>> counts = csr_array([[3.0, 1.0], [1.0, 0.0]])
    >>> unknown_if_held_out(counts, np.array([4.0, 2.0]), np.array([0, 1]), 1).tolist()
    [0.25, 0.5]
    """
    known = np.zeros(counts.shape[1])
    frequency = document_frequency(counts)[features]
    known[features] = frequency - 1 >= max(1, n_documents(min_df, counts.shape[0]))
    shares = np.full(len(total), np.nan)
    np.divide(total - counts @ known, total, out=shares, where=total > 0)
    # Rounding errors of weighted counts must not leave the range.
    clipped: Floats = np.clip(shares, 0.0, 1.0)
    return clipped
