"""The scores of a step are those of a training that stops at this step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from models.arrays import Floats
from models.base import Context, Learner, Problem, Step
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
    """Return the scores of other examples after every step."""
    scores: dict[int, Floats] = {}

    def monitor(step: Step, /) -> None:
        assert step.scores is not None
        scores[step.completed] = step.scores(OTHERS)

    learner.fit_problem(Problem(X, Y, TREE), monitor=monitor)
    return scores


@pytest.mark.parametrize("learner", [AdaBoostMH(rounds=6), MPBoost(rounds=6), AdaBoostLC(rounds=6)])
def test_boosting_reports_the_scores_of_fewer_rounds(learner: Learner) -> None:
    scores_by_step = by_step(learner)
    assert set(scores_by_step) == set(range(1, 7))
    for rounds, scores in scores_by_step.items():
        shorter: Any = clone(learner).set_params(rounds=rounds)
        assert np.array_equal(scores, shorter.fit(X, Y).decision_function(OTHERS))


@pytest.mark.parametrize("learner", [MMP(epochs=3), MLPP(epochs=3), BinaryRelevancePerceptron(epochs=3)])
def test_perceptrons_report_the_scores_of_fewer_passes(learner: Learner) -> None:
    scores_by_step = by_step(learner)
    for presented, scores in scores_by_step.items():
        shorter: Any = clone(learner).set_params(epochs=presented // 60)
        assert np.array_equal(scores, shorter.fit(X, Y).decision_function(OTHERS))


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "rbf"])
def test_h_m3_reports_the_scores_of_fewer_passes_and_ends_with_an_identical_model(kernel: str) -> None:
    learner = HM3(kernel=kernel, passes=6, gap=1e-9)
    scores_by_step = by_step(learner)
    assert set(scores_by_step) == set(range(1, 7))
    for passes, scores in scores_by_step.items():
        shorter = HM3(kernel=kernel, passes=passes, gap=1e-9).fit(X, Y, context=TREE)
        assert np.array_equal(scores, shorter.decision_function(OTHERS))
    unwatched = HM3(kernel=kernel, passes=6, gap=1e-9).fit(X, Y, context=TREE)
    for name, array in learner.get_state().items():
        assert np.array_equal(array, unwatched.get_state()[name]), name


def test_naive_bayes_reports_no_scores_before_its_end() -> None:
    steps: list[Step] = []
    NaiveBayes().fit_problem(Problem(X, Y), monitor=steps.append)
    assert [step.scores for step in steps] == [None] * len(steps) != []


def test_computing_scores_does_not_change_the_training() -> None:
    observed = MPBoost(rounds=5)
    by_step(observed)
    assert np.array_equal(
        observed.decision_function(OTHERS), MPBoost(rounds=5).fit(X, Y).decision_function(OTHERS)
    )
