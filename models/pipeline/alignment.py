"""Moves held-out scores to the scale on which the fitted learner scores new documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from models.arrays import Floats
from models.decisions.held_out import HeldOut
from models.decisions.score_scale import ScoreScale

_GAP = 0.9
"""Share of the gap between seen and unseen examples that is left with all folds instead of all but one.

The gap shrinks more slowly than in proportion to the number of examples, which would leave two thirds of it.
"""

_RATIOS = (0.2, 5.0)
_SHIFTS = (-1.0, 1.0)
"""Bounds of changes of a scale, which labels with few different scores would exceed."""

_TRUSTED = 50
"""Number of positive examples with which the scores of boosting count as much as aligned ones."""


def align(held_out: HeldOut, scale: ScoreScale, of_folds: Sequence[ScoreScale] | None) -> HeldOut:
    """Move held-out scores to the scale of the fitted learner's scores of unseen examples.

    The learner of a fold saw fewer examples than the fitted learner, so its scores of unseen examples are on
    another scale. The scale of the fitted learner on unseen examples is not known. But the one on its
    training examples is, and so is the gap between training examples and unseen ones in each fold.

    Sums of boosting have no fixed scale: for a rare label, the scores of a fold can be around -320, and those
    of the fitted learner around -160. Such scores get the mean and the standard deviation of the fitted
    learner's training scores. Those of labels with many examples are comparable, and better as they are.

    Args:
        held_out: scores of training examples, each by the learner of a fold.
        scale: scale of the fitted learner's scores of its training examples.
        of_folds: scale of the scores of each fold's learner for the examples that it was trained on; None if
            the scores have no fixed scale.
    """
    known = held_out.known()
    positives = np.bincount(held_out.Y.indices, minlength=held_out.Y.shape[1])
    trust = positives / (positives + _TRUSTED)
    scores = np.empty(held_out.scores.shape)
    for fold in np.unique(held_out.folds).tolist():
        rows = held_out.folds == fold
        of_fold = held_out.scores[rows]
        unseen = ScoreScale.of(of_fold, None if known is None else known[rows])
        if of_folds is None:
            aligned = _move(of_fold, unseen, scale)
            scores[rows] = trust * of_fold + (1.0 - trust) * aligned
        else:
            scores[rows] = _move(of_fold, unseen, _on_unseen(scale, of_folds[fold], unseen))
    return replace(held_out, scores=scores)


def _on_unseen(scale: ScoreScale, seen_of_fold: ScoreScale, unseen_of_fold: ScoreScale) -> ScoreScale:
    """Return the scale on unseen examples, from the one on training examples and from both of a fold."""
    ratio = 1.0 - _GAP * (1.0 - unseen_of_fold.spread / seen_of_fold.spread)
    shift = _GAP * (unseen_of_fold.center - seen_of_fold.center) / seen_of_fold.spread
    return ScoreScale(
        scale.center + np.clip(shift, *_SHIFTS) * scale.spread, scale.spread * np.clip(ratio, *_RATIOS)
    )


def _move(scores: Floats, old: ScoreScale, new: ScoreScale) -> Floats:
    moved: Floats = (scores - old.center) / old.spread * new.spread + new.center
    return moved
