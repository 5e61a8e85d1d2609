"""Thresholds tuned label by label on held-out scores: SCut with the fallback FBR (Yang 2001)."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats, Labels

_SPREAD = 2


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


def carried_over(thresholds: Floats, held_out: Floats, training: Floats, Y: Labels) -> Bools:
    """Which thresholds, tuned on the scores of some scorers, mean the same to another one.

    A scorer trained on everything may put all its scores of a label elsewhere than those trained on a part
    did: sums of boosting have no scale. A threshold that had been right at -242 then lies under all scores.
    What gives it away is that the label goes to more than twice as many training examples as it went to held
    out, or as have it.

    Args:
        thresholds: (k,) tuned on ``held_out``.
        held_out: (g, k) scores of the training examples by scorers that were not trained on them.
        training: (g, k) scores of the same examples by the scorer in use.
        Y: (g, k) their true label sets.

    Returns:
        (k,) false where the threshold has lost its meaning.

    >>> from scipy.sparse import csr_array
    >>> held_out = np.array([[-8.0], [-9.0], [-9.0], [-9.0]])
    >>> Y = csr_array([[1], [0], [0], [0]])
    >>> carried_over(np.array([-8.5]), held_out, held_out + 0.25, Y).tolist()
    [True]
    >>> carried_over(np.array([-8.5]), held_out, held_out + 5.0, Y).tolist()
    [False]
    """
    expected = np.maximum((held_out > thresholds).sum(axis=0), np.bincount(Y.indices, minlength=Y.shape[1]))
    carried: Bools = (training > thresholds).sum(axis=0) <= _SPREAD * expected
    return carried


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
