"""Tunes one threshold per label on held-out scores: SCut with the fallback FBR (Yang 2001)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from models.arrays import Bools, Floats, Ints, Labels
from models.decisions.cuts import LabelCuts, best_f1

Select: TypeAlias = Callable[[int, LabelCuts], float]
"""Chooses the threshold of a label, which has a positive example, from its cuts."""


def tuned_thresholds(
    scores: Floats,
    Y: Labels,
    tunable: Bools,
    *,
    default: float | None,
    fbr: float,
    unknown: Labels | None = None,
) -> Floats:
    """Return the threshold of each label with the best F1.

    Args:
        scores: (g, k) scores of examples that were not in the training part of the model that scored them.
        Y: (g, k) true label sets.
        tunable: (k,) false for a label with too few positive examples to tune its threshold.
        default: the threshold of such a label; None if the scores have no meaningful default threshold. The
            threshold is then the label's highest score.
        fbr: if the best F1 of a label is below this value, its threshold is its highest score.
        unknown: (g, k) unknown labels; None if there are none. The threshold of a label is tuned on the
            examples for which it is known.

    Returns:
        (k,) thresholds. A label is predicted if its score is above its threshold.
    """
    relevant = Y.toarray() != 0
    known = None if unknown is None else unknown.toarray() == 0
    everything = np.ones((1, len(scores)), dtype=bool)

    thresholds: Floats = thresholds_of_labels(
        scores, relevant, known, everything, tunable, default=default, select=with_best_f1(fbr)
    )[0]
    return thresholds


def thresholds_of_labels(
    scores: Floats,
    relevant: Bools,
    known: Bools | None,
    parts: Bools,
    tunable: Bools,
    *,
    default: float | None,
    select: Select,
) -> Floats:
    """Choose the threshold of each label, on several parts of the examples.

    Args:
        scores: (g, k) held-out scores.
        relevant: (g, k) whether each example has each label.
        known: (g, k) false for unknown labels; None if there are none.
        parts: (p, g) whether each example is in each part.
        tunable: (k,) whether to choose a threshold for the label.
        default: the threshold of a label that is not tunable, or without a positive example in the part; None
            for its highest score in the part.
        select: chooses the threshold of the other labels.

    Returns:
        (p, k) the thresholds.
    """
    thresholds = np.empty((len(parts), scores.shape[1]))
    for p, part in enumerate(parts):
        thresholds[p] = scores[part].max(axis=0) if default is None else default
    for j in np.flatnonzero(tunable):
        rows: Ints = np.arange(len(scores)) if known is None else np.flatnonzero(known[:, j])
        # A stable order of all examples is a stable order of each part, so one sort is enough.
        rows = rows[np.argsort(-scores[rows, j], kind="stable")]
        descending, positive = scores[rows, j], relevant[rows, j]
        for p, part in enumerate(parts):
            inside = part[rows]
            of_part = positive[inside]
            if of_part.any():
                thresholds[p, j] = select(int(j), LabelCuts.of(descending[inside], of_part))
    return thresholds


def with_best_f1(fbr: float) -> Select:
    """Return a function that chooses the threshold with the best F1, the largest of equally good ones.

    Args:
        fbr: if the best F1 is below this value, the threshold is the highest score.
    """

    def select(label: int, cuts: LabelCuts) -> float:  # noqa: ARG001 - the same for every label
        best, f1 = best_f1(cuts)
        return float(cuts.distinct[0]) if f1 < fbr else cuts.threshold(best)

    return select
