"""Measures of probabilities, compared with loops and with scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve

from models.arrays import Bools, Floats
from models.base.validation import as_label_matrix
from models.measures.calibration import (
    N_BINS,
    brier_score,
    expected_calibration_error,
    log_loss,
    reliability,
)
from models.measures.coverage_curve import MAX_POINTS, coverage_at_precision, coverage_curve
from models.measures.directions import DIRECTIONS
from models.measures.evaluation import evaluate
from models.measures.probabilities import PROBABILITY_MEASURES


def predictions(seed: int, n: int) -> tuple[Floats, Bools]:
    rng = np.random.default_rng(seed)
    probabilities = np.round(rng.beta(0.4, 0.6, n), 2)
    return probabilities, rng.random(n) < probabilities


def slow_bins(probabilities: Floats, outcomes: Bools) -> list[list[tuple[float, bool]]]:
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(N_BINS)]
    for p, outcome in zip(probabilities.tolist(), outcomes.tolist(), strict=True):
        b = next(b for b in range(N_BINS) if p <= (b + 1) / N_BINS)
        bins[b].append((p, outcome))
    return bins


@pytest.mark.parametrize("seed", range(5))
def test_reliability_and_calibration_error_equal_a_loop(seed: int) -> None:
    probabilities, outcomes = predictions(seed, 40)
    error = 0.0
    for found, members in zip(
        reliability(probabilities, outcomes), slow_bins(probabilities, outcomes), strict=True
    ):
        assert found.count == len(members)
        if not members:
            assert found.mean_probability is None
            assert found.observed_share is None
            continue
        mean = sum(p for p, _ in members) / len(members)
        share = sum(outcome for _, outcome in members) / len(members)
        assert found.mean_probability == pytest.approx(mean)
        assert found.observed_share == pytest.approx(share)
        error += len(members) / 40 * abs(mean - share)
    assert expected_calibration_error(probabilities, outcomes) == pytest.approx(error)


def test_measures_equal_those_of_scikit_learn() -> None:
    probabilities, outcomes = predictions(7, 500)
    probabilities = np.clip(probabilities, 0.001, 0.999)
    assert brier_score(probabilities, outcomes) == pytest.approx(
        metrics.brier_score_loss(outcomes, probabilities)
    )
    assert log_loss(probabilities, outcomes) == pytest.approx(metrics.log_loss(outcomes, probabilities))
    # scikit-learn counts a probability at the bound of two bins in the lower one, too.
    share, mean = calibration_curve(outcomes, probabilities, n_bins=N_BINS)
    bins = [found for found in reliability(probabilities, outcomes) if found.count]
    assert [found.mean_probability for found in bins] == pytest.approx(mean.tolist())
    assert [found.observed_share for found in bins] == pytest.approx(share.tolist())


def test_a_certain_and_wrong_prediction_has_a_finite_log_loss() -> None:
    assert 700 < log_loss(np.array([1.0]), np.array([False])) < 710


def test_true_probabilities_have_no_calibration_error() -> None:
    probabilities = np.repeat([0.25, 0.75], 4)
    outcomes = np.array([True, False, False, False, True, True, True, False])
    assert expected_calibration_error(probabilities, outcomes) == 0


def test_measures_of_no_predictions_are_undefined() -> None:
    nothing, outcomes = np.zeros(0), np.zeros(0, dtype=bool)
    for measure in (expected_calibration_error, brier_score, log_loss):
        assert math.isnan(measure(nothing, outcomes))
    assert math.isnan(coverage_at_precision(nothing, outcomes, 0.95))
    assert coverage_curve(nothing, outcomes) == []


@pytest.mark.parametrize("seed", range(5))
def test_the_coverage_curve_equals_a_loop(seed: int) -> None:
    probabilities, right = predictions(seed, 60)
    points = coverage_curve(probabilities, right)
    thresholds = sorted(set(probabilities.tolist()), reverse=True)
    assert [point.set_probability for point in points] == thresholds
    best = 0.0
    for point in points:
        accepted = right[probabilities >= point.set_probability]
        assert point.coverage == len(accepted) / 60
        assert point.precision == accepted.mean()
        if accepted.mean() >= 0.75:
            best = max(best, point.coverage)
    assert coverage_at_precision(probabilities, right, 0.75) == best


def test_a_long_coverage_curve_has_exact_points_that_are_spread_over_the_coverage() -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.random(5000)
    right = rng.random(5000) < probabilities
    points = coverage_curve(probabilities, right)
    assert len(points) == MAX_POINTS
    assert [round(point.coverage, 9) for point in points] == [round(i / 100, 9) for i in range(1, 101)]
    for point in points[::10]:
        assert point.precision == right[probabilities >= point.set_probability].mean()


def test_no_label_set_is_accepted_if_no_threshold_reaches_the_precision() -> None:
    assert coverage_at_precision(np.array([0.9, 0.1]), np.array([False, True]), 0.95) == 0


def evaluated(unknown: list[list[int]] | None = None) -> dict[str, float]:
    Y, P = as_label_matrix([[1, 0], [0, 1], [1, 1]]), as_label_matrix([[1, 0], [1, 0], [1, 1]])
    result = evaluate(
        Y,
        P,
        np.zeros((3, 2)),
        ["a", "b"],
        unknown=None if unknown is None else as_label_matrix(unknown),
        probabilities=np.array([[0.8, 0.05], [0.55, 0.3], [0.9, 0.65]]),
        set_probabilities=np.array([0.75, 0.25, 0.5]),
    )
    return result.measures


def test_an_evaluation_with_probabilities_has_their_measures() -> None:
    measures = evaluated()
    assert set(PROBABILITY_MEASURES) < set(measures)
    # Five pairs have a probability above 0.1; each is alone in its bin.
    assert measures["expected_calibration_error"] == pytest.approx((0.2 + 0.55 + 0.7 + 0.1 + 0.35) / 5)
    assert measures["brier_score"] == pytest.approx(
        (0.2**2 + 0.05**2 + 0.55**2 + 0.7**2 + 0.1**2 + 0.35**2) / 6
    )
    assert measures["set_expected_calibration_error"] == pytest.approx((0.25 + 0.25 + 0.5) / 3)
    assert measures["coverage_at_precision_95"] == pytest.approx(2 / 3)


def test_unknown_labels_are_left_out_of_the_measures_of_probabilities() -> None:
    measures = evaluated([[0, 0], [1, 0], [0, 0]])
    assert measures["brier_score"] == pytest.approx((0.2**2 + 0.05**2 + 0.7**2 + 0.1**2 + 0.35**2) / 5)
    # The second example has an unknown label, so nobody knows whether its label set is right.
    assert measures["set_brier_score"] == pytest.approx((0.25**2 + 0.5**2) / 2)
    assert measures["coverage_at_precision_95"] == 1


def test_an_evaluation_without_probabilities_has_none_of_their_measures() -> None:
    Y = as_label_matrix([[1, 0]])
    result = evaluate(Y, Y, np.zeros((1, 2)), ["a", "b"])
    assert not set(PROBABILITY_MEASURES) & set(result.measures)
    assert (result.reliability, result.set_reliability, result.coverage_curve) == (None, None, None)


def test_every_measure_of_probabilities_has_a_direction() -> None:
    assert set(PROBABILITY_MEASURES) <= set(DIRECTIONS)
