"""Tunes one threshold per label on held-out scores: SCut with the fallback FBR (Yang 2001)."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats, Labels

_MAX_GROWTH = 2
"""How many times more often than expected a transferable threshold may predict its label."""


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
    thresholds = scores.max(axis=0) if default is None else np.full(Y.shape[1], default)
    columns = Y.tocsc()
    known = None if unknown is None else unknown.toarray() == 0
    for j in np.flatnonzero(tunable):
        relevant = np.zeros(Y.shape[0], dtype=bool)
        relevant[columns.indices[columns.indptr[j] : columns.indptr[j + 1]]] = True
        rows = slice(None) if known is None else known[:, j]
        thresholds[j] = best_threshold(scores[rows, j], relevant[rows], fbr=fbr)
    return thresholds


def transferable(
    thresholds: Floats, held_out: Floats, training: Floats, Y: Labels, unknown: Labels | None = None
) -> Bools:
    """Check which thresholds, tuned on the scores of the fold models, are valid for the final model.

    The scores of the final model can be on another scale than those of the fold models, because sums of
    boosting have no fixed scale. A threshold of -242 that was right for the fold models can then be below all
    scores of the final model. Such a threshold predicts its label for more than twice as many training
    examples as it did on the held-out scores, and as have the label.

    Args:
        thresholds: (k,) tuned on ``held_out``.
        held_out: (g, k) scores of the training examples, each by a model that was not trained on it.
        training: (g, k) scores of the same examples by the final model.
        Y: (g, k) their true label sets.
        unknown: (g, k) their unknown labels, which do not count; None if there are none.

    Returns:
        (k,) false if the threshold is not valid for the final model.

    >>> from scipy.sparse import csr_array
    >>> held_out = np.array([[-8.0], [-9.0], [-9.0], [-9.0]])
    >>> Y = csr_array([[1], [0], [0], [0]])
    >>> transferable(np.array([-8.5]), held_out, held_out + 0.25, Y).tolist()
    [True]
    >>> transferable(np.array([-8.5]), held_out, held_out + 5.0, Y).tolist()
    [False]
    """
    held_out_above, training_above = held_out > thresholds, training > thresholds
    if unknown is not None:
        known = unknown.toarray() == 0
        held_out_above, training_above = held_out_above & known, training_above & known
    expected = np.maximum(held_out_above.sum(axis=0), np.bincount(Y.indices, minlength=Y.shape[1]))
    valid: Bools = training_above.sum(axis=0) <= _MAX_GROWTH * expected
    return valid


def best_threshold(scores: Floats, relevant: Bools, *, fbr: float) -> float:
    """Return the threshold of one label with the best F1; the largest one if several are equally good.

    Candidates are the midpoints between consecutive distinct scores, one threshold above all scores and one
    below.

    Args:
        scores: (g,) scores, at least one.
        relevant: (g,) whether each example has the label; at least one has.
        fbr: see ``tuned_thresholds``.

    >>> best_threshold(np.array([0.0, 1.0, 2.0, 3.0]), np.array([False, False, True, True]), fbr=0.1)
    1.5
    """
    order = np.argsort(-scores, kind="stable")
    descending = scores[order]
    last_of_equals = np.append(descending[:-1] != descending[1:], True)
    n_predicted = np.flatnonzero(last_of_equals) + 1
    tp = np.cumsum(relevant[order])[last_of_equals]
    # Equal fractions of integers are equal floats, so ties are exact. The F1 above all scores is 0.
    f1 = np.concatenate([[0.0], 2 * tp / (n_predicted + int(relevant.sum()))])
    best = int(np.argmax(f1))
    if f1[best] < fbr:
        return float(descending[0])
    distinct = descending[last_of_equals]
    if best == 0:
        return float(distinct[0]) + 1.0
    if best == len(distinct):
        return float(distinct[-1]) - 1.0
    upper, lower = float(distinct[best - 1]), float(distinct[best])
    middle = (upper + lower) / 2
    # The midpoint of two adjacent floats rounds to one of them. It must not be the upper one.
    return middle if middle < upper else lower
