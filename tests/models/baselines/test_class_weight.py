"""Balanced class weights are those of scikit-learn, for each label or for the single labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_sample_weight

from models.arrays import AnyArray
from models.base import Context
from models.baselines.naive_bayes import NaiveBayes
from models.baselines.svm import SVM
from models.hierarchy.h_svm import HSVM


def problem(g: int = 60) -> tuple[AnyArray, AnyArray]:
    """Counts, and a frequent and two rare labels; the second one implies the first one."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.8, (g, 6)).astype(float)
    Y = (rng.random((g, 3)) < [0.6, 0.3, 0.1]).astype(int)
    Y[:, 1] &= Y[:, 0]
    return X, Y


def test_svm_equals_linear_svc() -> None:
    X, Y = problem()
    scores = SVM(C=0.5, class_weight="balanced").fit(X, Y).decision_function(X)
    for j in range(3):
        svc = LinearSVC(C=0.5, dual="auto", class_weight="balanced", random_state=0).fit(X, Y[:, j])
        np.testing.assert_allclose(scores[:, j], svc.decision_function(X), rtol=1e-12)


def test_a_node_of_h_svm_is_balanced_among_the_examples_of_its_parent() -> None:
    X, Y = problem()
    learner = HSVM(class_weight="balanced").fit(X, Y, context=Context(parents=np.array([-1, 0, -1])))
    rows = Y[:, 0] == 1
    svc = LinearSVC(dual="auto", class_weight="balanced", random_state=0).fit(X[rows], Y[rows, 1])
    np.testing.assert_allclose(learner.get_state()["coef"][:, 1], svc.coef_[0], rtol=1e-12)


def test_naive_bayes_equals_multinomial_nb_with_balanced_sample_weights() -> None:
    X, Y = problem()
    scores = NaiveBayes(alpha=0.3, class_weight="balanced").fit(X, Y).decision_function(X)
    for j in range(3):
        weights = compute_sample_weight("balanced", Y[:, j])
        log = MultinomialNB(alpha=0.3).fit(X, Y[:, j], sample_weight=weights).predict_joint_log_proba(X)
        np.testing.assert_allclose(scores[:, j], log[:, 1] - log[:, 0], rtol=1e-9, atol=1e-12)


def test_naive_bayes_of_single_labels_balances_the_labels() -> None:
    X, _ = problem()
    y = np.array([0] * 40 + [1] * 15 + [2] * 5)
    Y = (y[:, None] == np.arange(3)).astype(int)
    learner = NaiveBayes(label_mode="single_label", class_weight="balanced").fit(X, Y)
    weights = compute_sample_weight("balanced", y)
    expected = MultinomialNB().fit(X, y, sample_weight=weights).predict_joint_log_proba(X)
    np.testing.assert_allclose(learner.decision_function(X), expected, rtol=1e-9)


@pytest.mark.parametrize("learner", [SVM, NaiveBayes])
def test_labels_of_all_or_no_examples_stay_constant(learner: type[SVM | NaiveBayes]) -> None:
    X, Y = problem()
    Y[:, 0], Y[:, 1] = 1, 0
    scores = learner(class_weight="balanced").fit(X, Y).decision_function(X)
    assert (scores[:, 0] == 1).all()
    assert (scores[:, 1] < 0).all()
