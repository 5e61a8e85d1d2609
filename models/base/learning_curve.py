"""Learning curves: the learner predicts each example before it learns from it, and the losses are averaged.

Loza Mencía and Fürnkranz (section VI-C, figures 4 to 6) use such curves to show how quickly an incremental
learner adapts. The curve needs no held-out examples, because it is a by-product of the training pass. This is
also known as prequential evaluation.
"""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, Ints, Labels

MEASURES = ("is_error", "error_set_size", "margin", "average_precision")
"""The ranking measures of a curve, in the order of its columns."""

_BATCH_SIZE = 1 << 20
"""Number of comparisons in one batch, which limits the memory for problems with many labels."""


def example_measures(scores: Floats, Y: Labels) -> Floats:
    """Return the four ranking measures of each example that has a relevant label (section II-C, eqs. 4 to 8).

    Args:
        scores: (n, k) scores. Labels with equal scores rank in label order.
        Y: (n, k) relevant labels.

    Returns:
        (n', 4) the measures of each example, in the order of :data:`MEASURES`. Examples without relevant
        labels are omitted. For a perfect ranking, average precision is 1 and the other three measures are 0.
        (``models.measures`` computes the means over examples.)

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
    # The i-th best relevant label has rank ranks[i], so ranks[i] - i irrelevant labels rank above it.
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
    """Return the 1-based ranks of some (row, label) pairs without sorting whole rows."""
    k = scores.shape[1]
    ranks = np.empty(len(rows), dtype=np.int64)
    n_pairs = max(1, _BATCH_SIZE // max(1, k))
    for start in range(0, len(rows), n_pairs):
        part = slice(start, start + n_pairs)
        all_scores, own = scores[rows[part]], scores[rows[part], labels[part]][:, np.newaxis]
        before = all_scores > own
        before |= (all_scores == own) & (np.arange(k) < labels[part][:, np.newaxis])
        ranks[part] = np.count_nonzero(before, axis=1) + 1
    return ranks


class RunningMeans:
    """Running means of the ranking measures.

    Attributes:
        sums: (5,) the number of tested examples with a relevant label, and the sums of their four measures.
    """

    def __init__(self, sums: Floats | None = None) -> None:
        self.sums: Floats = np.zeros(1 + len(MEASURES)) if sums is None else sums

    def add(self, scores: Floats, Y: Labels) -> None:
        """Add tested examples.

        Args:
            scores: (n, k) their scores.
            Y: (n, k) their relevant labels.
        """
        each = example_measures(scores, Y)
        self.sums[0] += len(each)
        # Add one by one, in order, so that the sum does not depend on how a pass was split into chunks.
        self.sums[1:] = np.add.accumulate(np.vstack([self.sums[1:], each]), axis=0)[-1]

    @property
    def measures(self) -> dict[str, float]:
        """The means so far, by name; empty before the first example with a relevant label."""
        if not self.sums[0]:
            return {}
        return dict(zip(MEASURES, (self.sums[1:] / self.sums[0]).tolist(), strict=True))
