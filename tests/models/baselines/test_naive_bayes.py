"""Naive Bayes against a literal version, and in single-label mode against scikit-learn."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from sklearn.naive_bayes import MultinomialNB
from sparse_cases import features, frozen, noncanonical

from models.arrays import AnyArray, Floats
from models.baselines.naive_bayes import NaiveBayes
from models.errors import ParameterError, UnsuitableDataError

Problem = tuple[Floats, AnyArray]
LOG_OF_ZERO = log(2.2250738585072014e-308)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Presence, counts and real values, rare and equal columns, repeated rows, labels always or never on."""
    g, r, k = draw(st.integers(1, 12)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    X = draw(features(g, r, ("binary", "counts", "positive")))
    Y = draw(arrays(np.int64, (g, k), elements=st.integers(0, 1)))
    always = draw(st.sampled_from([None, 0, 1]))
    if always is not None:
        Y[:, draw(st.integers(0, k - 1))] = always
    again = draw(st.lists(st.integers(0, g - 1), max_size=6))
    return np.vstack([X, X[again]]), np.vstack([Y, Y[again]])


def log_or_floor(share: float) -> float:
    return log(share) if share > 0 else LOG_OF_ZERO


def likelihood(rows: Floats, alpha: float) -> list[float]:
    """p(f|·) of a set of examples."""
    totals = [sum(row[f] for row in rows.tolist()) for f in range(rows.shape[1])]
    return [(total + alpha) / (sum(totals) + alpha * len(totals)) for total in totals]


def literal_score(X: Floats, y: AnyArray, x: Floats, alpha: float, mode: str) -> float:
    if y.all():
        return 1.0
    share = float(y.mean())
    score, own = log_or_floor(share), likelihood(X[y == 1], alpha)
    if mode == "single_label":
        return score + sum(float(value) * log(p) for value, p in zip(x, own, strict=True))
    score -= log_or_floor(1 - share)
    others = likelihood(X[y == 0], alpha)
    return score + sum(float(value) * log(p / q) for value, p, q in zip(x, own, others, strict=True))


@settings(max_examples=50, deadline=None)
@given(
    problems(),
    st.sampled_from([1.0, 0.1, 7.5]),
    st.sampled_from(["multilabel", "single_label"]),
    st.integers(0, 999),
)
def test_scores_are_the_formulas(problem: Problem, alpha: float, mode: Any, seed: int) -> None:
    X, Y = problem
    learner = NaiveBayes(alpha=alpha, label_mode=mode)
    learner.fit(frozen(noncanonical(X, seed)), frozen(noncanonical(Y, seed, duplicates=False)))
    scores = learner.decision_function(X)
    expected = [[literal_score(X, Y[:, j], x, alpha, mode) for j in range(Y.shape[1])] for x in X]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-9)


def test_single_label_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, size=(60, 8)), rng.integers(0, 3, size=60)
    learner = NaiveBayes(label_mode="single_label").fit(X, np.eye(3, dtype=int)[y])
    expected = MultinomialNB().fit(X, y).predict_joint_log_proba(X)
    np.testing.assert_allclose(learner.decision_function(X), expected, rtol=0, atol=1e-9)
    assert learner.summary_.warnings == []


@pytest.mark.parametrize("mode", ["multilabel", "single_label"])
def test_negative_features_are_rejected(mode: Any) -> None:
    with pytest.raises(UnsuitableDataError, match=r"Negative values .* \(the smallest is -0\.5\)"):
        NaiveBayes(label_mode=mode).fit([[1.0, -0.5]], [[1, 0]])
    learner = NaiveBayes(label_mode=mode).fit([[1.0, 0], [0, 1]], [[1, 0], [0, 1]])
    with pytest.raises(UnsuitableDataError, match="nonnegative"):
        learner.partial_fit([[1.0, -0.5]], [[1, 0]])
    with pytest.raises(UnsuitableDataError, match="nonnegative"):
        learner.decision_function([[1.0, -0.5]])
    assert learner.n_examples_ == 2


@pytest.mark.parametrize("alpha", [0, -1, float("nan"), "a"])
def test_alpha_must_be_positive(alpha: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        NaiveBayes(alpha=alpha).fit([[1.0]], [[1]])
    assert caught.value.pointer == "/learner/alpha"


def test_explanations_add_up() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 4, size=(60, 8)).astype(float), rng.integers(0, 2, size=(60, 3))
    learner = NaiveBayes().fit(X, Y)
    indices, weights = learner.explain(csr_array(X[:1]), 1)
    assert indices.tolist() == np.flatnonzero(X[0]).tolist()
    score = learner.decision_function(X[:1])[0, 1]
    assert weights.sum() + learner.bias_[1] == pytest.approx(score, abs=1e-12)


def test_single_label_explanations_differ_like_the_scores() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, size=(60, 8)).astype(float), rng.integers(0, 3, size=60)
    learner = NaiveBayes(label_mode="single_label").fit(X, np.eye(3, dtype=int)[y])
    explained = [learner.explain(csr_array(X[:1]), j)[1].sum() + learner.bias_[j] for j in range(3)]
    scores = learner.decision_function(X[:1])[0]
    np.testing.assert_allclose(np.diff(explained), np.diff(scores), rtol=0, atol=1e-12)


def test_a_constant_label_gives_a_warning_and_has_no_explanation() -> None:
    learner = NaiveBayes().fit([[1.0, 0], [0, 1]], [[1, 0], [1, 1]])
    assert learner.summary_.warnings == ["every example has these labels, their score is always +1: 0"]
    assert len(learner.explain(csr_array(np.ones((1, 2))), 0)[0]) == 0


def test_single_label_mode_warns_about_several_labels() -> None:
    learner = NaiveBayes(label_mode="single_label").fit([[1.0, 0], [0, 1]], [[1, 0], [1, 1]])
    assert any("several labels" in warning for warning in learner.summary_.warnings)


def test_totals_that_need_too_much_memory_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.base.memory.WEIGHTS_LIMIT", 2 * 5 * 6 * 8 - 1)
    with pytest.raises(UnsuitableDataError, match="the totals and weights of 6 labels over 5 features need"):
        NaiveBayes().fit(np.ones((1, 5)), np.ones((1, 6), dtype=int))
