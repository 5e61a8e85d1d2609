"""The benchmark of calibration: its errors, their intervals, and the goals that it reports."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from benchmarks import corpora, intervals
from benchmarks.compare import calibration
from benchmarks.tables import Result
from models.data.examples import Examples, FeatureRows, Split
from models.measures.calibration import LEAST_PROBABILITY, expected_calibration_error, probable


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(42)  # another stream than that of any seed below


def result(*, pairs: float, low: float) -> Result:
    """Return a stored result with an error of pairs, and one of label sets that meets its goal."""
    good = {"value": 0.01, "low": 0.0, "high": 0.02}
    values = dict.fromkeys(calibration.DETAILS, 0.5)
    return {**values, "pairs": {"value": pairs, "low": low, "high": 1.0}, "sets": good}


def test_the_error_of_the_test_part_is_that_of_the_measure(rng: np.random.Generator) -> None:
    p = rng.random((50, 4)) ** 2
    outcomes = rng.random((50, 4)) < 0.3
    counts = intervals.resamples(50, seed=0)
    errors = calibration.resampled_errors(p, outcomes, counts, least=LEAST_PROBABILITY)
    assert errors.shape == (1 + intervals.N_RESAMPLES,)
    assert errors[0] == pytest.approx(
        expected_calibration_error(*probable(p.ravel(), outcomes.ravel())), abs=1e-12
    )
    rows = np.repeat(np.arange(50), counts[7].astype(np.int64))
    assert errors[7] == pytest.approx(
        expected_calibration_error(*probable(p[rows].ravel(), outcomes[rows].ravel())), abs=1e-12
    )


def test_the_interval_of_true_probabilities_contains_the_error_by_chance(rng: np.random.Generator) -> None:
    p = rng.random((400, 1))
    errors = calibration.resampled_errors(p, rng.random(p.shape) < p, intervals.resamples(400, seed=0))
    found = calibration.corrected_interval(errors)
    assert found["low"] < found["value"] < found["high"]
    assert found["low"] < calibration.error_by_chance(p[:, 0], seed=0) < found["high"]
    # Without the correction, the interval would be that of larger errors.
    assert found["high"] < np.quantile(errors[1:], 0.975)


def test_a_goal_is_met_up_to_its_value_and_certainly_missed_if_the_interval_is_above() -> None:
    found = {
        ("yeast", "svm, given"): result(pairs=0.035, low=0.01),
        ("scene", "svm, given"): result(pairs=0.0351, low=0.02),
        ("emotions", "svm, given"): result(pairs=0.06, low=0.036),
    }
    first = calibration.goals(found).splitlines()[2]
    assert first == "| `svm` | given | 1 of 3 | 3 of 3 | 1 of 3 | scene (?), emotions |"
    assert "| scene | .035* [.020, 1.000] |" in calibration.errors_by_corpus(found, "pairs")


def corpus(rng: np.random.Generator) -> Examples:
    """Return a corpus of two labels, each of which a feature indicates most of the time."""
    Y = rng.random((120, 2)) < 0.4
    X = csr_array(np.where(rng.random((120, 2)) < 0.9, Y, ~Y) + rng.random((120, 2)))
    labels = [tuple(np.array(["a", "b"])[row].tolist()) for row in Y]
    parts: list[Split] = [*["train"] * 80, *["test"] * 40]  # type: ignore[list-item]
    return Examples("features", FeatureRows(["x", "y"], X), labels, split_column=parts)


@pytest.mark.parametrize("learner", ["svm", "mp_boost"])
def test_a_learner_is_measured_with_each_seed(
    learner: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    examples = corpus(rng)
    monkeypatch.setitem(corpora.EXAMPLES, "yeast", lambda: examples)
    found = calibration.measure("yeast", f"{learner}, stratified", range(2))
    assert found["seeds"] == 2
    assert found.keys() == {"seeds", *calibration.DETAILS}
    assert found["pairs"]["low"] <= found["pairs"]["value"] <= found["pairs"]["high"]


def test_a_stratified_test_part_has_the_size_of_the_given_one_and_the_label_frequencies_of_the_rest(
    rng: np.random.Generator,
) -> None:
    examples = corpus(rng)
    training, test = corpora.split(examples, "stratified", 0)
    assert (training.n_examples, test.n_examples) == (80, 40)
    for label in ("a", "b"):
        shares = [
            sum(label in labels for labels in part.labels) / len(part.labels) for part in (training, test)
        ]
        assert shares[0] == pytest.approx(shares[1], abs=0.02)
    assert corpora.split(examples, "given", 0)[1].labels == examples.labels[80:]
