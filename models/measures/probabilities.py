"""All measures of probabilities: of labels, and of label sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Labels
from models.measures.calibration import (
    ReliabilityBin,
    brier_score,
    expected_calibration_error,
    log_loss,
    probable,
    reliability,
)
from models.measures.coverage_curve import CoveragePoint, coverage_at_precision, coverage_curve
from models.measures.sets import wrong_labels

PRECISIONS = (90, 95, 99)
"""The precisions of ``coverage_at_precision_N``, in percent."""

PROBABILITY_MEASURES = (
    "expected_calibration_error",
    "brier_score",
    "log_loss",
    "set_expected_calibration_error",
    "set_brier_score",
    "set_log_loss",
    *(f"coverage_at_precision_{percent}" for percent in PRECISIONS),
)
"""Measures that need probabilities."""


@dataclass(frozen=True)
class LabelProbabilities:
    """How true the probabilities of labels are.

    Attributes:
        measures: values by name; NaN if undefined.
        reliability: reliability diagram of all pairs of an example and a label.
    """

    measures: dict[str, float]
    reliability: list[ReliabilityBin]


@dataclass(frozen=True)
class SetProbabilities:
    """How true and how useful the probabilities of label sets are.

    Attributes:
        measures: values by name; NaN if undefined.
        reliability: reliability diagram of the label sets.
        coverage_curve: precision of the most probable label sets by their share.
    """

    measures: dict[str, float]
    reliability: list[ReliabilityBin]
    coverage_curve: list[CoveragePoint]


def evaluate_label_probabilities(
    Y: Labels, probabilities: Floats, unknown: Labels | None = None
) -> LabelProbabilities:
    """Compare the probabilities of labels with the label sets.

    ``expected_calibration_error`` is that of the pairs with a probability above 0.1. ``brier_score`` and
    ``log_loss`` are means over all pairs.

    Args:
        Y: (n, k) true label sets.
        probabilities: (n, k) the probability of each label.
        unknown: (n, k) unknown labels; None if there are none. These pairs are left out.
    """
    relevant: Bools = Y.toarray() != 0
    if unknown is None:
        pairs, outcomes = probabilities.ravel(), relevant.ravel()
    else:
        known = unknown.toarray() == 0
        pairs, outcomes = probabilities[known], relevant[known]
    measures = {
        "expected_calibration_error": expected_calibration_error(*probable(pairs, outcomes)),
        "brier_score": brier_score(pairs, outcomes),
        "log_loss": log_loss(pairs, outcomes),
    }
    return LabelProbabilities(measures, reliability(pairs, outcomes))


def evaluate_set_probabilities(
    Y: Labels, predicted: Labels, probabilities: Floats, unknown: Labels | None = None
) -> SetProbabilities:
    """Compare the probabilities of predicted label sets with whether they are exactly right.

    Args:
        Y: (n, k) true label sets.
        predicted: (n, k) predicted label sets.
        probabilities: (n,) the probability that each predicted label set is right.
        unknown: (n, k) unknown labels; None if there are none. It is not known whether the label set of an
            example with unknown labels is right, so these examples are left out.
    """
    right = wrong_labels(Y, predicted) == 0
    if unknown is not None:
        known = np.diff(unknown.indptr) == 0
        probabilities, right = probabilities[known], right[known]
    measures = {
        "set_expected_calibration_error": expected_calibration_error(probabilities, right),
        "set_brier_score": brier_score(probabilities, right),
        "set_log_loss": log_loss(probabilities, right),
    }
    for percent in PRECISIONS:
        share = coverage_at_precision(probabilities, right, percent / 100)
        measures[f"coverage_at_precision_{percent}"] = share
    return SetProbabilities(measures, reliability(probabilities, right), coverage_curve(probabilities, right))
