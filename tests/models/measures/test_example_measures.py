"""Measures of examples, worst examples and score histograms, compared with loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.arrays import AnyArray, Floats
from models.base.validation import as_label_matrix
from models.labels import LabelTree
from models.measures.directions import DIRECTIONS
from models.measures.evaluation import evaluate
from models.measures.examples import example_measures
from models.measures.histograms import BINS, score_histograms
from models.measures.probabilities import PROBABILITY_MEASURES
from models.measures.worst import worst_examples

LABELS = ["a", "b", "c"]
TREE = LabelTree({"b": "a", "c": "b"})
NOT_MEANS = {"f1", "precision", "recall"}
Problem = tuple[AnyArray, AnyArray, Floats]


@st.composite
def problems(draw: Callable[..., int]) -> Problem:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 12))
    scores = rng.integers(-2, 3, (n, 3)).astype(np.float64)
    return rng.integers(0, 2, (n, 3)), rng.integers(0, 2, (n, 3)), scores


@settings(max_examples=40)
@given(problems())
def test_the_means_over_examples_are_the_measures(problem: Problem) -> None:
    Y, P, scores = as_label_matrix(problem[0]), as_label_matrix(problem[1]), problem[2]
    covering = {"kind": "zero_one"}
    whole = evaluate(Y, P, scores, LABELS, tree=TREE, covering=covering).measures
    each = example_measures(Y, P, scores, LABELS, tree=TREE, coverings={"one": covering})
    for name, values in each.items():
        assert values.shape == (Y.shape[0],)
        measure = name.removesuffix(".one")
        defined = values[~np.isnan(values)]
        if measure in whole:
            assert defined.mean() == pytest.approx(whole[measure], abs=1e-12), name
        else:
            assert not len(defined)
    means = {name for name in DIRECTIONS if name.split("_")[0] not in NOT_MEANS}
    means -= set(PROBABILITY_MEASURES)
    assert {name.removesuffix(".one") for name in each} == means


@settings(max_examples=40)
@given(problems(), st.integers(0, 12))
def test_the_worst_examples_agree_with_sorting(problem: Problem, count: int) -> None:
    Y, P, scores = problem
    badness = []
    for i in range(len(Y)):
        wrong = sum(int(Y[i, j] != P[i, j]) for j in range(3))
        irrelevant = [scores[i, j] for j in range(3) if not Y[i, j]]
        relevant = [scores[i, j] for j in range(3) if Y[i, j]]
        off = max(irrelevant) - min(relevant) if irrelevant and relevant else -np.inf
        if wrong:
            badness.append((-wrong, -off, i))
    expected = [i for *_, i in sorted(badness)][:count]
    assert worst_examples(as_label_matrix(Y), as_label_matrix(P), scores, count).tolist() == expected


@settings(max_examples=40)
@given(problems())
def test_histograms_count_every_example_in_the_bin_of_its_score(problem: Problem) -> None:
    Y, _, scores = problem
    for j, histogram in enumerate(score_histograms(as_label_matrix(Y), scores, LABELS)):
        assert histogram.label == LABELS[j]
        low, high = min(scores[:, j]), max(scores[:, j])
        assert (histogram.low, histogram.high) == (low, high)
        bins = BINS if high > low else 1
        expected = {True: [0] * bins, False: [0] * bins}
        for i in range(len(Y)):
            place = int((scores[i, j] - low) / (high - low) * bins) if high > low else 0
            expected[bool(Y[i, j])][min(place, bins - 1)] += 1
        assert histogram.with_label == expected[True]
        assert histogram.without_label == expected[False]


def test_the_widest_range_of_scores_has_a_histogram() -> None:
    huge = np.finfo(np.float64).max
    (histogram,) = score_histograms(as_label_matrix([[1], [0]]), np.array([[huge], [-huge]]), ["a"])
    assert (histogram.without_label[0], histogram.with_label[-1]) == (1, 1)
