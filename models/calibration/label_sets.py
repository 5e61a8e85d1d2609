"""What the probability that a label set is right depends on."""

from __future__ import annotations

import math

import numpy as np

from models.arrays import Bools, Floats

N_FEATURES = 6
"""Number of features of ``set_features``."""

INDEPENDENT = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
"""(``N_FEATURES``,) the weights with which a label set is as probable as if labels were independent."""

SET_LOWER_BOUNDS = np.array([-np.inf, 0.0, 0.0, 0.0, -np.inf, -np.inf])
"""(``N_FEATURES``,) lower bounds of the weights. A more probable label set is never less probably right."""

_MAX_LOG_JOINT = -1e-13
"""Largest logarithm of a joint probability, so that its logit is finite."""


def set_features(logits: Floats, surprisals: Floats, predicted: Bools) -> list[tuple[float, ...]]:
    """Return the features of label sets.

    They are: 1; the logit of the joint probability of the label set if labels were independent; the logit of
    the smallest probability of a label in it (0 if there is none); minus the logit of the largest one of a
    label that is not in it (0 if there is none); the logarithm of one plus its size; and whether it is empty.

    Args:
        logits: (n, k) the logit of the probability of each label.
        surprisals: (n, k) -ln p of each label with probability p.
        predicted: (n, k) whether each label is in the label set.

    Returns:
        n times ``N_FEATURES`` numbers.

    >>> logits = np.array([[np.log(4.0), 0.0]])
    >>> features = set_features(logits, np.log1p(np.exp(-logits)), np.array([[True, False]]))
    >>> [round(feature, 3) for feature in features[0]]
    [1.0, -0.405, 1.386, -0.0, 0.693, 0.0]
    """
    # Only what needs all labels is in arrays: an operation on an array costs much more than one on a number,
    # and a single document needs few microseconds.
    others = ~predicted
    k = predicted.shape[1]
    # If p has the logit x, ln(1 - p) is ln p - x.
    log_joint = np.add.reduce(surprisals, axis=1) + np.add.reduce(logits, axis=1, where=others)
    in_set = np.minimum.reduce(logits, axis=1, where=predicted, initial=np.inf)
    not_in_set = np.maximum.reduce(logits, axis=1, where=others, initial=-np.inf)
    size = np.add.reduce(predicted, axis=1, dtype=np.int64)
    features: list[tuple[float, ...]] = []
    for minus_log, lowest, highest, n in zip(
        log_joint.tolist(), in_set.tolist(), not_in_set.tolist(), size.tolist(), strict=True
    ):
        joint = min(-minus_log, _MAX_LOG_JOINT)
        features.append(
            (
                1.0,
                joint - math.log(-math.expm1(joint)),
                lowest if n else 0.0,
                -highest if n < k else 0.0,
                math.log1p(n),
                0.0 if n else 1.0,
            )
        )
    return features
