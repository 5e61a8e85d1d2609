"""Standardises scores, so that labels and learners with scores on different scales compare."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from models.arrays import Bools, Floats
from models.decisions.held_out import HeldOut


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


def align(held_out: HeldOut, training_scores: Floats) -> HeldOut:
    """Move held-out scores to the scale of the fitted learner.

    Sums of boosting have no fixed scale: for a rare label the scores of a learner that was trained on a part
    of the examples can be around -320, and those of the fitted learner around -160. So the scores of each
    fold and label get the mean and the standard deviation of the fitted learner's scores.

    Args:
        held_out: the held-out scores.
        training_scores: (h, k) scores of the fitted learner for the same examples.
    """
    known = held_out.known()
    counted = np.ones(training_scores.shape, dtype=np.bool_) if known is None else known
    center, spread = center_and_spread(training_scores.T, counted.T)
    scores = np.empty(held_out.scores.shape)
    for fold in np.unique(held_out.folds):
        rows = held_out.folds == fold
        of_fold = held_out.scores[rows]
        center_of_fold, spread_of_fold = center_and_spread(of_fold.T, counted[rows].T)
        scores[rows] = (of_fold - center_of_fold) / spread_of_fold * spread + center
    return replace(held_out, scores=scores)
