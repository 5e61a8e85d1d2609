"""What the probability that a label set is right depends on."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats

N_FEATURES = 6
"""Number of features of ``set_features``."""

INDEPENDENT = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
"""(``N_FEATURES``,) the weights with which a label set is as probable as if labels were independent."""

SET_LOWER_BOUNDS = np.array([-np.inf, 0.0, 0.0, 0.0, -np.inf, -np.inf])
"""(``N_FEATURES``,) lower bounds of the weights. A more probable label set is never less probably right."""


def set_features(probabilities: Floats, predicted: Bools) -> Floats:
    """Return the features of label sets.

    They are: 1; the logit of the joint probability of the label set if labels were independent; the logit of
    the smallest probability of a label in it; minus the logit of the largest one of a label that is not in it
    (0 if there is none); the logarithm of one plus its size; and whether it is empty.

    Args:
        probabilities: (n, k) the probability of each label, strictly between 0 and 1.
        predicted: (n, k) whether each label is in the label set.

    Returns:
        (n, ``N_FEATURES``)
    """
    # Reductions by ufuncs, because a single document needs few microseconds.
    right = np.where(predicted, probabilities, 1.0 - probabilities)
    log_joint = np.minimum(np.add.reduce(np.log(right), axis=1), -1e-13)
    size = np.add.reduce(predicted, axis=1, dtype=np.int64)
    in_set = np.minimum.reduce(np.where(predicted, right, 1.0), axis=1)
    not_in_set = np.minimum.reduce(np.where(predicted, 1.0, right), axis=1)
    features = np.empty((len(predicted), N_FEATURES))
    features[:, 0] = 1.0
    features[:, 1] = log_joint - np.log(-np.expm1(log_joint))
    features[:, 2] = _logit(np.where(size > 0, in_set, 0.5))
    features[:, 3] = _logit(np.where(size < predicted.shape[1], not_in_set, 0.5))
    features[:, 4] = np.log1p(size)
    features[:, 5] = size == 0
    return features


def _logit(probabilities: Floats) -> Floats:
    logits: Floats = np.log(probabilities / (1.0 - probabilities))
    return logits
