"""Tuned thresholds, compared with an exhaustive search."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.arrays import Bools, Floats, Labels
from models.base.validation import as_label_matrix
from models.decisions import HeldOut
from models.decisions.tune import tuned_thresholds


def best_threshold(scores: Floats, relevant: Bools, *, fbr: float) -> float:
    Y = as_label_matrix(relevant.astype(int)[:, np.newaxis])
    (threshold,) = tuned_thresholds(held_out(scores[:, np.newaxis], Y, [True]), default=0.0, fbr=fbr)
    return float(threshold)


def held_out(scores: Floats, Y: Labels, tunable: list[bool]) -> HeldOut:
    return HeldOut(scores, Y, None, np.arange(len(scores)) % 3, np.array(tunable))


def literal(scores: list[float], relevant: list[bool], fbr: float) -> float:
    """Try all midpoints and one threshold beyond each end. Return the largest one with the best F1."""
    distinct = sorted(set(scores))
    candidates = [distinct[0] - 1, *((a + b) / 2 for a, b in pairwise(distinct))]
    candidates.append(distinct[-1] + 1)
    best, best_f1 = candidates[0], -1.0
    for candidate in candidates:
        on = [score > candidate for score in scores]
        tp = sum(a and b for a, b in zip(on, relevant, strict=True))
        f1 = 2 * tp / (sum(on) + sum(relevant))
        if f1 >= best_f1:
            best, best_f1 = candidate, f1
    return distinct[-1] if best_f1 < fbr else best


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[float], list[bool]]:
    n = draw(st.integers(1, 12))
    scores = draw(st.lists(st.integers(-3, 3).map(float), min_size=n, max_size=n))
    relevant = draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any))
    return scores, relevant


@given(problems(), st.sampled_from([0.0, 0.1, 0.4, 0.7, 1.0]))
@settings(max_examples=50, deadline=None)
def test_the_best_candidate_wins(problem: tuple[list[float], list[bool]], fbr: float) -> None:
    scores, relevant = problem
    assert best_threshold(np.array(scores), np.array(relevant), fbr=fbr) == literal(scores, relevant, fbr)


def test_the_largest_of_equally_good_thresholds_wins() -> None:
    # The threshold 2.5 has F1 = 2/3 (one of two, no false positive), and 0.5 has 2·2/(4+2) = 2/3, too.
    scores, relevant = np.array([3.0, 2.0, 1.5, 1.0, 0.0]), np.array([True, False, False, True, False])
    assert best_threshold(scores, relevant, fbr=0.1) == 2.5


def test_a_label_with_a_low_best_f1_gets_its_highest_score() -> None:
    scores = np.arange(100.0)
    relevant = scores == 0
    assert best_threshold(scores, relevant, fbr=0.1) == 99.0
    assert best_threshold(scores, relevant, fbr=0.0) == -1.0


def test_between_adjacent_floats_the_upper_one_is_predicted() -> None:
    upper = np.nextafter(1.0, 2.0)
    for low, high in ((1.0, upper), (upper, np.nextafter(upper, 2.0))):
        threshold = best_threshold(np.array([low, high]), np.array([False, True]), fbr=0.1)
        assert low <= threshold < high


def test_labels_that_cannot_be_tuned_keep_the_default_threshold() -> None:
    scores = np.array([[3.0, 3.0], [1.0, 1.0]])
    Y = as_label_matrix([[1, 1], [0, 0]])
    tuned = tuned_thresholds(held_out(scores, Y, [True, False]), default=0.5, fbr=0.1)
    assert tuned.tolist() == [2.0, 0.5]


def test_without_a_default_labels_that_cannot_be_tuned_get_their_highest_score() -> None:
    scores = np.array([[3.0, -5.0], [1.0, -7.0]])
    Y = as_label_matrix([[1, 1], [0, 0]])
    tuned = tuned_thresholds(held_out(scores, Y, [True, False]), default=None, fbr=0.1)
    assert tuned.tolist() == [2.0, -5.0]


@pytest.mark.parametrize("n_labels", [1, 5])
def test_every_label_is_tuned_with_its_own_column(n_labels: int) -> None:
    rng = np.random.default_rng(n_labels)
    scores, Y = rng.normal(size=(30, n_labels)), (rng.random((30, n_labels)) < 0.4).astype(int)
    Y[0] = 1
    tuned = tuned_thresholds(held_out(scores, as_label_matrix(Y), [True] * n_labels), default=0.0, fbr=0.1)
    expected = [literal(scores[:, j].tolist(), (Y[:, j] == 1).tolist(), 0.1) for j in range(n_labels)]
    assert tuned == pytest.approx(expected, abs=1e-12)
