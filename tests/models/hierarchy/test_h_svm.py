"""H-SVM against a loop over the nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC
from sparse_cases import features, frozen, noncanonical, problem_of

from models.arrays import AnyArray, Floats
from models.base import Context, State, Step
from models.base.validation import as_feature_matrix
from models.baselines.svm import SVM
from models.errors import StopTraining
from models.hierarchy.h_svm import HSVM


def literal_margins(X: Floats, Y: AnyArray, parents: list[int], tests: Floats) -> Floats:
    margins = np.empty((len(tests), len(parents)))
    for j, parent in enumerate(parents):
        rows = np.flatnonzero(Y[:, parent]) if parent >= 0 else np.arange(len(X))
        y = Y[rows, j]
        if len(set(y.tolist())) < 2:
            margins[:, j] = 1.0 if y.any() else -1.0
        else:
            margins[:, j] = LinearSVC(dual="auto", random_state=0).fit(X[rows], y).decision_function(tests)
    return margins


@given(st.data(), st.integers(0, 2**32 - 1), st.integers(1, 12))
@settings(max_examples=30)
def test_score_is_the_smallest_margin_on_the_path(data: st.DataObject, seed: int, g: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 6))
    parents = [int(rng.integers(-1, j)) for j in range(k)]
    X, Y, tests = data.draw(features(g, 4)), rng.integers(0, 2, (g, k)), rng.normal(size=(4, 4))
    learner = HSVM().fit(
        frozen(noncanonical(X, seed)),
        frozen(noncanonical(Y, seed, duplicates=False)),
        context=Context(parents=np.array(parents)),
    )
    margins = literal_margins(X, Y, parents, tests)
    for j in range(k):
        path = [j]
        while parents[path[-1]] >= 0:
            path.append(parents[path[-1]])
        np.testing.assert_allclose(
            learner.decision_function(tests)[:, j], margins[:, path].min(axis=1), atol=1e-9
        )
        # The terms are those of the node with the smallest margin; its intercept is the rest of the score.
        weakest = min(path[::-1], key=lambda node: margins[0, node])
        _, weights = learner.explain(as_feature_matrix(tests[:1]), j)
        assert weights.sum() + learner.intercept_[weakest] == pytest.approx(margins[0, path].min(), abs=1e-9)
    predicted = learner.predict(tests)
    assert all(
        predicted[:, j].sum() == (predicted[:, j] & predicted[:, p]).sum()
        for j, p in enumerate(parents)
        if p >= 0
    )


def test_one_class_among_the_examples_of_the_parent_gives_a_constant() -> None:
    X = [[1.0], [2.0], [-1.0], [-2.0]]
    Y = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    learner = HSVM().fit(X, Y, context=Context(parents=np.array([-1, 0, 0, 2])))
    np.testing.assert_array_equal(learner.coef_[:, 1:], 0)
    np.testing.assert_array_equal(
        learner.intercept_[1:], [1, -1, -1]
    )  # the parent of the last label has no examples


def test_without_a_tree_it_is_the_flat_svm() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 3)), rng.integers(0, 2, (12, 2))
    learner = HSVM(C=2.0).fit(X, Y)
    np.testing.assert_array_equal(learner.decision_function(X), SVM(C=2.0).fit(X, Y).decision_function(X))
    assert "label_tree" in learner.summary_.warnings[0]


def test_a_saved_or_resumed_learner_gives_identical_scores() -> None:
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(30, 3)), rng.integers(0, 2, (30, 4))
    context = Context(parents=np.array([-1, 0, 1, 0]))
    learner = HSVM().fit(X, Y, context=context)
    scores = learner.decision_function(X)
    np.testing.assert_array_equal(HSVM().set_state(learner.get_state()).decision_function(X), scores)
    snapshots: list[State] = []

    def stop_after_two(step: Step) -> None:
        snapshots.append(step.snapshot())
        if step.completed == 2:
            raise StopTraining

    with pytest.raises(StopTraining):
        HSVM().fit_problem(problem_of(X, Y, context), monitor=stop_after_two)
    resumed = HSVM().fit_problem(problem_of(X, Y, context), resume=snapshots[-1])
    np.testing.assert_array_equal(resumed.decision_function(X), scores)
