"""Costs of the perceptrons: operations (table I, eq. 9), memory and precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from models.base import Context
from models.errors import UnsuitableDataError
from models.perceptrons import MLPP, MMP, BinaryRelevancePerceptron, mlpp


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(2, 12),
    density=st.floats(0.05, 0.95),
    epochs=st.integers(1, 2),
    loss=st.sampled_from(["is_error", "margin"]),
)
def test_mlpp_takes_at_most_2l_times_the_operations_of_mmp(
    seed: int, k: int, density: float, epochs: int, loss: Any
) -> None:
    """Equation 9."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(40, 5)), (rng.random((40, k)) < density).astype(int)
    mean_labels = Y.sum() / len(Y)
    ours = MLPP(epochs=epochs).fit(X, Y).operations_
    theirs = MMP(epochs=epochs, loss=loss).fit(X, Y).operations_
    assert ours <= 2 * mean_labels * theirs
    sizes = Y.sum(axis=1)
    products = epochs * int((sizes * (k - sizes)).sum())
    assert products <= ours <= 2 * products


def test_further_training_continues_to_count_operations() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 5)), (rng.random((40, 6)) < 0.3).astype(int)
    for learner in (MMP(), BinaryRelevancePerceptron(), MLPP(calibrated=True)):
        first = learner.fit(X, Y).summary_.facts["perceptron_operations"]
        again = learner.partial_fit(X, Y).summary_.facts
        assert again["perceptron_operations"] > first
        assert again["perceptron_operations"] - first >= 40 * 6
        assert again["perceptron_updates"] == learner.updates_ > 0


def test_operations_of_a_prediction() -> None:
    X, Y = np.ones((3, 2)), np.eye(3, 6, dtype=int)
    assert MMP().fit(X, Y).summary_.facts["operations_per_prediction"] == 6
    assert BinaryRelevancePerceptron().fit(X, Y).summary_.facts["operations_per_prediction"] == 6
    assert MLPP().fit(X, Y).summary_.facts["operations_per_prediction"] == 15
    assert MLPP(calibrated=True).fit(X, Y).summary_.facts["operations_per_prediction"] == 21


def test_weights_over_a_gibibyte_are_float32_and_the_facts_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 5)), (rng.random((40, 6)) < 0.3).astype(int)
    names = ["a", "b", "c", "d", "e", "f"]
    monkeypatch.setattr(mlpp, "FLOAT64_LIMIT", 5 * 15 * 8)
    double = MLPP(voting="weighted").fit(X, Y, context=Context(labels=names))
    assert double.summary_.facts["weight_precision"] == "float64"
    assert double.summary_.facts["weight_bytes"] == 5 * 15 * 8
    single = MLPP(voting="weighted", calibrated=True).fit(X, Y)
    assert single.pair_weights_.dtype == single.boundary_weights_.dtype == np.float32
    assert single.summary_.facts["weight_precision"] == "float32"
    assert single.summary_.facts["weight_bytes"] == 5 * 21 * 4
    scores = single.decision_function(X)
    assert scores.dtype == np.float64
    monkeypatch.setattr(mlpp, "FLOAT64_LIMIT", 5 * 21 * 8)
    expected = MLPP(voting="weighted", calibrated=True).fit(X, Y).decision_function(X)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
    # With one more label, the weights no longer fit in float64.
    monkeypatch.setattr(mlpp, "FLOAT64_LIMIT", 5 * 15 * 8)
    double.partial_fit(X, Y[:, :1], context=Context(labels=["g"]))
    assert double.summary_.facts["weight_precision"] == "float32"


def test_the_corpus_of_the_paper_fits_in_memory() -> None:
    """103 labels and 25,000 features take 525 MB in float32, and less than a gibibyte in float64."""
    n_weights = 103 * 102 // 2 * 25_000
    assert n_weights * 4 == 525_300_000
    assert mlpp.weight_dtype(n_weights) is np.float64
    assert mlpp.weight_dtype(n_weights + 103 * 25_000) is np.float64
    assert mlpp.weight_dtype(2**27 + 1) is np.float32


@pytest.mark.parametrize(
    ("learner", "size"),
    [
        (MLPP(), r"499,500 pairs of 1000 labels over 100,000 features need 186\.1 GiB"),
        (MLPP(calibrated=True), r"500,500 pairs of 1000 labels over 100,000 features need 186\.5 GiB"),
    ],
)
def test_too_many_pairs_are_rejected_with_the_number(learner: MLPP, size: str) -> None:
    X, Y = np.ones((1, 100_000)), np.ones((1, 1_000), dtype=int)
    with pytest.raises(UnsuitableDataError, match=size):
        learner.fit(X, Y)


@pytest.mark.parametrize("learner", [MMP(), BinaryRelevancePerceptron()])
def test_too_many_perceptrons_are_rejected_and_the_learner_does_not_change(
    learner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.base.memory.WEIGHTS_LIMIT", 5 * 6 * 8)
    X, Y = np.ones((4, 5)), np.eye(4, 6, dtype=int)
    learner.fit(X, Y, context=Context(labels=["a", "b", "c", "d", "e", "f"]))
    scores = learner.decision_function(X)
    with pytest.raises(UnsuitableDataError, match=r"7 perceptrons over 5 features need"):
        learner.partial_fit(X, Y[:, :1], context=Context(labels=["g"]))
    np.testing.assert_array_equal(learner.decision_function(X), scores)
    assert learner.labels_ == ["a", "b", "c", "d", "e", "f"]


def test_explanations() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 5)), (rng.random((40, 6)) < 0.3).astype(int)
    Y[:, 5] = 1
    example = csr_array(X[:1])
    for learner in (MMP(), BinaryRelevancePerceptron()):
        indices, weights = learner.fit(X, Y).explain(example, 2)
        assert indices.tolist() == [0, 1, 2, 3, 4]
        assert weights.sum() == pytest.approx(learner.decision_function(X[:1])[0, 2], abs=1e-12)
    assert len(BinaryRelevancePerceptron().fit(X, Y).explain(example, 5)[0]) == 0


@pytest.mark.parametrize("calibrated", [False, True])
def test_an_explanation_of_mlpp_is_the_sum_over_the_pairs_of_the_label(calibrated: bool) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 5)), (rng.random((40, 4)) < 0.3).astype(int)
    learner = MLPP(calibrated=calibrated).fit(X, Y)
    # pairs in order: 01 02 03 12 13 23
    W = learner.pair_weights_
    expected = -W[:, 1] - W[:, 3] + W[:, 5] + (learner.boundary_weights_[:, 2] if calibrated else 0)
    np.testing.assert_allclose(learner.explain(csr_array(X[:1]), 2)[1], expected * X[0], rtol=0, atol=1e-12)
