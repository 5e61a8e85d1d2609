"""Histograms of the scores of a label, for examples with and without the label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Labels

BINS = 20


@dataclass(frozen=True)
class ScoreHistogram:
    """A histogram of a label's scores with bins of equal width.

    Attributes:
        label: the label.
        low: the smallest score, which is the lower bound of the first bin.
        high: the largest score, which is the upper bound of the last bin and belongs to it.
        with_label: the number of examples with the label in each bin.
        without_label: the number of examples without the label in each bin.
    """

    label: str
    low: float
    high: float
    with_label: list[int]
    without_label: list[int]


def score_histograms(
    Y: Labels, scores: Floats, labels: Sequence[str], unknown: Labels | None = None
) -> list[ScoreHistogram]:
    """Return one histogram per label, in label order; an empty list if there are no examples.

    If all scores of a label are equal, its histogram has one bin. Examples for which a label is unknown are
    not counted for it. If it is unknown for all, its bins are empty.

    Args:
        Y: (n, k) true label sets.
        scores: (n, k) scores.
        labels: the k label names.
        unknown: (n, k) unknown labels; None if there are none.

    >>> from scipy.sparse import csr_array
    >>> histogram, = score_histograms(csr_array([[1], [0]]), np.array([[1.0], [1.0]]), ["a"])
    >>> histogram.low, histogram.with_label, histogram.without_label
    (1.0, [1], [1])
    """
    if not Y.shape[0]:
        return []
    columns = Y.tocsc()
    unknown_columns = None if unknown is None else unknown.tocsc()
    histograms = []
    for j, label in enumerate(labels):
        relevant = np.zeros(Y.shape[0], dtype=np.bool_)
        relevant[columns.indices[columns.indptr[j] : columns.indptr[j + 1]]] = True
        without = ~relevant
        if unknown_columns is not None:
            start, end = unknown_columns.indptr[j : j + 2]
            without[unknown_columns.indices[start:end]] = False
        histograms.append(_histogram(label, scores[:, j], relevant, without))
    return histograms


def _histogram(label: str, scores: Floats, relevant: Bools, without: Bools) -> ScoreHistogram:
    low, high = float(scores.min()), float(scores.max())
    bins = BINS if high > low else 1
    # Division by 2 prevents an overflow of the range.
    position = (scores / 2 - low / 2) / (high / 2 - low / 2) if bins > 1 else np.zeros(len(scores))
    bin_of = np.minimum((position * bins).astype(np.int64), bins - 1)
    return ScoreHistogram(
        label=label,
        low=low,
        high=high,
        with_label=np.bincount(bin_of[relevant], minlength=bins).tolist(),
        without_label=np.bincount(bin_of[without], minlength=bins).tolist(),
    )
