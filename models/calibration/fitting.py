"""Fits a calibration on held-out scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.calibration.calibration import Calibration
from models.calibration.context import fit_context
from models.calibration.label_calibration import MAX_LOGIT, LabelCalibration, compress
from models.calibration.label_sets import INDEPENDENT, N_FEATURES, SET_LOWER_BOUNDS, set_features
from models.calibration.logistic import fit_logistic
from models.decisions.apply import LabelSetRule
from models.decisions.held_out import N_FOLDS, HeldOut, center_and_spread

MIN_SLOPE = 1e-3
"""Smallest slope of a calibration, so that probabilities always increase with scores."""

_MAX_POINTS_EXACT = 512
"""Largest number of examples whose scores are not grouped."""

_RANKS = np.array([5.0, 2.0, 1.0, 0.5])
"""The knots of a label with n positive examples are its scores at the ranks that are these multiples of n.

The share of positive examples changes most around them. With boosting, it even has a step there, because most
negative examples have the same score.
"""

_FINE = 128
_GROWTH = 1.03
_BLOCK = 2**22
"""Number of scores that are sorted at a time."""

_MIN_POOLED_SLOPE = 0.05
_OF_POOLED = 0.01
_OF_SLOPES = 0.05
_OF_OFFSET = 0.1
_OF_SETS = 1.0


def fit_calibration(held_out: HeldOut, rule: LabelSetRule) -> Calibration | None:
    """Fit the probabilities of labels and of label sets on held-out scores.

    Args:
        held_out: the held-out scores.
        rule: how scores become the label sets whose probability is fitted.

    Returns:
        the calibration; None if no label is known for any example.
    """
    labels = fit_label_calibration(held_out)
    if labels is None:
        return None
    of_folds = _logits_of_folds(held_out)
    # The calibration of a fold saw fewer examples than the final one, which saw the examples themselves. So
    # the logits of the former are less certain than those of new documents, and those of the latter more so.
    context = fit_context(
        [of_folds, labels.label_logits(held_out.scores)], held_out.relevant(), held_out.known()
    )
    n_without_label = np.count_nonzero(np.diff(held_out.Y.indptr) == 0)
    return Calibration(
        labels,
        context,
        _fit_sets(held_out, of_folds, rule.predicted(held_out.scores)),
        (n_without_label + 0.5) / (len(held_out.scores) + 1),
    )


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
        knots: (k, ``len(_RANKS)``) standardised scores at certain ranks.
    """

    center: Floats
    spread: Floats
    z: Floats
    positives: Floats
    totals: Floats
    knots: Floats


def _fit_labels(held_out: HeldOut) -> LabelCalibration:
    points = _group(held_out)
    n_positive, n_known = points.positives.sum(axis=1), points.totals.sum(axis=1)
    prior = np.log((n_positive + 0.5) / (n_known - n_positive + 0.5))
    # Pooled Platt: a slope and an offset that depend on how frequent a label is. Labels count by the square
    # root of their number of positives, because the rare ones need the result most.
    k, m = points.z.shape
    priors = np.broadcast_to(prior[:, np.newaxis], (k, m))
    X = np.stack([points.z, priors * points.z, priors, np.ones((k, m))])
    weights = np.maximum(n_positive, 1.0) ** -0.5
    weights *= n_positive.sum() / max((weights * n_positive).sum(), 1.0)
    ((slope, slope_of_prior, of_prior, constant),) = fit_logistic(
        X.reshape(1, 4, k * m),
        (points.positives * weights[:, np.newaxis]).reshape(1, -1),
        (points.totals * weights[:, np.newaxis]).reshape(1, -1),
        prior=np.array([1.0, 0.0, 1.0, 0.0]),
        ridge=np.full(4, _OF_POOLED),
        lower=np.array([-np.inf, -np.inf, 0.0, -np.inf]),
    )
    pooled = np.maximum(slope + slope_of_prior * prior, _MIN_POOLED_SLOPE)
    n_slopes = points.knots.shape[1] + 1
    beta = np.column_stack([np.tile(pooled[:, np.newaxis], n_slopes), of_prior * prior + constant])
    own = np.flatnonzero(held_out.tunable & (n_positive >= N_FOLDS) & (n_positive < n_known))
    size = max(1, _BLOCK // (8 * m))
    for first in range(0, len(own), size):
        block = own[first : first + size]
        beta[block] = fit_logistic(
            _pieces(points.z[block], points.knots[block]),
            points.positives[block],
            points.totals[block],
            prior=beta[block],
            ridge=np.array([*[_OF_SLOPES] * n_slopes, _OF_OFFSET]),
            lower=np.array([*[MIN_SLOPE] * n_slopes, -np.inf]),
        )
    # Platt (1999): the probability of the positive examples themselves, with a uniform prior.
    most = (n_positive + 1.0) / (n_positive + 2.0)
    return LabelCalibration(
        points.center, points.spread, points.knots, beta[:, :-1], beta[:, -1], np.log(most) - np.log1p(-most)
    )


def _pieces(z: Floats, knots: Floats) -> Floats:
    """Return the part of each standardised score below, between and above the knots, and 1.

    Args:
        z: (l, m) the scores.
        knots: (l, n) the knots, in ascending order.

    Returns:
        (l, n + 2, m). The first n + 1 values of a score sum to it, up to a constant of the label.
    """
    above = np.maximum(z[:, np.newaxis] - knots[:, :, np.newaxis], 0.0)
    below = z[:, np.newaxis] - above[:, :1]
    between = above[:, :-1] - above[:, 1:]
    return np.concatenate([below, between, above[:, -1:], np.ones_like(below)], axis=1)


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


def _group_block(scores: Floats, relevant: Floats, known: Floats, starts: Ints) -> tuple[Floats, ...]:
    center, spread = center_and_spread(scores, known)
    z = compress((scores - center[:, np.newaxis]) / spread[:, np.newaxis])
    order = np.argsort(np.where(known > 0, -z, np.inf), axis=1, kind="stable")
    z, relevant, known = (np.take_along_axis(array, order, axis=1) for array in (z, relevant, known))
    ranks = (relevant.sum(axis=1, keepdims=True) * _RANKS).astype(np.int64)
    ranks = np.minimum(ranks, np.maximum(known.sum(axis=1, keepdims=True).astype(np.int64) - 1, 0))
    knots = np.take_along_axis(z, ranks, axis=1)
    if len(starts) < z.shape[1]:
        sums, relevant, known = (
            np.add.reduceat(array, starts, axis=1) for array in (z * known, relevant, known)
        )
        z = sums / np.maximum(known, 1.0)
    return center, spread, z, relevant, known, knots


def _logits_of_folds(held_out: HeldOut) -> Floats:
    """Return the logit of each label, (h, k), by a calibration that is fitted on the other folds."""
    logits = np.empty(held_out.scores.shape)
    for fold in np.unique(held_out.folds):
        rows = held_out.folds == fold
        logits[rows] = _fit_labels(held_out.where(~rows)).label_logits(held_out.scores[rows])
    return logits


def _fit_sets(held_out: HeldOut, logits: Floats, predicted: Bools) -> Floats:
    wrong = held_out.relevant() ^ predicted
    if (known := held_out.known()) is not None:
        # An unknown label is in no label set, for certain, so that only known ones count.
        wrong &= known
        predicted = predicted & known
        logits = np.where(known, logits, -MAX_LOGIT)
    features = np.array(set_features(logits, np.log1p(np.exp(-logits)), predicted))
    scale = features.std(axis=0)
    scale[scale < 1e-9] = 1.0
    right = (np.count_nonzero(wrong, axis=1) == 0).astype(np.float64)
    (weights,) = fit_logistic(
        np.ascontiguousarray((features / scale).T)[np.newaxis],
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
