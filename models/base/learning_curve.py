"""Learning curves: each example is tested before it is learned from, and the losses are accumulated.

This is how Loza Mencía and Fürnkranz (section VI-C, figures 4 to 6) show how quickly an incremental learner
adapts. Nothing is held back: the curve comes out of the pass that trains.
"""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, Ints, Labels

MEASURES = ("is_error", "error_set_size", "margin", "average_precision")
"""The ranking measures of a curve, in the order of its columns."""

_CELLS = 1 << 20
"""Comparisons made at once, so that memory stays small for many labels."""


def example_measures(scores: Floats, Y: Labels) -> Floats:
    """The four ranking measures of each example that has a relevant label (section II-C, eqs. 4 to 8).

    Args:
        scores: (n, k) scores; among equal scores the label that sorts first ranks first.
        Y: (n, k) relevant labels.

    Returns:
        (n', 4) in the order of :data:`MEASURES`, example by example (``models.measures`` has their means);
        examples without relevant labels are left out. Average precision is 1 for a perfect ranking, the
        other three are 0.

    >>> from scipy.sparse import csr_array
    >>> example_measures(np.array([[3.0, 2.0, 1.0]]), csr_array(np.array([[0, 1, 1]])))
    array([[1.        , 2.        , 2.        , 0.58333333]])
    """
    counts = np.diff(Y.indptr).astype(np.int64)
    rows = np.repeat(np.arange(Y.shape[0]), counts)
    ranks = _ranks_of(scores, rows, Y.indices.astype(np.int64))
    ranks = ranks[np.lexsort((ranks, rows))]
    counts = counts[counts > 0]
    if not len(counts):
        return np.empty((0, len(MEASURES)))
    starts = np.cumsum(counts) - counts
    # The i-th best relevant label stands at rank ranks[i]; ranks[i] - i irrelevant labels stand above it.
    position = np.arange(len(ranks)) - np.repeat(starts, counts) + 1
    worst = ranks[starts + counts - 1]
    wrong = worst > counts
    first_irrelevant = np.add.reduceat((ranks == position).astype(np.int64), starts) + 1
    return np.column_stack(
        [
            wrong,
            np.add.reduceat(ranks - position, starts),
            np.where(wrong, worst - first_irrelevant, 0),
            np.add.reduceat(position / ranks, starts) / counts,
        ]
    ).astype(np.float64)


def _ranks_of(scores: Floats, rows: Ints, labels: Ints) -> Ints:
    """The 1-based ranks of some (row, label) pairs, without sorting whole rows."""
    k = scores.shape[1]
    ranks = np.empty(len(rows), dtype=np.int64)
    at_once = max(1, _CELLS // max(1, k))
    for start in range(0, len(rows), at_once):
        part = slice(start, start + at_once)
        all_scores, own = scores[rows[part]], scores[rows[part], labels[part]][:, np.newaxis]
        before = all_scores > own
        before |= (all_scores == own) & (np.arange(k) < labels[part][:, np.newaxis])
        ranks[part] = np.count_nonzero(before, axis=1) + 1
    return ranks


class RunningMeans:
    """Accumulated ranking measures.

    Attributes:
        sums: (5,) the number of tested examples with a relevant label, and the sums of their four measures.
    """

    def __init__(self, sums: Floats | None = None) -> None:
        self.sums: Floats = np.zeros(1 + len(MEASURES)) if sums is None else sums

    def add(self, scores: Floats, Y: Labels) -> None:
        """Count tested examples in: their (n, k) scores and their (n, k) relevant labels."""
        each = example_measures(scores, Y)
        self.sums[0] += len(each)
        # One by one, in order: the sum must not depend on how a pass was cut into pieces.
        self.sums[1:] = np.add.accumulate(np.vstack([self.sums[1:], each]), axis=0)[-1]

    @property
    def measures(self) -> dict[str, float]:
        """The mean measures so far; nothing while no example with a relevant label was tested."""
        if not self.sums[0]:
            return {}
        return dict(zip(MEASURES, (self.sums[1:] / self.sums[0]).tolist(), strict=True))
