"""The weights of ``svm`` and ``h_svm``: trained in threads, stored in float32 or pruned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse, random_array
from sparse_cases import problem_of

from models import artifact, catalog
from models.arrays import AnyArray, Matrix, Vector
from models.base import Context, State, Step
from models.base import products as products_module
from models.base.products import product
from models.base.validation import as_feature_matrix, as_label_matrix
from models.baselines.coefficients import CoefficientColumns, Compression
from models.baselines.svm import SVM
from models.data.examples import Examples
from models.errors import ArtifactError, StopTraining, UnsuitableDataError
from models.hierarchy.h_svm import HSVM
from models.pipeline import Pipeline

COMPRESSIONS: list[dict[str, Any]] = [
    {},
    {"precision": "float32"},
    {"prune": 0.05},
    {"prune": 0.05, "precision": "float32"},
]
TREE = np.array([-1, 0, 0, -1])


def problem(g: int = 60, r: int = 30) -> tuple[Matrix, AnyArray]:
    rng = np.random.default_rng(0)
    X = as_feature_matrix(random_array((g, r), density=0.2, random_state=rng, format="csr"))
    Y = (rng.random((g, 4)) < [0.5, 0.4, 1.0, 0.3]).astype(int)
    Y[:, 1:3] &= Y[:, :1]
    return X, Y


def assert_equal_states(first: State, second: State) -> None:
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])


@pytest.mark.parametrize("learner", [SVM, HSVM])
@pytest.mark.parametrize(("g", "r"), [(60, 30), (30, 60), (60, 28)])
def test_threads_do_not_change_a_bit(learner: type[SVM], g: int, r: int) -> None:
    X, Y = problem(g, r)
    unknown = np.zeros_like(Y)
    unknown[:33, 3] = Y[:33, 3] == 0  # with 28 features, liblinear solves its dual problem for this label
    context = Context(parents=TREE, unknown=as_label_matrix(unknown))
    steps: dict[int, list[int]] = {1: [], 3: []}
    states = {
        n_jobs: learner()
        .fit_problem(
            problem_of(X, Y, replace(context, n_jobs=n_jobs)),
            monitor=lambda step, n_jobs=n_jobs: steps[n_jobs].append(step.completed),
        )
        .get_state()
        for n_jobs in (1, 3)
    }
    assert_equal_states(states[1], states[3])
    assert steps[1] == steps[3] == [1, 2, 3, 4]


@pytest.mark.parametrize("parameters", COMPRESSIONS, ids=str)
def test_a_resumed_or_saved_learner_has_the_same_weights(parameters: dict[str, Any]) -> None:
    X, Y = problem()
    learner = SVM(**parameters).fit(X, Y)
    snapshots: list[State] = []

    def stop_after_two(step: Step) -> None:
        snapshots.append(step.snapshot())
        if step.completed == 2:
            raise StopTraining

    with pytest.raises(StopTraining):
        SVM(**parameters).fit_problem(problem_of(X, Y, Context(n_jobs=2)), monitor=stop_after_two)
    resumed = SVM(**parameters).fit_problem(problem_of(X, Y), resume=snapshots[-1])
    assert_equal_states(learner.get_state(), resumed.get_state())
    restored = SVM(**parameters).set_state(learner.get_state())
    np.testing.assert_array_equal(restored.decision_function(X), learner.decision_function(X))


@pytest.mark.parametrize("parameters", COMPRESSIONS, ids=str)
@pytest.mark.parametrize("limit", [1, 40, 10**6])
def test_one_example_has_the_same_bits_as_a_batch(
    parameters: dict[str, Any], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products_module, "_MAX_CONVERTED", limit)
    monkeypatch.setattr(products_module, "_MAX_GATHERED", limit)
    X, Y = problem()
    X = as_feature_matrix(csr_array(np.vstack([X.toarray(), np.zeros((1, 30))])))
    learner = SVM(**parameters).fit(X, np.vstack([Y, Y[:1]]))
    scores = learner.decision_function(X)
    for i in range(X.shape[0]):
        row = slice(X.indptr[i], X.indptr[i + 1])
        one = learner.score_one(Vector(X.indices[row].astype(np.int64), X.data[row]))
        np.testing.assert_array_equal(one, scores[i])
    assert scores.dtype == np.float64


def test_small_weights_are_dropped() -> None:
    X, Y = problem()
    full = SVM().fit(X, Y).coef_
    pruned = SVM(prune=0.1).fit(X, Y).coef_
    assert isinstance(full, np.ndarray)
    assert issparse(pruned)
    sizes = np.abs(full)
    kept = np.where(sizes >= 0.1 * sizes.max(axis=0), full, 0)
    np.testing.assert_array_equal(pruned.toarray(), kept)
    assert 0 < np.count_nonzero(kept) < np.count_nonzero(full)


def test_float32_weights_are_the_rounded_ones() -> None:
    X, Y = problem()
    full, rounded = SVM().fit(X, Y).coef_, SVM(precision="float32").fit(X, Y).coef_
    assert isinstance(full, np.ndarray)
    np.testing.assert_array_equal(rounded, full.astype(np.float32))


def test_a_weight_beyond_float32_is_an_error() -> None:
    columns = CoefficientColumns(2, 1, Compression("float32"))
    with pytest.raises(UnsuitableDataError, match="too large for the precision float32; use float64"):
        columns.append(0, np.array([1.0, 1e39]))


@pytest.mark.parametrize("parameters", COMPRESSIONS, ids=str)
def test_explanation_and_intercept_add_up_to_the_score(parameters: dict[str, Any]) -> None:
    X, Y = problem()
    learner = SVM(**parameters).fit(X, Y)
    _, terms = learner.explain(X[:1], 3)
    score = learner.decision_function(X[:1])[0, 3]
    assert terms.sum() + learner.intercept_[3] == pytest.approx(score, abs=1e-12)


def test_forged_sparse_weights_are_rejected() -> None:
    X, Y = problem()
    state = SVM(prune=0.05).fit(X, Y).get_state()
    forged = {**state, "coef.indices": np.full_like(state["coef.indices"], 4)}
    with pytest.raises(ArtifactError, match="contains an index outside 0 to 3"):
        SVM(prune=0.05).set_state(forged)
    with pytest.raises(ArtifactError, match="array 'coef' is missing"):
        SVM().set_state(state)
    with pytest.raises(ArtifactError, match="expected type float32"):
        SVM(prune=0.05, precision="float32").set_state(state)


@pytest.mark.parametrize("parameters", COMPRESSIONS[1:], ids=str)
@pytest.mark.parametrize("decision", ["sign", "tuned_threshold"])
def test_a_pipeline_with_compressed_weights_can_be_saved(
    parameters: dict[str, Any], decision: str, tmp_path: Path
) -> None:
    words = ["invoice", "parcel", "printer", "late", "broken"]
    rng = np.random.default_rng(1)
    documents = [" ".join(rng.choice(words, 3)) for _ in range(40)]
    examples = Examples("text", documents, [tuple(sorted({*d.split()} & {*words[:2]})) for d in documents])
    model = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm", **parameters}),
        catalog.DECISION_PARAMETERS.validate_python({"kind": decision}),
    ).fit(examples, n_jobs=2)
    artifact.save(model, tmp_path / "model.covey")
    artifact.check_saved(tmp_path / "model.covey", model, examples)
    loaded = artifact.load(tmp_path / "model.covey")
    np.testing.assert_array_equal(loaded.scores(examples), model.scores(examples))
    np.testing.assert_array_equal(loaded.scores(documents[:1]), model.scores(examples)[:1])


def test_weights_of_any_storage_give_the_same_products() -> None:
    rng = np.random.default_rng(3)
    X = as_feature_matrix(random_array((5, 9), density=0.5, random_state=rng, format="csr"))
    weights = rng.integers(-3, 4, (9, 4)).astype(np.float64)
    expected = X @ weights
    for stored in (weights, weights.astype(np.float32), csr_array(weights), csr_array(weights).astype("f4")):
        weights_of_any_type: Any = stored
        np.testing.assert_array_equal(product(X, weights_of_any_type), expected)
