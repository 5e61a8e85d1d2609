"""Fits a calibration on held-out scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.calibration.calibration import Calibration
from models.calibration.label_calibration import MAX_LOGIT, LabelCalibration, compress
from models.calibration.label_sets import INDEPENDENT, N_FEATURES, SET_LOWER_BOUNDS, set_features
from models.calibration.logistic import fit_logistic
from models.calibration.standardization import align, center_and_spread
from models.decisions.held_out import N_FOLDS, HeldOut
from models.decisions.label_sets import LabelSetRule

MIN_SLOPE = 1e-3
"""Smallest slope of a calibration, so that probabilities always increase with scores."""

_MAX_POINTS_EXACT = 512
"""Largest number of examples whose scores are not grouped."""

_FINE = 128
_GROWTH = 1.03
_BLOCK = 2**22
"""Number of scores that are sorted at a time."""

_MIN_POOLED_SLOPE = 0.05
_OF_POOLED = 0.01
_OF_SLOPES = 0.5
_OF_OFFSET = 0.1
_OF_SETS = 1.0


def fit_calibration(
    held_out: HeldOut, rule: LabelSetRule, *, training_scores: Floats | None = None
) -> Calibration | None:
    """Fit the probabilities of labels and of label sets on held-out scores.

    Args:
        held_out: the held-out scores.
        rule: how scores become the label sets whose probability is fitted.
        training_scores: (h, k) scores of the fitted learner for the same examples, if its scores are on
            another scale than the held-out ones; None if the scale is the same.

    Returns:
        the calibration; None if no label is known for any example.
    """
    predicted = rule.predicted(held_out.scores)
    if training_scores is not None:
        held_out = align(held_out, training_scores)
    labels = fit_label_calibration(held_out)
    return None if labels is None else Calibration(labels, _fit_sets(held_out, predicted))


def fit_label_calibration(held_out: HeldOut) -> LabelCalibration | None:
    """Fit the probabilities of labels on held-out scores; None if no label is known for any example."""
    known = held_out.known()
    any_known = held_out.scores.size if known is None else known.any()
    return _fit_labels(held_out) if any_known else None


@dataclass(frozen=True)
class _Points:
    """Held-out scores of each label, standardised and in groups of similar scores.

    Attributes:
        center: (k,) mean of the scores of each label.
        spread: (k,) their standard deviation, or 1 if they are all equal.
        z: (k, m) mean standardised score of each group.
        positives: (k, m) number of examples in each group that have the label.
        totals: (k, m) number of examples in each group for which the label is known.
    """

    center: Floats
    spread: Floats
    z: Floats
    positives: Floats
    totals: Floats


def _fit_labels(held_out: HeldOut) -> LabelCalibration:
    points = _group(held_out)
    n_positive, n_known = points.positives.sum(axis=1), points.totals.sum(axis=1)
    prior = np.log((n_positive + 0.5) / (n_known - n_positive + 0.5))
    # Pooled Platt: a slope and an offset that depend on how frequent a label is. Labels count by the square
    # root of their number of positives, because the rare ones need the result most.
    k, m = points.z.shape
    priors = np.broadcast_to(prior[:, np.newaxis], (k, m))
    X = np.stack([points.z, priors * points.z, priors, np.ones((k, m))], axis=2)
    weights = np.maximum(n_positive, 1.0) ** -0.5
    weights *= n_positive.sum() / max((weights * n_positive).sum(), 1.0)
    ((slope, slope_of_prior, of_prior, constant),) = fit_logistic(
        X.reshape(1, k * m, 4),
        (points.positives * weights[:, np.newaxis]).reshape(1, -1),
        (points.totals * weights[:, np.newaxis]).reshape(1, -1),
        prior=np.array([1.0, 0.0, 1.0, 0.0]),
        ridge=np.full(4, _OF_POOLED),
        lower=np.array([-np.inf, -np.inf, 0.0, -np.inf]),
    )
    slopes = np.maximum(slope + slope_of_prior * prior, _MIN_POOLED_SLOPE)
    offset = of_prior * prior + constant
    own = np.flatnonzero(held_out.tunable & (n_positive >= N_FOLDS) & (n_positive < n_known))
    left, right = slopes.copy(), slopes.copy()
    size = max(1, _BLOCK // (8 * m))
    for first in range(0, len(own), size):
        block = own[first : first + size]
        softplus = np.logaddexp(0.0, points.z[block])
        X = np.stack([points.z[block] - softplus, softplus, np.ones_like(softplus)], axis=2)
        fitted = fit_logistic(
            X,
            points.positives[block],
            points.totals[block],
            prior=np.stack([left[block], right[block], offset[block]], axis=1),
            ridge=np.array([_OF_SLOPES, _OF_SLOPES, _OF_OFFSET]),
            lower=np.array([MIN_SLOPE, MIN_SLOPE, -np.inf]),
        )
        left[block], right[block], offset[block] = fitted.T
    return LabelCalibration(points.center, points.spread, left, right, offset)


def _group(held_out: HeldOut) -> _Points:
    h, k = held_out.scores.shape
    starts = _group_starts(h)
    size = max(1, _BLOCK // h)
    Y = held_out.Y.tocsc()
    unknown = None if held_out.unknown is None else held_out.unknown.tocsc()
    parts = []
    for first in range(0, k, size):
        block = slice(first, min(first + size, k))
        scores = np.ascontiguousarray(held_out.scores[:, block].T)
        relevant = np.ascontiguousarray(Y[:, block].toarray().T).astype(np.float64)
        known = np.ones_like(relevant) if unknown is None else 1.0 - unknown[:, block].toarray().T
        parts.append(_group_block(scores, relevant * known, known, starts))
    return _Points(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _group_block(
    scores: Floats, relevant: Floats, known: Floats, starts: Ints
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    center, spread = center_and_spread(scores, known)
    z = compress((scores - center[:, np.newaxis]) / spread[:, np.newaxis])
    if len(starts) == scores.shape[1]:
        return center, spread, z, relevant, known
    order = np.argsort(-z, axis=1, kind="stable")
    z, relevant, known = (np.take_along_axis(array, order, axis=1) for array in (z, relevant, known))
    sums, relevant, known = (np.add.reduceat(array, starts, axis=1) for array in (z * known, relevant, known))
    return center, spread, sums / np.maximum(known, 1.0), relevant, known


def _fit_sets(held_out: HeldOut, predicted: Bools) -> Floats:
    logits = np.empty(held_out.scores.shape)
    for fold in np.unique(held_out.folds):
        rows = held_out.folds == fold
        logits[rows] = _fit_labels(held_out.where(~rows)).label_logits(held_out.scores[rows])
    wrong = held_out.relevant() ^ predicted
    if (known := held_out.known()) is not None:
        # An unknown label is in no label set, for certain, so that only known ones count.
        wrong &= known
        predicted = predicted & known
        logits[~known] = -MAX_LOGIT
    features = np.array(set_features(logits, np.log1p(np.exp(-logits)), predicted))
    scale = features.std(axis=0)
    scale[scale < 1e-9] = 1.0
    right = (np.count_nonzero(wrong, axis=1) == 0).astype(np.float64)
    (weights,) = fit_logistic(
        (features / scale)[np.newaxis],
        right[np.newaxis],
        np.ones((1, len(features))),
        prior=INDEPENDENT * scale,
        ridge=np.full(N_FEATURES, _OF_SETS),
        lower=SET_LOWER_BOUNDS,
    )
    unscaled: Floats = weights / scale
    return unscaled


def _group_starts(h: int) -> Ints:
    """Return where groups of similar scores begin in the descending scores of h examples.

    The highest scores are groups of their own. Further down each group is a constant share of the examples
    above it, because a label has few positive examples there.
    """
    if h <= _MAX_POINTS_EXACT:
        return np.arange(h)
    starts = list(range(_FINE))
    while starts[-1] < h:
        starts.append(max(starts[-1] + 1, int(starts[-1] * _GROWTH)))
    return np.array(starts[:-1])
