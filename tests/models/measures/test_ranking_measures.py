"""Measures of rankings, compared with literal loops over positions and with scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from models.arrays import AnyArray, Floats
from models.base.validation import as_label_matrix
from models.labels.ranking import ranking, ranks
from models.measures import rankings

Problem = tuple[list[list[int]], list[list[float]]]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    n, k = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    labels = st.lists(st.lists(st.integers(0, 1), min_size=k, max_size=k), min_size=n, max_size=n)
    few = st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.0])  # many ties
    scores = st.lists(st.lists(few, min_size=k, max_size=k), min_size=n, max_size=n)
    return draw(labels), draw(scores)


def positions(scores: list[float]) -> list[int]:
    """Return r(c): one plus the number of labels with a higher score, or an equal one and a smaller index."""
    return [
        1 + sum(b > a or (b == a and other < label) for other, b in enumerate(scores))
        for label, a in enumerate(scores)
    ]


def literal(Y: list[list[int]], S: list[list[float]]) -> dict[str, float]:
    sums = dict.fromkeys(
        ["one_error", "coverage", "average_precision", "is_error", "error_set_size", "margin"], 0.0
    )
    labelled = 0
    for y, scores in zip(Y, S, strict=True):
        r = positions(scores)
        relevant = [c for c in range(len(y)) if y[c]]
        irrelevant = [c for c in range(len(y)) if not y[c]]
        if not relevant:
            continue
        labelled += 1
        E = [(c, d) for c in relevant for d in irrelevant if r[c] > r[d]]
        sums["one_error"] += 0 if y[r.index(1)] else 1
        sums["coverage"] += max(r[c] for c in relevant) - 1
        sums["average_precision"] += sum(sum(r[d] <= r[c] for d in relevant) / r[c] for c in relevant) / len(
            relevant
        )
        sums["is_error"] += bool(E)
        sums["error_set_size"] += len(E)
        if irrelevant:
            sums["margin"] += max(0, max(r[c] for c in relevant) - min(r[d] for d in irrelevant))
    return {name: value / labelled if labelled else math.nan for name, value in sums.items()}


@given(problems())
@settings(max_examples=50, deadline=None)
def test_ranking_measures_agree_with_their_definitions(problem: Problem) -> None:
    Y, S = problem
    expected = literal(Y, S)
    labels, scores = as_label_matrix(Y), np.array(S)
    assert ranks(scores).tolist() == [positions(row) for row in S]
    assert rankings.ranking_measures(labels, scores) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    for name, value in expected.items():
        assert getattr(rankings, name)(labels, scores) == pytest.approx(value, abs=1e-12, nan_ok=True)


def untied(seed: int) -> tuple[AnyArray, Floats]:
    """Labelled examples, none of them with all labels, and scores without ties."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((40, 7)) < 0.3).astype(np.int64)
    Y[np.arange(40), rng.integers(0, 7, 40)] = 1
    Y[Y.all(axis=1), 0] = 0
    scores: Floats = np.argsort(rng.random((40, 7)), axis=1).astype(np.float64) - 3.0
    return Y, scores


@pytest.mark.parametrize("seed", range(5))
def test_ranking_measures_agree_with_scikit_learn_without_ties(seed: int) -> None:
    Y, scores = untied(seed)
    ours = rankings.ranking_measures(as_label_matrix(Y), scores)
    assert ours["coverage"] == pytest.approx(metrics.coverage_error(Y, scores) - 1)
    assert ours["average_precision"] == pytest.approx(
        metrics.label_ranking_average_precision_score(Y, scores)
    )
    pairs = Y.sum(axis=1) * (1 - Y).sum(axis=1)
    each = [rankings.error_set_size(as_label_matrix(Y[[i]]), scores[[i]]) / pairs[i] for i in range(len(Y))]
    assert np.mean(each) == pytest.approx(metrics.label_ranking_loss(Y, scores))


def test_examples_without_labels_are_omitted() -> None:
    labels = as_label_matrix([[0, 0], [0, 1]])
    scores = np.array([[9.0, -9.0], [2.0, 1.0]])
    assert rankings.one_error(labels, scores) == 1.0
    assert rankings.coverage(labels, scores) == 1.0


def test_without_any_label_ranking_measures_are_undefined() -> None:
    nothing = as_label_matrix(np.zeros((2, 3)))
    assert all(math.isnan(value) for value in rankings.ranking_measures(nothing, np.zeros((2, 3))).values())


def test_of_tied_labels_the_first_one_ranks_higher() -> None:
    assert ranking(np.array([[0.0, 1.0, -0.0, 1.0]])).tolist() == [[1, 3, 0, 2]]
