"""The scores that a step tells are those of a training that stopped there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from models.arrays import Floats
from models.base import Context, Learner, Step
from models.base.validation import as_feature_matrix, as_label_matrix
from models.baselines.naive_bayes import NaiveBayes
from models.boosting.adaboost_lc import AdaBoostLC
from models.boosting.adaboost_mh import AdaBoostMH
from models.boosting.mp_boost import MPBoost
from models.hierarchy.h_m3 import HM3
from models.perceptrons import MLPP, MMP, BinaryRelevancePerceptron

RNG = np.random.default_rng(0)
X = as_feature_matrix(RNG.poisson(0.4, (60, 25)).astype(np.float64))
Y = as_label_matrix((X @ RNG.normal(size=(25, 4)) > 0.3).astype(np.int64))
OTHERS = as_feature_matrix(RNG.poisson(0.4, (15, 25)).astype(np.float64))
TREE = Context(parents=np.array([-1, 0, 0, 2]))


def by_step(learner: Learner) -> dict[int, Floats]:
    """The scores of other examples after every step."""
    told: dict[int, Floats] = {}

    def monitor(step: Step, /) -> None:
        assert step.scores is not None
        told[step.completed] = step.scores(OTHERS)

    learner.fit(X, Y, context=TREE, monitor=monitor)
    return told


@pytest.mark.parametrize("learner", [AdaBoostMH(rounds=6), MPBoost(rounds=6), AdaBoostLC(rounds=6)])
def test_boosting_tells_what_fewer_rounds_would_give(learner: Learner) -> None:
    told = by_step(learner)
    assert set(told) == set(range(1, 7))
    for rounds, scores in told.items():
        shorter: Any = clone(learner).set_params(rounds=rounds)
        assert np.array_equal(scores, shorter.fit(X, Y).decision_function(OTHERS))


@pytest.mark.parametrize("learner", [MMP(epochs=3), MLPP(epochs=3), BinaryRelevancePerceptron(epochs=3)])
def test_perceptrons_tell_what_fewer_passes_would_give(learner: Learner) -> None:
    told = by_step(learner)
    for presented, scores in told.items():
        shorter: Any = clone(learner).set_params(epochs=presented // 60)
        assert np.array_equal(scores, shorter.fit(X, Y).decision_function(OTHERS))


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "rbf"])
def test_h_m3_tells_what_fewer_passes_would_give_and_ends_with_the_same_bits(kernel: str) -> None:
    learner = HM3(kernel=kernel, passes=6, gap=1e-9)
    told = by_step(learner)
    assert set(told) == set(range(1, 7))
    for passes, scores in told.items():
        shorter = HM3(kernel=kernel, passes=passes, gap=1e-9).fit(X, Y, context=TREE)
        assert np.array_equal(scores, shorter.decision_function(OTHERS))
    unwatched = HM3(kernel=kernel, passes=6, gap=1e-9).fit(X, Y, context=TREE)
    for name, array in learner.get_state().items():
        assert np.array_equal(array, unwatched.get_state()[name]), name


def test_naive_bayes_tells_nothing_before_its_end() -> None:
    steps: list[Step] = []
    NaiveBayes().fit(X, Y, monitor=steps.append)
    assert [step.scores for step in steps] == [None] * len(steps) != []


def test_telling_changes_nothing() -> None:
    told = MPBoost(rounds=5)
    by_step(told)
    assert np.array_equal(
        told.decision_function(OTHERS), MPBoost(rounds=5).fit(X, Y).decision_function(OTHERS)
    )
