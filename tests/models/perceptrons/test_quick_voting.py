"""Quick weighted voting gives the best labels of full voting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.arrays import Floats
from models.labels.ranking import ranking
from models.perceptrons import MLPP


def fitted(rng: np.random.Generator, k: int, grid: float, **parameters: Any) -> tuple[MLPP, Floats]:
    """On a coarse grid of values, exact ties of products and votes are common."""
    X = np.round(rng.normal(size=(30, 6)) / grid) * grid * (rng.random((30, 6)) < 0.6)
    Y = (rng.random((30, k)) < 0.3).astype(int)
    return MLPP(**parameters).fit(X, Y), X


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 9),
    top=st.integers(1, 10),
    grid=st.sampled_from([0.5, 1e-6]),
    voting=st.sampled_from(["max_wins", "weighted"]),
    calibrated=st.booleans(),
    precision=st.sampled_from([np.float64, np.float32]),
)
def test_the_same_labels_and_scores_as_full_voting(
    seed: int, k: int, top: int, grid: float, voting: str, calibrated: bool, precision: Any
) -> None:
    learner, X = fitted(np.random.default_rng(seed), k, grid, voting=voting, calibrated=calibrated)
    state = learner.get_state()
    for name in ("pair_weights", "boundary_weights"):
        state[name] = state[name].astype(precision)
    learner.set_state(state)
    X = np.vstack([X, np.zeros((1, 6))])
    scores = learner.decision_function(X)
    best = ranking(scores)[:, :top]
    quick = learner.quick_top(X, top)
    np.testing.assert_array_equal(quick.labels, best)
    np.testing.assert_array_equal(quick.scores, np.take_along_axis(scores, best, axis=1))


def test_each_pair_is_evaluated_at_most_once() -> None:
    learner, X = fitted(np.random.default_rng(0), 9, 1e-6)
    everything = learner.quick_top(X, 9).products
    assert everything.max() <= 9 * 8 // 2
    assert (learner.quick_top(X, 1).products <= everything).all()


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("voting", ["max_wins", "weighted"])
def test_a_few_of_many_labels_take_few_products(voting: Any, calibrated: bool) -> None:
    """Each label has a feature of its own; the other features are noise."""
    rng, k = np.random.default_rng(0), 40
    label = rng.integers(0, k, size=1_000)
    X = (rng.random((1_000, k + 20)) < 0.1).astype(float)
    X[np.arange(1_000), label] = 3
    learner = MLPP(voting=voting, calibrated=calibrated).fit(X, np.eye(k, dtype=int)[label])
    quick = learner.quick_top(X[:200], 1)
    np.testing.assert_array_equal(quick.labels, ranking(learner.decision_function(X[:200]))[:, :1])
    # All labels are equally frequent, so weighted voting can only afford its close bounds late.
    share = 0.5 if voting == "max_wins" else 0.8
    assert quick.products.mean() < share * learner.summary_.facts["operations_per_prediction"]


def test_bounds_follow_further_training() -> None:
    learner, X = fitted(np.random.default_rng(1), 6, 1e-6, voting="weighted")
    learner.quick_top(X, 2)
    learner.partial_fit(10 * X[::-1], (np.random.default_rng(2).random((30, 6)) < 0.5).astype(int))
    np.testing.assert_array_equal(
        learner.quick_top(X, 2).labels, ranking(learner.decision_function(X))[:, :2]
    )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 9),
    top=st.integers(1, 4),
    grid=st.sampled_from([0.5, 1e-6]),
    voting=st.sampled_from(["max_wins", "weighted"]),
    precision=st.sampled_from([np.float64, np.float32]),
)
def test_the_label_sets_of_a_calibrated_model_are_those_of_full_voting(
    seed: int, k: int, top: int, grid: float, voting: str, precision: Any
) -> None:
    """Section VI-E of the MLPP paper: the labels with more votes than the artificial label."""
    learner, X = fitted(np.random.default_rng(seed), k, grid, voting=voting, calibrated=True)
    state = learner.get_state()
    for name in ("pair_weights", "boundary_weights"):
        state[name] = state[name].astype(precision)
    learner.set_state(state)
    X = np.vstack([X, np.zeros((1, 6))])
    scores = learner.decision_function(X)
    quick = learner.quick_top(X, top, np.zeros(k))
    np.testing.assert_array_equal(quick.known > 0, scores > 0)
    counted = quick.known > -np.inf
    np.testing.assert_array_equal(quick.known[counted], scores[counted])
    np.testing.assert_array_equal(quick.labels, ranking(scores)[:, :top])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 12),
    top=st.integers(1, 12),
    calibrated=st.booleans(),
    above=st.booleans(),
    voting=st.sampled_from(["max_wins", "weighted"]),
)
def test_quick_voting_never_costs_more_products_than_full_voting(
    seed: int, k: int, top: int, calibrated: bool, above: bool, voting: str
) -> None:
    learner, X = fitted(np.random.default_rng(seed), k, 1e-6, voting=voting, calibrated=calibrated)
    thresholds = learner.decision_function(X).mean(axis=0) if above else None
    quick = learner.quick_top(X, top, thresholds)
    assert quick.products.max() <= learner.summary_.facts["operations_per_prediction"]


@pytest.mark.parametrize("voting", ["max_wins", "weighted"])
def test_label_sets_of_a_calibrated_model_take_few_products(voting: Any) -> None:
    rng, k = np.random.default_rng(0), 40
    label = rng.integers(0, k, size=1_000)
    X = (rng.random((1_000, k + 20)) < 0.1).astype(float)
    X[np.arange(1_000), label] = 3
    learner = MLPP(voting=voting, calibrated=True, epochs=3).fit(X, np.eye(k, dtype=int)[label])
    quick = learner.quick_top(X[:200], 1, np.zeros(k))
    np.testing.assert_array_equal(quick.known > 0, learner.decision_function(X[:200]) > 0)
    share = 0.5 if voting == "max_wins" else 0.8
    assert quick.products.mean() < share * learner.summary_.facts["operations_per_prediction"]


def test_values_that_overflow_end_quick_voting() -> None:
    learner, X = fitted(np.random.default_rng(0), 5, 1e-6, voting="weighted", calibrated=True)
    with np.errstate(over="ignore", invalid="ignore"):
        quick = learner.quick_top(X[:1] * 1e300 * 1e8, 2, np.zeros(5))
    assert not np.isfinite(quick.scores).all()
