"""How a label's scores are spread over the examples that have it, and over those that do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Labels

BINS = 20


@dataclass(frozen=True)
class ScoreHistogram:
    """Counts of a label's scores in bins of equal width.

    Attributes:
        label: its name.
        low: the smallest score, where the first bin begins.
        high: the largest score, where the last bin ends; it belongs to that bin.
        with_label: for each bin the examples that have the label.
        without_label: for each bin the examples that do not.
    """

    label: str
    low: float
    high: float
    with_label: list[int]
    without_label: list[int]


def score_histograms(Y: Labels, scores: Floats, labels: Sequence[str]) -> list[ScoreHistogram]:
    """One histogram a label, in label order; none where there are no examples.

    A label with the same score everywhere has one bin.

    Args:
        Y: (n, k) true label sets.
        scores: (n, k) scores.
        labels: the k names.

    >>> from scipy.sparse import csr_array
    >>> histogram, = score_histograms(csr_array([[1], [0]]), np.array([[1.0], [1.0]]), ["a"])
    >>> histogram.low, histogram.with_label, histogram.without_label
    (1.0, [1], [1])
    """
    if not Y.shape[0]:
        return []
    columns = Y.tocsc()
    histograms = []
    for j, label in enumerate(labels):
        relevant = np.zeros(Y.shape[0], dtype=np.bool_)
        relevant[columns.indices[columns.indptr[j] : columns.indptr[j + 1]]] = True
        histograms.append(_histogram(label, scores[:, j], relevant))
    return histograms


def _histogram(label: str, scores: Floats, relevant: Bools) -> ScoreHistogram:
    low, high = float(scores.min()), float(scores.max())
    bins = BINS if high > low else 1
    # Halved, so that the width of the widest range of floats is a float too.
    place = (scores / 2 - low / 2) / (high / 2 - low / 2) if bins > 1 else np.zeros(len(scores))
    bin_of = np.minimum((place * bins).astype(np.int64), bins - 1)
    return ScoreHistogram(
        label=label,
        low=low,
        high=high,
        with_label=np.bincount(bin_of[relevant], minlength=bins).tolist(),
        without_label=np.bincount(bin_of[~relevant], minlength=bins).tolist(),
    )
