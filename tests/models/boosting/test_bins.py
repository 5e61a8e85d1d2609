"""Threshold stumps whose candidates are the edges of bins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sparse_cases import problem_of

from models.arrays import Floats
from models.base import Context, State, Step
from models.base.validation import as_training_matrices
from models.boosting.adaboost_mh import AdaBoostMH
from models.boosting.bins import bin_edges
from models.boosting.booster import Booster
from models.boosting.mp_boost import MPBoost
from models.boosting.stumps import Stumps, threshold_stumps
from models.errors import ParameterError, StopTraining

BOTH = pytest.mark.parametrize("learner", [AdaBoostMH, MPBoost])
VARIANTS = pytest.mark.parametrize("variant", ["real", "real_abstaining", "discrete"])


def numeric_problem(g: int = 300, r: int = 6, k: int = 4) -> tuple[Floats, Any]:
    """Dense and sparse columns with values of both signs, and labels that depend on them."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(g, r))
    X[:, 1] = np.where(rng.random(g) < 0.7, 0, X[:, 1])
    X[:, 2] = np.abs(X[:, 2]) + 1
    X[:, 3] = -np.abs(X[:, 3]) - 1
    X[:, 4] = np.where(rng.random(g) < 0.5, 4.0, X[:, 4])
    Y = (X @ rng.normal(size=(r, k)) + rng.normal(scale=0.5, size=(g, k)) > 0.7).astype(int)
    return X, Y


def stumps_of(X: Floats, bins: int | None) -> Stumps:
    return threshold_stumps(as_training_matrices(X, np.ones((len(X), 1), dtype=int))[0], bins)


def bins_of(X: Floats, stumps: Stumps) -> Floats:
    """The number of each value's bin, from 1; as features, they have the same splits as the edges."""
    numbers = np.empty_like(X)
    for feature in range(X.shape[1]):
        edges = stumps.thresholds[stumps.features == feature]
        numbers[:, feature] = 1 + np.searchsorted(edges, X[:, feature], side="left")
    return numbers


def test_bins_of_distinct_values_have_equally_many_documents() -> None:
    X = np.random.default_rng(0).normal(size=(1000, 1))
    edges = stumps_of(X, 8).thresholds
    counts = np.histogram(X, [-np.inf, *edges, np.inf])[0]
    assert counts.tolist() == [125] * 8


def test_a_frequent_value_takes_one_bin_and_leaves_the_others() -> None:
    X = np.zeros((1000, 1))
    X[:70, 0] = np.linspace(1, 2, 70)
    edges = stumps_of(X, 8).thresholds
    assert np.histogram(X, [-np.inf, *edges, np.inf])[0].tolist() == [930] + [10] * 7


def test_a_feature_with_few_distinct_values_keeps_every_threshold() -> None:
    X = np.random.default_rng(0).integers(-3, 5, size=(200, 3)) / 2
    exact, binned = stumps_of(X, None), stumps_of(X, 8)
    np.testing.assert_array_equal(exact.thresholds, binned.thresholds)
    np.testing.assert_array_equal(exact.features, binned.features)
    assert len(stumps_of(X, 7)) < len(exact)


@pytest.mark.parametrize("bins", [2, 3, 17, 256])
def test_no_feature_has_more_bins_than_the_parameter(bins: int) -> None:
    X, _ = numeric_problem()
    counts = np.bincount(stumps_of(X, bins).features, minlength=X.shape[1])
    assert counts.max() <= bins - 1
    assert counts.min() >= 1


def test_no_candidates_have_no_edges() -> None:
    assert not len(bin_edges(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 3, 4))
    assert not len(stumps_of(np.zeros((3, 2)), 4))


@BOTH
@VARIANTS
def test_enough_bins_give_the_bits_of_the_exact_search(learner: type[Booster], variant: Any) -> None:
    X, Y = numeric_problem()
    X = np.round(X)
    exact, binned = (
        learner(rounds=15, variant=variant, stump="threshold", bins=bins).fit(X, Y) for bins in (None, 256)
    )
    for name, array in exact.get_state().items():
        np.testing.assert_array_equal(array, binned.get_state()[name])


@BOTH
@VARIANTS
def test_training_with_bins_is_exact_training_on_the_numbers_of_the_bins(
    learner: type[Booster], variant: Any
) -> None:
    X, Y = numeric_problem()
    numbers = bins_of(X, stumps_of(X, 9))
    binned = learner(rounds=15, variant=variant, stump="threshold", bins=9).fit(X, Y)
    exact = learner(rounds=15, variant=variant, stump="threshold").fit(numbers, Y)
    np.testing.assert_array_equal(binned.hypothesis_.features, exact.hypothesis_.features)
    np.testing.assert_allclose(
        binned.decision_function(X), exact.decision_function(numbers), rtol=1e-9, atol=1e-9
    )


@BOTH
@VARIANTS
def test_the_hamming_loss_is_below_the_bound_in_every_round(learner: type[Booster], variant: Any) -> None:
    X, Y = numeric_problem()
    bounds = []

    def check(step: Step) -> None:
        assert step.scores is not None
        hamming = float(((step.scores(as_training_matrices(X, Y)[0]) > 0) != Y).mean())
        bounds.append(step.measures["loss_bound"])
        assert hamming <= bounds[-1] + 1e-12

    learner(rounds=20, variant=variant, stump="threshold", bins=8).fit_problem(
        problem_of(X, Y), monitor=check
    )
    assert len(bounds) == 20
    assert bounds[-1] < 0.9


@BOTH
def test_resuming_gives_the_same_bits(learner: type[Booster]) -> None:
    X, Y = numeric_problem()
    snapshots: list[State] = []

    def stop(step: Step) -> None:
        if step.completed == 4:
            snapshots.append(step.snapshot())
            raise StopTraining

    with pytest.raises(StopTraining):
        learner(rounds=9, stump="threshold", bins=8).fit_problem(problem_of(X, Y), monitor=stop)
    whole = learner(rounds=9, stump="threshold", bins=8).fit(X, Y)
    resumed = learner(rounds=9, stump="threshold", bins=8).fit_problem(problem_of(X, Y), resume=snapshots[0])
    for name, array in whole.get_state().items():
        np.testing.assert_array_equal(array, resumed.get_state()[name])


def test_each_label_uses_the_features_selected_for_it() -> None:
    X, Y = numeric_problem()
    candidates = csr_array(np.eye(6, 4, dtype=np.int8))
    learner = MPBoost(rounds=5, stump="threshold", bins=8)
    hypothesis = learner.fit(X, Y, context=Context(candidates=candidates)).hypothesis_
    np.testing.assert_array_equal(hypothesis.features, hypothesis.labels)


@BOTH
def test_labels_in_blocks_choose_the_same_pivots(
    learner: type[Booster], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y = numeric_problem()
    whole = learner(rounds=6, stump="threshold", bins=8).fit(X, Y).get_state()
    monkeypatch.setattr("models.boosting.loss_bounds._BUFFER_SIZE", 1)
    blocks = learner(rounds=6, stump="threshold", bins=8).fit(X, Y).get_state()
    for name, array in whole.items():
        np.testing.assert_array_equal(array, blocks[name])


@BOTH
def test_bins_without_thresholds_are_an_error(learner: type[Booster]) -> None:
    X, Y = numeric_problem()
    for stump in ("presence", "auto"):
        with pytest.raises(ParameterError, match="set stump to threshold") as raised:
            learner(stump=stump, bins=8).fit(X, Y)
        assert raised.value.pointer == "/learner/bins"
    learner(rounds=1, bins=8).fit(X, Y, context=Context(numeric_features=True))
