"""The paired comparison of two models: exact p-values, symmetry, level of the test, and its measures."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from models.arrays import AnyArray, Floats, Labels
from models.base.validation import as_label_matrix
from models.measures import paired
from models.measures.evaluation import evaluate
from models.measures.paired import compare, mean
from models.measures.paired_measures import PAIRED_MEASURES, Outcomes, paired_sums

LABELS = ["a", "b", "c"]


def exact_p(first: Floats, second: Floats) -> float:
    """The share of all exchanges whose difference of means is at least as large as the observed one."""
    differences = first - second
    observed = abs(differences.sum())
    signs = product([1, -1], repeat=len(differences))
    return float(np.mean([abs(np.dot(sign, differences)) >= observed - 1e-12 for sign in signs]))


def values(of_documents: Floats) -> csr_array:
    return csr_array(np.column_stack([of_documents, np.ones(len(of_documents))]))


def outcomes(rng: np.random.Generator, n: int, Y: AnyArray, wrong: float) -> Outcomes:
    """Label sets and scores of a model, with a share of wrong labels."""
    predicted = np.where(rng.random(Y.shape) < wrong, 1 - Y, Y)
    return Outcomes(as_label_matrix(predicted), predicted + rng.random((n, Y.shape[1])) * 0.9)


@given(st.integers(0, 2**31), st.integers(1, 9))
@settings(max_examples=12, deadline=None)
def test_the_p_value_is_that_of_all_exchanges(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = (rng.integers(0, 3, n).astype(np.float64) for _ in range(2))
    p_value = compare(values(first), values(second), mean).p_value
    assert abs(p_value - exact_p(first, second)) < 0.02


@given(st.integers(0, 2**31), st.sampled_from(["f1_micro", "f1_macro", "accuracy", "one_error"]))
@settings(max_examples=8, deadline=None)
def test_models_that_change_places_have_the_same_p_value(seed: int, measure: str) -> None:
    rng = np.random.default_rng(seed)
    Y = (rng.random((30, 3)) < 0.4).astype(int)
    (first, statistic), (second, _) = (
        paired_sums(measure, as_label_matrix(Y), outcomes(rng, 30, Y, wrong), LABELS) for wrong in (0.1, 0.2)
    )
    there, back = compare(first, second, statistic), compare(second, first, statistic)
    assert there.p_value == back.p_value
    assert there.difference == -back.difference
    assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]))


def test_p_values_are_uniform_if_there_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "PERMUTATIONS", 500)
    monkeypatch.setattr(paired, "RESAMPLES", 10)
    rng = np.random.default_rng(7)
    p_values = []
    for _ in range(300):
        Y = (rng.random((60, 3)) < 0.4).astype(int)
        (first, statistic), (second, _) = (
            paired_sums("f1_micro", as_label_matrix(Y), outcomes(rng, 60, Y, 0.2), LABELS) for _ in range(2)
        )
        p_values.append(compare(first, second, statistic).p_value)
    for level in (0.05, 0.2, 0.5, 0.8):
        share = np.mean(np.array(p_values) <= level)
        assert abs(share - level) < 3.5 * np.sqrt(level * (1 - level) / 300)


def test_equal_predictions_are_not_different() -> None:
    rng = np.random.default_rng(1)
    Y = (rng.random((40, 3)) < 0.4).astype(int)
    sums, statistic = paired_sums("f1_micro", as_label_matrix(Y), outcomes(rng, 40, Y, 0.1), LABELS)
    result = compare(sums, sums, statistic)
    assert (result.difference, result.interval, result.p_value) == (0.0, (0.0, 0.0), 1.0)


def test_a_large_difference_is_significant_and_its_interval_excludes_zero() -> None:
    rng = np.random.default_rng(2)
    Y = (rng.random((200, 3)) < 0.4).astype(int)
    good, bad = (outcomes(rng, 200, Y, wrong) for wrong in (0.05, 0.3))
    for measure, sign in (("f1_micro", 1), ("f1_macro", 1), ("hamming_loss", -1), ("accuracy", 1)):
        (first, statistic), (second, _) = (
            paired_sums(measure, as_label_matrix(Y), model, LABELS) for model in (good, bad)
        )
        result = compare(first, second, statistic)
        assert result.p_value == pytest.approx(1 / 10_001)
        low, high = result.interval
        assert low <= result.difference <= high
        assert min(sign * low, sign * high) > 0


def test_the_result_depends_only_on_the_seed() -> None:
    rng = np.random.default_rng(3)
    first, second = (values(rng.random(50)) for _ in range(2))
    assert compare(first, second, mean, seed=1) == compare(first, second, mean, seed=1)
    assert compare(first, second, mean, seed=1) != compare(first, second, mean, seed=2)


def test_blocks_do_not_change_the_number_of_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    first, second = (values(rng.random(30)) for _ in range(2))
    whole = compare(first, second, mean)
    monkeypatch.setattr(paired, "_BLOCK_VALUES", 30 * 700)
    assert compare(first, second, mean).p_value == pytest.approx(whole.p_value, abs=0.02)


@pytest.mark.parametrize("with_unknown", [False, True])
def test_every_paired_measure_has_the_value_of_the_evaluation(with_unknown: bool) -> None:
    rng = np.random.default_rng(5)
    Y = (rng.random((25, 3)) < 0.4).astype(int)
    model = outcomes(rng, 25, Y, 0.2)
    unknown: Labels | None = None
    if with_unknown:
        unknown = as_label_matrix(np.where(Y, 0, rng.random(Y.shape) < 0.2))
    expected = evaluate(as_label_matrix(Y), model.predicted, model.scores, LABELS, unknown=unknown).measures
    checked = 0
    for measure in PAIRED_MEASURES:
        if measure not in expected:  # of a label tree or a covering
            continue
        sums, statistic = paired_sums(measure, as_label_matrix(Y), model, LABELS, unknown=unknown)
        totals = np.asarray(sums.sum(axis=0), dtype=np.float64)
        assert statistic(totals[np.newaxis])[0] == pytest.approx(expected[measure]), measure
        checked += 1
    assert checked == 17


def test_a_paired_macro_average_leaves_out_labels_without_true_and_predicted_examples() -> None:
    Y, predicted = as_label_matrix([[1, 0], [1, 0]]), as_label_matrix([[1, 0], [0, 0]])
    for measure, expected in (("f1_macro", 2 / 3), ("f1_macro_one", 5 / 6), ("f1_macro_zero", 1 / 3)):
        sums, statistic = paired_sums(measure, Y, Outcomes(predicted, np.zeros((2, 2))), ["a", "b"])
        totals = np.asarray(sums.sum(axis=0), dtype=np.float64)
        assert statistic(np.stack([totals, 0 * totals]))[0] == pytest.approx(expected)
