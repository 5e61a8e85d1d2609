"""H-RLS against its definition: a matrix inverse for every node and example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, eye_array
from sparse_cases import features, frozen, noncanonical, problem_of

from models.arrays import AnyArray, Floats
from models.base import Context, State, Step
from models.errors import ParameterError, StopTraining, UnsuitableDataError
from models.hierarchy import h_rls
from models.hierarchy.h_rls import HRLS


def literal_scores(X: Floats, Y: AnyArray, parents: list[int], ridge: float, tests: Floats) -> Floats:
    margins = np.zeros((len(tests), len(parents)))
    for j, parent in enumerate(parents):
        rows = np.flatnonzero(Y[:, parent]) if parent >= 0 else np.arange(len(X))
        S, y = X[rows].T, np.where(Y[rows, j] == 1, 1.0, -1.0)
        for i, x in enumerate(tests):
            inverse = np.linalg.inv(ridge * np.eye(X.shape[1]) + S @ S.T + np.outer(x, x))
            margins[i, j] = inverse @ S @ y @ x
    scores = margins.copy()
    for j in range(len(parents)):
        node = parents[j]
        while node >= 0:
            scores[:, j] = np.minimum(scores[:, j], margins[:, node])
            node = parents[node]
    return scores


@given(
    st.data(), st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 8), st.sampled_from([0.1, 1, 7])
)
@settings(max_examples=40)
def test_scores_are_those_of_the_literal_inverse(
    data: st.DataObject, seed: int, g: int, r: int, ridge: float
) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 6))
    parents = [int(rng.integers(-1, j)) for j in range(k)]
    X = data.draw(features(g, r))
    Y = (rng.random((g, k)) < 0.4).astype(int)
    tests = rng.normal(size=(5, r)) * (rng.random((5, r)) < 0.6)
    learner = HRLS(ridge=ridge).fit(
        frozen(noncanonical(X, seed)),
        frozen(noncanonical(Y, seed, duplicates=False)),
        context=Context(parents=np.array(parents)),
    )
    expected = literal_scores(X, Y, parents, ridge, tests)
    np.testing.assert_allclose(learner.decision_function(noncanonical(tests, seed)), expected, atol=1e-9)
    for label in range(k):
        columns, weights = learner.explain(csr_array(tests[:1]), label)
        assert weights.sum() == pytest.approx(expected[0, label], abs=1e-9)
        assert set(columns) <= set(np.flatnonzero(tests[0]))


def test_a_parent_without_examples_gives_its_children_0() -> None:
    learner = HRLS().fit([[1.0], [2.0]], [[0, 1], [0, 0]], context=Context(parents=np.array([-1, 0])))
    margins = learner.decision_function([[-3.0]])  # the margin of the root is positive here
    assert margins[0, 0] > 0
    assert margins[0, 1] == 0


def test_the_block_size_does_not_change_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(9, 4)), rng.integers(0, 2, (9, 3))
    learner = HRLS().fit(X, Y, context=Context(parents=np.array([-1, 0, 0])))
    whole = learner.decision_function(X)
    monkeypatch.setattr(h_rls, "BLOCK_ENTRIES", 8)
    np.testing.assert_allclose(learner.decision_function(X), whole, rtol=1e-12)


def test_factors_that_need_too_much_memory_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(h_rls, "FACTOR_BYTES", 2**30)
    X = csr_array(eye_array(12_000))
    with pytest.raises(UnsuitableDataError, match=r"1\.1 GiB .* limit is 1 GiB"):
        HRLS().fit(X, np.ones((12_000, 1)))


def test_few_examples_of_many_features_stay_sparse() -> None:
    """Neither an (r, r) nor a (g, r) matrix would fit in memory."""
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 5_000_000, 1500)
    X = csr_array((rng.random(1500), (np.arange(1500) % 300, columns)), shape=(300, 5_000_000))
    Y = rng.integers(0, 2, (300, 3))
    learner = HRLS().fit(X, Y, context=Context(parents=np.array([-1, 0, 1])))
    assert learner.decision_function(X[:10]).shape == (10, 3)


@pytest.mark.parametrize("shape", [(20, 5), (6, 15)], ids=["primal", "dual"])
def test_a_saved_or_resumed_learner_gives_identical_scores(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=shape), rng.integers(0, 2, (shape[0], 4))
    context = Context(parents=np.array([-1, 0, 1, 1]))
    learner = HRLS(ridge=0.5).fit(X, Y, context=context)
    scores = learner.decision_function(X)
    state = learner.get_state()
    assert all(array.dtype != object for array in state.values())
    np.testing.assert_array_equal(HRLS().set_state(state).decision_function(X), scores)

    snapshots: dict[str, State] = {}

    def stop_after_one(step: Step) -> Any:
        snapshots["state"] = step.snapshot()
        raise StopTraining

    with pytest.raises(StopTraining):
        HRLS(ridge=0.5).fit_problem(problem_of(X, Y, context), monitor=stop_after_one)
    resumed = HRLS(ridge=0.5).fit_problem(problem_of(X, Y, context), resume=snapshots["state"])
    np.testing.assert_array_equal(resumed.decision_function(X), scores)


def test_without_a_tree_every_label_is_a_root_and_a_warning_says_so() -> None:
    rng = np.random.default_rng(6)
    X, Y = rng.normal(size=(8, 3)), rng.integers(0, 2, (8, 2))
    learner = HRLS().fit(X, Y)
    np.testing.assert_allclose(
        learner.decision_function(X), literal_scores(X, Y, [-1, -1], 1.0, X), atol=1e-9
    )
    assert "label_tree" in learner.summary_.warnings[0]


def test_invalid_parameters_are_rejected() -> None:
    with pytest.raises(ParameterError, match="/learner/ridge"):
        HRLS(ridge=0).fit([[1.0]], [[1]])
    with pytest.raises(ParameterError, match="3 labels"):
        HRLS().fit([[1.0]], [[1]], context=Context(parents=np.array([-1, 0, 0])))
