"""Weights of examples: an example of weight 2 is learned like two equal examples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC
from sparse_cases import problem_of

from models import artifact, catalog
from models.arrays import AnyArray, Floats
from models.base import Context, Problem, Step
from models.baselines.svm import SVM
from models.data.examples import Examples
from models.errors import ParameterError
from models.pipeline import Pipeline

WEIGHTED: list[dict[str, Any]] = [
    {"algorithm": "svm"},
    {"algorithm": "svm", "class_weight": "balanced"},
    {"algorithm": "h_svm"},
    {"algorithm": "naive_bayes"},
    {"algorithm": "naive_bayes", "class_weight": "balanced"},
    {"algorithm": "naive_bayes", "label_mode": "single_label"},
    {"algorithm": "h_rls"},
    *(
        {"algorithm": algorithm, "rounds": 5, "variant": variant, "stump": stump}
        for algorithm in ("adaboost_mh", "mp_boost")
        for variant in ("real", "real_abstaining", "discrete")
        for stump in ("presence", "threshold")
    ),
]
"""The learners that accept weights."""

WEIGHTED_ALGORITHMS = {parameters["algorithm"] for parameters in WEIGHTED}
OTHERS = sorted(set(catalog.ENTRIES) - WEIGHTED_ALGORITHMS)
TREE = np.array([-1, 0, -1])


def name(parameters: dict[str, Any]) -> str:
    return "_".join(map(str, parameters.values()))


def create(parameters: dict[str, Any]) -> Any:
    return catalog.create_learner(catalog.LEARNER_PARAMETERS.validate_python(parameters))


def example_data(seed: int, n: int = 30, r: int = 6) -> tuple[AnyArray, AnyArray, Floats]:
    """Counts, relevant labels that are closed under TREE, and whole weights."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.8, (n, r)).astype(float)
    Y = (X[:, :3] + rng.normal(0, 0.6, (n, 3)) > 1).astype(int)
    Y[:, 1] &= Y[:, 0]
    return X, Y, rng.integers(1, 4, n).astype(float)


def test_the_catalog_lists_the_learners_that_accept_weights() -> None:
    accepting = {entry.algorithm for entry in catalog.describe() if entry.accepts_weights}
    assert accepting == WEIGHTED_ALGORITHMS


@pytest.mark.parametrize("parameters", WEIGHTED, ids=name)
@given(st.integers(0, 2**31))
@settings(max_examples=4, deadline=None)
def test_an_example_of_weight_two_is_learned_like_two_examples(parameters: dict[str, Any], seed: int) -> None:
    X, Y, weights = example_data(seed)
    times = weights.astype(int)
    weighted = create(parameters).fit(X, Y, sample_weight=weights, context=Context(parents=TREE))
    repeated = create(parameters).fit(
        np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0), context=Context(parents=TREE)
    )
    # liblinear stops at a tolerance, so that its two solutions are not equal to the last digit.
    tolerance = 5e-3 if parameters["algorithm"] in {"svm", "h_svm"} else 1e-8
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("parameters", WEIGHTED, ids=name)
def test_weights_of_one_change_nothing(parameters: dict[str, Any]) -> None:
    X, Y, weights = example_data(0)
    plain = create(parameters).fit(X, Y, context=Context(parents=TREE))
    ones = create(parameters).fit(X, Y, sample_weight=np.ones_like(weights), context=Context(parents=TREE))
    other = create(parameters).fit(X, Y, sample_weight=weights, context=Context(parents=TREE))
    for key, array in plain.get_state().items():
        np.testing.assert_array_equal(array, ones.get_state()[key])
    assert not np.array_equal(plain.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("class_weight", ["none", "balanced"])
def test_svm_equals_linear_svc_with_sample_weights(class_weight: str) -> None:
    X, Y, weights = example_data(1)
    learner = create({"algorithm": "svm", "C": 0.5, "class_weight": class_weight})
    scores = learner.fit(X, Y, sample_weight=weights).decision_function(X)
    for j in range(Y.shape[1]):
        svc = LinearSVC(
            C=0.5, dual="auto", class_weight=None if class_weight == "none" else class_weight, random_state=0
        )
        expected = svc.fit(X, Y[:, j], sample_weight=weights).decision_function(X)
        np.testing.assert_allclose(scores[:, j], expected, rtol=1e-12)


def test_naive_bayes_equals_multinomial_nb_with_sample_weights() -> None:
    X, Y, weights = example_data(2)
    scores = (
        create({"algorithm": "naive_bayes", "alpha": 0.3})
        .fit(X, Y, sample_weight=weights)
        .decision_function(X)
    )
    for j in range(Y.shape[1]):
        reference = MultinomialNB(alpha=0.3).fit(X, Y[:, j], sample_weight=weights)
        log = reference.predict_joint_log_proba(X)
        np.testing.assert_allclose(scores[:, j], log[:, 1] - log[:, 0], rtol=1e-9, atol=1e-12)


def test_naive_bayes_learns_further_examples_with_weights() -> None:
    X, Y, weights = example_data(3)
    names = ["a", "b", "c"]
    whole = create({"algorithm": "naive_bayes"})
    whole.fit(X, Y, sample_weight=weights, context=Context(labels=names))
    parts = create({"algorithm": "naive_bayes"})
    ones = weights.copy()
    ones[:10] = 1  # the first part has no weights
    whole.fit(X, Y, sample_weight=ones, context=Context(labels=names))
    parts.partial_fit(X[:10], Y[:10, 1:], context=Context(labels=names[1:]))
    Y[:10, 0] = 0
    whole.fit(X, Y, sample_weight=ones, context=Context(labels=names))
    parts.partial_fit(X[10:], Y[10:], sample_weight=ones[10:], context=Context(labels=names))
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), rtol=1e-9)
    loaded = create({"algorithm": "naive_bayes"}).set_state(parts.get_state())
    np.testing.assert_array_equal(loaded.decision_function(X), parts.decision_function(X))


@pytest.mark.parametrize("algorithm", OTHERS)
def test_other_learners_refuse_weights(algorithm: str) -> None:
    X, Y, weights = example_data(0)
    with pytest.raises(TypeError, match="sample_weight"):
        create({"algorithm": algorithm}).fit(X, Y, sample_weight=weights, context=Context(parents=TREE))
    with pytest.raises(
        ParameterError, match="use one of adaboost_mh, h_rls, h_svm, mp_boost, naive_bayes, svm"
    ) as caught:
        catalog.check_weights(catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm}))
    assert caught.value.pointer == "/learner/algorithm"


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"sample_weight.shape == \(2,\)"),
        ([0.0] * 30, "the weights of all examples are zero"),
        ([np.nan] * 30, "a weight must be a finite number"),
    ],
)
def test_invalid_weights_are_refused(weights: list[float], message: str) -> None:
    X, Y, _ = example_data(0)
    with pytest.raises(ValueError, match=message):
        create({"algorithm": "svm"}).fit(X, Y, sample_weight=np.array(weights))


@pytest.mark.parametrize("algorithm", ["adaboost_mh", "mp_boost"])
@given(st.integers(0, 2**31))
@settings(max_examples=4, deadline=None)
def test_the_weighted_hamming_loss_of_boosting_is_below_its_bound_in_every_round(
    algorithm: str, seed: int
) -> None:
    X, Y, weights = example_data(seed)
    steps: list[Step] = []
    learner = create({"algorithm": algorithm, "rounds": 5})
    learner.fit_problem(problem_of(X, Y, weights=weights), monitor=steps.append)
    for step in steps:
        so_far = create({"algorithm": algorithm, "rounds": step.completed})
        scores = so_far.fit(X, Y, sample_weight=weights).decision_function(X)
        wrong = ((scores > 0) != (Y > 0)).mean(axis=1)
        assert np.average(wrong, weights=weights) <= step.measures["loss_bound"] * (1 + 1e-9)


def test_early_stopping_leaves_the_weights_of_held_out_examples_out() -> None:
    X, Y, weights = example_data(4)
    early = {"algorithm": "mp_boost", "rounds": 3, "early_stopping": {"validation_fraction": 0.3}}
    create(early).fit(X, Y, sample_weight=weights)


def test_h_rls_solves_the_weighted_least_squares() -> None:
    X, Y, weights = example_data(5)
    scores = create({"algorithm": "h_rls", "ridge": 0.5}).fit(X, Y, sample_weight=weights)
    signs = np.where(Y[:, 0] > 0, 1.0, -1.0)
    A = 0.5 * np.eye(X.shape[1]) + (X.T * weights) @ X + np.outer(X[0], X[0])
    expected = X[0] @ np.linalg.solve(A, (X.T * weights) @ signs)
    assert scores.decision_function(X[:1])[0, 0] == pytest.approx(expected)


def pipeline(algorithm: str, kind: str = "sign", **parameters: Any) -> Pipeline:
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm, **parameters}),
        catalog.DECISION_PARAMETERS.validate_python({"kind": kind}),
    )


def texts() -> Examples:
    """Examples of "invoice" that contradict each other, of which those with the label weigh less."""
    documents = ["invoice", "invoice", "invoice", "parcel", "parcel", "printer"] * 4
    labels: list[tuple[str, ...]] = [("a",), (), ("a",), ("b",), (), ("b",)] * 4
    return Examples("text", documents, labels, weights=[0.01, 1, 0.01, 1, 1, 1] * 4)


@pytest.mark.parametrize("algorithm", ["svm", "naive_bayes"])
def test_a_pipeline_learns_with_weights(algorithm: str, tmp_path: Path) -> None:
    model = pipeline(algorithm).fit(texts())
    assert model.predictions(["invoice"])[0].labels == []
    assert model.summary_.facts["weighted_examples"] == 8
    unweighted = pipeline(algorithm).fit(replace(texts(), weights=()))
    assert unweighted.predictions(["invoice"])[0].labels == ["a"]
    artifact.save(model, tmp_path / "model.covey")
    artifact.check_saved(tmp_path / "model.covey", model, texts())


def test_folds_keep_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    model = pipeline("svm", "tuned_threshold")
    seen: list[Floats | None] = []
    fit_problem = SVM.fit_problem

    def spy(self: SVM, problem: Problem, **more: Any) -> SVM:
        seen.append(problem.weights)
        return fit_problem(self, problem, **more)

    monkeypatch.setattr(SVM, "fit_problem", spy)
    model.fit(texts())
    of_all, *of_folds = [len(weights) for weights in seen if weights is not None]
    assert (of_all, len(of_folds), sum(of_folds)) == (24, 3, 2 * 24), "copies of a document share a fold"
    assert all({*weights.tolist()} <= {0.01, 1} for weights in seen if weights is not None)
    assert sum(float(weights.sum()) for weights in seen if weights is not None) == pytest.approx(
        3 * sum(texts().weights)
    )


def test_a_pipeline_refuses_weights_before_it_reads_the_documents() -> None:
    with pytest.raises(ParameterError, match="mmp does not accept weights"):
        pipeline("mmp", "tuned_threshold").fit(texts())
