"""How the probability of a label depends on the other labels of the document.

Labels compete: if another label is certain, a document is less probably one of this label than its own score
says. The logit of a label in its context is w₀ + w₁ x + w₂ y, with its own logit x and the largest logit y of
the other labels. All labels share the three weights.
"""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats
from models.calibration.logistic import fit_logistic

N_WEIGHTS = 3

_ALONE = np.array([0.0, 1.0, 0.0])
"""The weights with which other labels do not matter."""

_LOWER_BOUNDS = np.array([-np.inf, 1e-3, -np.inf])
_RIDGE = 1.0
_MAX_PAIRS = 2**21
"""Number of pairs of example and label from which examples are skipped, which limits memory and time."""


def logits_in_context(logits: Floats, weights: Floats) -> Floats:
    """Return the logit of each label in its context, (n, k), for the logits of each label alone, (n, k).

    >>> logits_in_context(np.array([[2.0, -1.0, 1.0]]), np.array([0.0, 1.0, -0.5])).tolist()
    [[1.5, -2.0, 0.0]]
    """
    alone: Floats = weights[1] * logits + weights[0]
    if logits.shape[1] == 1:
        return alone
    second, best = np.partition(logits, -2, axis=1)[:, -2:].T[:, :, np.newaxis]
    in_context: Floats = alone + weights[2] * np.where(logits == best, second, best)
    return in_context


def fit_context(samples: list[Floats], relevant: Bools, known: Bools | None) -> Floats:
    """Return the weights that fit held-out examples best, (``N_WEIGHTS``,).

    Args:
        samples: one or more (h, k) logits of the same examples. They count equally.
        relevant: (h, k) whether each example has each label.
        known: (h, k) false for unknown labels, which do not count; None if there are none.
    """
    h, k = relevant.shape
    every = slice(None, None, max(1, len(samples) * h * k // _MAX_PAIRS))
    counted = np.ones((h, k), dtype=np.float64) if known is None else known.astype(np.float64)
    counted, positives = counted[every] / len(samples), relevant[every] / len(samples)
    points = np.concatenate([_points(logits[every]) for logits in samples], axis=1)
    weights: Floats
    (weights,) = fit_logistic(
        points[np.newaxis],
        np.tile((positives * (counted > 0)).ravel(), len(samples))[np.newaxis],
        np.tile(counted.ravel(), len(samples))[np.newaxis],
        prior=_ALONE,
        ridge=np.full(N_WEIGHTS, _RIDGE),
        lower=_LOWER_BOUNDS,
    )
    return weights


def _points(logits: Floats) -> Floats:
    """Return 1, the own logit and the largest other logit of each pair of example and label, (3, n · k)."""
    best_other = logits_in_context(logits, np.array([0.0, 0.0, 1.0]))
    return np.stack([np.ones(logits.size), logits.ravel(), best_other.ravel()])
