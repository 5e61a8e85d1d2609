"""Limits the vocabulary by how many documents contain a term and how often it occurs, without labels."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
from pydantic import Field, StrictInt

from models.arrays import Ints, Matrix

Frequency: TypeAlias = (
    Annotated[StrictInt, Field(ge=1, le=2**31 - 1)] | Annotated[float, Field(gt=0, lt=1, strict=True)]
)
"""A number of documents, or a share of the training documents. 1.0 is neither: it would be mistaken for 1."""

_TOLERANCE = 1e-9


def terms_within(
    counts: Matrix,
    frequency: Ints,
    *,
    min_df: Frequency = 1,
    max_df: Frequency | None = None,
    max_features: int | None = None,
) -> Ints:
    """Return the indices of the terms within all limits, ascending.

    Args:
        counts: (g, r) occurrences of terms.
        frequency: (r,) number of documents that contain each term.
        min_df: minimum frequency, as a number or a share of the g documents.
        max_df: maximum frequency; None for no maximum.
        max_features: maximum number of terms; None for no maximum. The terms with the most occurrences stay,
            among equal ones the first.

    >>> from scipy.sparse import csr_array
    >>> counts = csr_array([[3.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    >>> terms_within(counts, np.array([2, 2, 1]), min_df=2).tolist()
    [0, 1]
    >>> terms_within(counts, np.array([2, 2, 1]), max_df=0.5).tolist()
    [2]
    """
    within = frequency >= n_documents(min_df, counts.shape[0]) - _TOLERANCE
    if max_df is not None:
        within &= frequency <= n_documents(max_df, counts.shape[0]) + _TOLERANCE
    kept: Ints = np.flatnonzero(within)
    if max_features is not None and max_features < len(kept):
        occurrences = np.bincount(counts.indices, weights=counts.data, minlength=counts.shape[1])[kept]
        kept = np.sort(kept[np.argsort(-occurrences, kind="stable")[:max_features]])
    return kept


def n_documents(frequency: Frequency, n_training: int) -> float:
    """Return a frequency as a number of documents, given the number of training documents."""
    return frequency if isinstance(frequency, int) else frequency * n_training
