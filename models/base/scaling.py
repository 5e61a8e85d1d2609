"""Detects features whose scales harm learners that compare examples by inner products."""

from __future__ import annotations

import numpy as np

from models.arrays import Matrix

MIN_EXAMPLES = 10
"""Fewer examples are too few to state that their lengths or scales differ."""

MAX_LENGTH_RATIO = 2.0
"""Ratio of the lengths of documents, from the shortest to the longest 5 %, from which there is a warning."""

MAX_LENGTH = 10.0
"""Median length of documents from which there is a warning: the cost C is meant for lengths about 1."""

MAX_SCALE_RATIO = 1e3
"""Ratio of the largest values of two numeric features from which there is a warning."""


def scaling_warning(X: Matrix, algorithm: str, *, numeric: bool) -> str | None:
    """Return a warning if the features should be scaled for a linear learner, with what to do; else None.

    Vectors of text should have the same length. The lengths of documents with a feature must differ by at
    most a factor of 2 between the shortest and the longest 5 %, and their median must be at most 10. Numeric
    features should have similar scales: the largest absolute values of two features, of which one is the
    median feature, must differ by at most a factor of 1,000.

    Args:
        X: (g, r) features of the training examples.
        algorithm: name of the learner.
        numeric: whether the features are measurements rather than words.
    """
    if X.shape[0] < MIN_EXAMPLES or not X.nnz:
        return None
    return _scales_warning(X, algorithm) if numeric else _lengths_warning(X, algorithm)


def _lengths_warning(X: Matrix, algorithm: str) -> str | None:
    filled = np.flatnonzero(np.diff(X.indptr))
    lengths = np.sqrt(np.add.reduceat(X.data * X.data, X.indptr[filled]))
    short, median, long = np.percentile(lengths, [5, 50, 95]).tolist()
    if long <= MAX_LENGTH_RATIO * short and median <= MAX_LENGTH:
        return None
    return (
        f"the feature vectors of most documents have lengths from {short:.3g} to {long:.3g}; {algorithm} "
        "learns better and faster from vectors of length 1; set the scaling of the features to unit"
    )


def _scales_warning(X: Matrix, algorithm: str) -> str | None:
    largest = np.zeros(X.shape[1])
    np.maximum.at(largest, X.indices, np.abs(X.data))
    largest = largest[largest > 0]
    smallest, median, highest = largest.min(), np.median(largest), largest.max()
    ratio = float(max(highest / median, median / smallest))
    if ratio <= MAX_SCALE_RATIO:
        return None
    return (
        f"the scales of the features differ by a factor of {ratio:,.0f} or more; {algorithm} hardly uses the "
        "features with small values; set the scaling of the features to standard or max_abs"
    )
