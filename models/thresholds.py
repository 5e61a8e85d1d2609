"""Thresholds tuned label by label on held-out scores: SCut with the fallback FBR (Yang 2001)."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats, Labels


def tuned_thresholds(scores: Floats, Y: Labels, tunable: Bools, *, own: float | None, fbr: float) -> Floats:
    """The threshold of each label with the best F1.

    Args:
        scores: (g, k) scores of examples that their scorer was not trained on.
        Y: (g, k) true label sets.
        tunable: (k,) false for a label with too few positive examples to tell.
        own: the threshold that such a label keeps, the learner's own; None where the scores have no
            threshold of their own, only an order: then it is the label's highest score.
        fbr: where a label's best F1 stays under this, its threshold is its highest score.

    Returns:
        (k,) thresholds; a label is on where its score is above.
    """
    thresholds = scores.max(axis=0) if own is None else np.full(Y.shape[1], own)
    columns = Y.tocsc()
    for j in np.flatnonzero(tunable):
        relevant = np.zeros(Y.shape[0], dtype=bool)
        relevant[columns.indices[columns.indptr[j] : columns.indptr[j + 1]]] = True
        thresholds[j] = best_threshold(scores[:, j], relevant, fbr=fbr)
    return thresholds


def best_threshold(scores: Floats, relevant: Bools, *, fbr: float) -> float:
    """The threshold of one label with the best F1; among equals the largest.

    Candidates are the midpoints between consecutive distinct scores, and one beyond each end.

    Args:
        scores: (g,) at least one score.
        relevant: (g,) which examples have the label; at least one has.
        fbr: see ``tuned_thresholds``.

    >>> best_threshold(np.array([0.0, 1.0, 2.0, 3.0]), np.array([False, False, True, True]), fbr=0.1)
    1.5
    """
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    last_of_equals = np.append(falling[:-1] != falling[1:], True)
    given = np.flatnonzero(last_of_equals) + 1
    tp = np.cumsum(relevant[order])[last_of_equals]
    # Equal fractions of integers are equal floats, so ties are exact. Above all scores F1 is 0.
    f1 = np.concatenate([[0.0], 2 * tp / (given + int(relevant.sum()))])
    best = int(np.argmax(f1))
    if f1[best] < fbr:
        return float(falling[0])
    distinct = falling[last_of_equals]
    if best == 0:
        return float(distinct[0]) + 1.0
    if best == len(distinct):
        return float(distinct[-1]) - 1.0
    upper, lower = float(distinct[best - 1]), float(distinct[best])
    middle = (upper + lower) / 2
    # Between neighbouring floats there is no middle: it rounds to one of them, and must not be the upper.
    return middle if middle < upper else lower
