"""The scale of scores: their mean and standard deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from models.arrays import Bools, Floats


@dataclass(frozen=True)
class ScoreScale:
    """Where the scores of each label are, and how far they are apart.

    Attributes:
        center: (k,) mean of the scores of each label.
        spread: (k,) their standard deviation, or 1 if they are all equal.
    """

    center: Floats
    spread: Floats

    @classmethod
    def of(cls, scores: Floats, known: Bools | None) -> Self:
        """Return the scale of scores, (n, k); ``known`` is false for those that do not count.

        >>> ScoreScale.of(np.array([[1.0, 5.0], [3.0, 5.0]]), None)
        ScoreScale(center=array([2., 5.]), spread=array([1., 1.]))
        """
        counted = np.ones(scores.shape, dtype=np.bool_) if known is None else known
        return cls(*center_and_spread(scores.T, counted.T))


def center_and_spread(scores: Floats, known: Bools | Floats) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation of the known scores of each label.

    Args:
        scores: (l, n) scores of each label.
        known: (l, n) whether each label of each example is known.

    Returns:
        (l,) means and (l,) standard deviations; 1 if all scores are equal, up to rounding errors.
    """
    largest = np.abs(scores * known).max(axis=1, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)[:, np.newaxis]  # so that no square overflows
    scaled, n_known = scores / unit, np.maximum(known.sum(axis=1, keepdims=True), 1.0)
    center = (scaled * known).sum(axis=1, keepdims=True) / n_known
    spread = np.sqrt((known * (scaled - center) ** 2).sum(axis=1, keepdims=True) / n_known)
    spread = np.where(spread > 1e-12, spread * unit, 1.0)
    return (center * unit)[:, 0], spread[:, 0]
