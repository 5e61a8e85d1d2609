"""H-M3: marginals, weights, scores, explanations, saved states, parameters and limits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from corpora import FOLDER
from hierarchy_cases import KERNELS, StepLog, edge_labels, larger_problem
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sparse_cases import problem_of
from threadpoolctl import threadpool_limits

from models.base import Context, State, Step
from models.base.validation import as_feature_matrix
from models.errors import ParameterError, StopTraining, UnsuitableDataError
from models.hierarchy import h_m3
from models.hierarchy.conditional_gradient import line_searches
from models.hierarchy.forest import Forest
from models.hierarchy.h_m3 import HM3, HM3Parameters
from models.measures.tree import simplified_hierarchical_loss


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("loss", ["symmetric_difference", "simplified_hierarchical"])
@pytest.mark.parametrize("scaling", ["uniform", "sibling", "subtree"])
def test_every_pass_raises_the_dual_and_keeps_the_marginals_feasible(
    kernel: str, loss: str, scaling: str
) -> None:
    X, Y, context = larger_problem()
    log = StepLog()
    HM3(loss=loss, scaling=scaling, kernel=kernel, gap=1e-4, passes=12).fit_problem(
        problem_of(X, Y, context), monitor=log
    )
    primal, dual = log.measures("primal"), log.measures("dual")
    assert (primal >= dual).all()
    assert (np.diff(dual) >= -1e-9 * dual[-1]).all()
    assert dual[0] > 0
    assert context.parents is not None
    forest = Forest(context.parents)
    marginals = log.states[-1]["marginals"].reshape(150, 2, 2, 7)  # parent, child
    assert (marginals >= 0).all()
    np.testing.assert_allclose(marginals.sum(axis=(1, 2)), 1, atol=1e-9)
    child_on = marginals[:, :, 1].sum(axis=1)
    parent_on = marginals[:, 1].sum(axis=1)
    for node, parent in enumerate(forest.parent_positions):
        np.testing.assert_allclose(parent_on[:, node], child_on[:, parent] if parent >= 0 else 1.0, atol=1e-9)


def test_the_weights_are_those_of_the_marginals() -> None:
    X, Y, context = larger_problem()
    log = StepLog()
    learner = HM3(C=2.0, passes=5).fit_problem(problem_of(X, Y, context), monitor=log)
    marginals = log.states[-1]["marginals"]
    forest = learner.forest_
    expected = np.zeros_like(learner.edge_weights_)
    for i, x in enumerate(X.toarray()):
        for node, label in enumerate(forest.order):
            parent = forest.parents[label]
            true = 2 * (Y[i, parent] if parent >= 0 else 1) + Y[i, label]
            nu = -marginals[i, :, node]
            nu[true] += 2.0
            expected[:, :, node] += np.outer(x, nu)
    np.testing.assert_allclose(learner.edge_weights_, expected, atol=1e-9)


def test_the_sign_rule_gives_the_best_labeling_by_edge_weights() -> None:
    X, Y, context = larger_problem()
    learner = HM3(passes=5).fit(X, Y, context=context)
    parents, node = learner.forest_.parents.tolist(), learner.forest_.positions
    labelings = np.array(list(itertools.product([0, 1], repeat=7)))
    for x, predicted in zip(X.toarray()[:20], learner.predict(X[:20]), strict=True):
        values = [
            sum(
                float(x @ learner.edge_weights_[:, 2 * parent_on + on, node[j]])
                for j, (parent_on, on) in enumerate(edge_labels(parents, y))
            )
            for y in labelings
        ]
        np.testing.assert_array_equal(predicted, labelings[int(np.argmax(values))])


def test_polynomial_of_degree_1_is_linear_with_a_constant_feature() -> None:
    X, Y, context = larger_problem()
    extended = np.hstack([X.toarray(), np.ones((150, 1))])
    for passes in (1, 2):  # with more passes, rounding errors lead to different paths
        dual = HM3(kernel={"kind": "polynomial", "degree": 1}, passes=passes).fit(X, Y, context=context)
        primal = HM3(passes=passes).fit(extended, Y, context=context)
        np.testing.assert_allclose(dual.decision_function(X), primal.decision_function(extended), atol=1e-9)


@pytest.mark.parametrize(
    "kernel", ["linear", {"kind": "polynomial", "degree": 3}, {"kind": "rbf", "gamma": 0.2}]
)
def test_a_saved_or_resumed_learner_gives_identical_scores(kernel: Any) -> None:
    X, Y, context = larger_problem()
    log = StepLog()
    learner = HM3(kernel=kernel, passes=7, gap=1e-9).fit_problem(problem_of(X, Y, context), monitor=log)
    scores = learner.decision_function(X)
    state = learner.get_state()
    assert all(array.dtype != object for array in state.values())
    loaded = HM3().set_state(state)
    np.testing.assert_array_equal(loaded.decision_function(X), scores)
    assert loaded.n_features_in_ == 12
    snapshots: list[State] = []

    def stop_after_three(step: Step) -> None:
        snapshots.append(step.snapshot())
        if step.completed == 3:
            raise StopTraining

    with pytest.raises(StopTraining):
        HM3(kernel=kernel, passes=7, gap=1e-9).fit_problem(
            problem_of(X, Y, context), monitor=stop_after_three
        )
    rest = StepLog()
    resumed = HM3(kernel=kernel, passes=7, gap=1e-9)
    resumed.fit_problem(problem_of(X, Y, context), monitor=rest, resume=snapshots[-1])
    np.testing.assert_array_equal(resumed.decision_function(X), scores)
    assert [step.completed for step in rest.steps] == [4, 5, 6, 7]
    assert [step.measures for step in rest.steps] == [step.measures for step in log.steps[3:]]


def test_weights_do_not_depend_on_the_number_of_threads() -> None:
    X, Y, context = larger_problem()
    weights = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            weights.append(HM3(kernel="rbf", passes=3).fit(X, Y, context=context).edge_weights_)
    np.testing.assert_array_equal(weights[0], weights[1])


def test_an_explanation_adds_up_to_the_score() -> None:
    X, Y, context = larger_problem()
    learner = HM3(passes=5).fit(X, Y, context=context)
    scores = learner.decision_function(X)
    for i, label in itertools.product(range(5), range(7)):
        features, weights = learner.explain(as_feature_matrix(X[[i]]), label)
        assert features.tolist() == X[[i]].indices.tolist()
        assert weights.sum() == pytest.approx(scores[i, label], abs=1e-9)
    assert learner.can_explain
    other = HM3(kernel="rbf", passes=1).fit(X, Y, context=context)
    assert not other.can_explain
    with pytest.raises(ParameterError, match="h_m3"):
        other.explain(as_feature_matrix(X[[0]]), 0)


def test_degenerate_examples() -> None:
    """No features or labels, duplicates, contradictions, a label of every example, open label sets."""
    X = np.array([[0.0, 0], [1, 0], [1, 0], [1, 0], [0, 2], [0, 2]])
    Y = np.array([[1, 0, 1], [0, 0, 1], [0, 1, 1], [0, 1, 1], [1, 1, 1], [1, 1, 1]])
    tree = Context(parents=np.array([-1, 0, 1]))
    learner = HM3(gap=1e-4, passes=500, C=3.0).fit(X, Y, context=tree)
    assert learner.summary_.facts["gap"] <= 1e-4
    assert learner.predict([[0, 2.0]]).tolist() == [[1, 1, 1]]
    assert learner.predict([[1.0, 0]]).tolist() == [[0, 1, 1]]


def test_examples_without_features_need_one_pass() -> None:
    """With curvature 0 the step is 1, so the marginals move to the labelings with the largest loss."""
    log = StepLog()
    tree = Context(parents=np.array([-1, 0]))
    HM3().fit_problem(problem_of(np.zeros((3, 2)), [[1, 0], [0, 0], [1, 1]], tree), monitor=log)
    assert len(log.steps) == 1
    assert log.steps[0].measures["gap"] == 0
    assert log.steps[0].measures["dual"] == log.steps[0].measures["primal"] > 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
@settings(max_examples=30)
def test_line_searches_are_exact_one_after_the_other(seed: int, b: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(b, int(rng.integers(1, 4))))
    root[rng.random(b) < 0.2] = 0
    curvature, numerators, longest = root @ root.T, rng.normal(size=b), rng.random(b)
    steps = line_searches(numerators, curvature, longest)
    for i in range(b):
        numerator = numerators[i] - sum(curvature[i, j] * steps[j] for j in range(i))
        if curvature[i, i] > 0:
            expected = float(np.clip(numerator / curvature[i, i], 0, longest[i]))
        else:
            expected = longest[i] if numerator > 0 else 0.0
        assert steps[i] == pytest.approx(expected, abs=1e-9)


def test_a_gap_that_was_not_reached_gives_a_warning() -> None:
    X, Y, context = larger_problem()
    learner = HM3(passes=1, gap=1e-6).fit(X, Y, context=context)
    assert learner.summary_.facts["passes"] == 1
    assert "after 1 passes, above the requested 1e-06" in learner.summary_.warnings[0]


def test_a_scaling_without_effect_gives_a_warning() -> None:
    X, Y, context = larger_problem()
    plain = HM3(loss="symmetric_difference", passes=3).fit(X, Y, context=context)
    scaled = HM3(loss="symmetric_difference", scaling="subtree", passes=3).fit(X, Y, context=context)
    np.testing.assert_array_equal(plain.edge_weights_, scaled.edge_weights_)
    assert "no effect" in scaled.summary_.warnings[0]


def test_without_a_tree_every_label_is_a_root_and_a_warning_says_so() -> None:
    X, Y, _ = larger_problem()
    learner = HM3(passes=2).fit(X, Y)
    assert (learner.forest_.parents == -1).all()
    assert "label_tree" in learner.summary_.warnings[0]


def test_a_training_that_needs_too_much_memory_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y, context = larger_problem()
    monkeypatch.setattr(h_m3, "TRAINING_BYTES", 2**17)
    HM3(passes=1).fit(X[:80], Y[:80], context=context)
    with pytest.raises(UnsuitableDataError, match="kernel matrix of 150 examples"):
        HM3(kernel="rbf").fit(X, Y, context=context)
    monkeypatch.setattr(h_m3, "TRAINING_BYTES", 2**10)
    with pytest.raises(UnsuitableDataError, match="GiB for weights and marginals"):
        HM3().fit(X, Y, context=context)


def test_many_examples_of_many_features_stay_sparse() -> None:
    """As a dense matrix, these examples would take 16 GB."""
    rng = np.random.default_rng(0)
    g, r = 2_000, 1_000_000
    X = csr_array((rng.random(3 * g), (np.repeat(np.arange(g), 3), rng.integers(0, r, 3 * g))), shape=(g, r))
    Y = csr_array((rng.random((g, 2)) < 0.1).astype(np.int8))
    learner = HM3(passes=1).fit(X, Y, context=Context(parents=np.array([-1, 0])))
    assert learner.decision_function(X[:5]).shape == (5, 2)


@pytest.mark.parametrize(
    "parameters",
    [{"C": 0}, {"loss": "zero_one"}, {"scaling": "depth"}, {"kernel": "cosine"}, {"gap": 0}, {"passes": 0}],
)
def test_invalid_parameters_are_rejected(parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"/learner/{next(iter(parameters))}"):
        HM3(**parameters).fit([[1.0]], [[1]])


def test_a_kernel_is_given_by_name_or_with_its_parameters() -> None:
    X, Y, context = larger_problem()
    by_name = HM3Parameters.model_validate({"algorithm": "h_m3", "kernel": "polynomial", "passes": 2})
    in_full = HM3Parameters.model_validate(
        {"algorithm": "h_m3", "kernel": {"kind": "polynomial", "degree": 2}, "passes": 2}
    )
    first = HM3.from_parameters(by_name).fit(X, Y, context=context)
    second = HM3.from_parameters(in_full).fit(X, Y, context=context)
    np.testing.assert_array_equal(first.edge_weights_, second.edge_weights_)
    for wrong, named in (
        ({"kind": "polynomial", "degree": 0}, "/learner/kernel/polynomial/degree"),
        ({"kind": "cosine"}, "/learner/kernel"),
        (2, "/learner/kernel"),
    ):
        with pytest.raises(ParameterError, match=named):
            HM3(kernel=wrong).fit(X, Y)


@pytest.mark.corpora("hmc/ImCLEF07A_Train.arff.gz")
def test_training_on_imclef_reaches_the_gap() -> None:
    """600 X-ray images, and a tree of 96 classes with three levels."""
    import gzip

    with gzip.open(FOLDER / "hmc" / "ImCLEF07A_Train.arff.gz", "rt") as file:
        lines = [line.strip() for line in file]
    rows = [line.split(",") for line in lines[lines.index("@DATA") + 1 :] if line][:600]
    classes = [row[-1].split("@") for row in rows]  # the class and its ancestors
    names = sorted({name for path in classes for name in path})
    X = np.array([[float(value) for value in row[:-1]] for row in rows])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Y = np.array([[name in path for name in names] for path in classes])
    parents = np.array([names.index(n.rpartition("/")[0]) if "/" in n else -1 for n in names])
    log = StepLog()
    learner = HM3(gap=0.05).fit_problem(problem_of(X, Y.astype(int), Context(parents=parents)), monitor=log)
    assert log.measures("gap")[-1] <= 0.05
    assert (log.measures("primal") >= log.measures("dual")).all()
    nothing = simplified_hierarchical_loss(Y, np.zeros_like(Y), parents)
    assert simplified_hierarchical_loss(Y, learner.predict(X), parents) < 0.5 * nothing
