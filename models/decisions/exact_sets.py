"""The threshold of all labels with which the most label sets are exactly right."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats
from models.decisions.cuts import between


def best_for_sets(scores: Floats, relevant: Bools, known: Bools | None = None) -> float:
    """Return the threshold with the most right label sets; the largest one if several are equally good.

    The label set of an example is right if the threshold is at least the highest score of its other labels,
    and below the lowest score of its relevant labels.

    Args:
        scores: (h, k) scores. A pair with the score ∞ is always predicted, with −∞ never.
        relevant: (h, k) whether each example has each label.
        known: (h, k) false for unknown labels, which do not count; None if there are none.

    >>> scores, relevant = np.array([[3.0, 1.0], [4.0, 2.0]]), np.array([[True, False], [True, False]])
    >>> best_for_sets(scores, relevant)
    2.5
    """
    others = ~relevant if known is None else ~relevant & known
    start = np.where(others, scores, -np.inf).max(axis=1)
    end = np.where(relevant, scores, np.inf).min(axis=1)
    possible = start < end
    start, end = np.sort(start[possible]), np.sort(end[possible])
    places = np.unique(np.concatenate([start, end]))
    places = places[np.isfinite(places)]
    if not len(places):
        return 0.0
    # Between two consecutive places, the number of right label sets is constant.
    right = np.searchsorted(start, places, side="right") - np.searchsorted(end, places, side="right")
    best = len(places) - 1 - int(np.argmax(right[::-1]))
    if np.count_nonzero(start == -np.inf) > right[best]:
        return float(places[0]) - 1.0
    if best == len(places) - 1:
        return float(places[-1]) + 1.0
    return between(float(places[best]), float(places[best + 1]))
