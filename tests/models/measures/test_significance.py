"""Paired tests between learners, compared with literal implementations of their definitions."""

from __future__ import annotations

import itertools
import math
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from models.measures.significance import EXACT_UP_TO, Alternative, holm, paired_wald, wilcoxon_signed_rank

SMALL = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=9)


def literal_wilcoxon(differences: list[float]) -> tuple[float, float]:
    """Compute the test from its definition: all patterns of signs are equally probable."""
    nonzero = [d for d in differences if d != 0]
    sizes = [abs(d) for d in nonzero]
    ranks = []
    for size in sizes:
        smaller, equal = sum(s < size for s in sizes), sum(s == size for s in sizes)
        ranks.append(smaller + (equal + 1) / 2)
    positive = sum(rank for rank, d in zip(ranks, nonzero, strict=True) if d > 0)
    negative = sum(rank for rank, d in zip(ranks, nonzero, strict=True) if d < 0)
    statistic = min(positive, negative)
    patterns = list(itertools.product([0, 1], repeat=len(nonzero)))
    tail = sum(sum(itertools.compress(ranks, signs)) <= statistic for signs in patterns)
    return statistic, min(1.0, 2 * tail / len(patterns))


@settings(max_examples=50)
@given(SMALL)
def test_the_signed_rank_test_counts_sign_patterns(differences: list[float]) -> None:
    result = wilcoxon_signed_rank(np.array(differences), np.zeros(len(differences)))
    statistic, p_value = literal_wilcoxon(differences)
    assert result.statistic == statistic
    assert result.p_value == pytest.approx(p_value, abs=1e-12)
    assert result.n == sum(d != 0 for d in differences)


@pytest.mark.parametrize("n", [6, EXACT_UP_TO])
def test_without_ties_it_agrees_with_the_exact_test_of_scipy(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.3, 1, n)
    expected = stats.wilcoxon(differences, method="exact")
    result = wilcoxon_signed_rank(differences, np.zeros(n))
    assert (result.statistic, result.p_value) == pytest.approx((expected.statistic, expected.pvalue))


@pytest.mark.parametrize("values", [7, 1000])
def test_for_many_pairs_it_agrees_with_the_normal_approximation_of_scipy(values: int) -> None:
    rng = np.random.default_rng(values)
    first, second = rng.integers(0, values, 300).astype(float), rng.integers(0, values, 300).astype(float)
    expected = stats.wilcoxon(first, second, zero_method="wilcox", method="asymptotic")  # type: ignore[call-overload]  # the stubs only have an older name
    result = wilcoxon_signed_rank(first, second)
    assert (result.statistic, result.p_value) == pytest.approx((expected.statistic, expected.pvalue))


@settings(max_examples=50)
@given(SMALL)
def test_the_wald_test_is_the_mean_difference_over_its_standard_error(differences: list[float]) -> None:
    result = paired_wald(np.array(differences), np.zeros(len(differences)))
    n = len(differences)
    mean = sum(differences) / n
    variance = sum((d - mean) ** 2 for d in differences) / n
    if mean == 0:
        assert (result.statistic, result.p_value) == (0.0, 1.0)
    elif variance == 0:
        assert (abs(result.statistic), result.p_value) == (math.inf, 0.0)
    else:
        statistic = mean / math.sqrt(variance / n)
        assert result.statistic == pytest.approx(statistic, rel=1e-9)
        assert result.p_value == pytest.approx(math.erfc(abs(statistic) / math.sqrt(2)), rel=1e-9, abs=1e-15)


@settings(max_examples=50)
@given(SMALL)
def test_the_order_of_the_learners_does_not_matter(differences: list[float]) -> None:
    first, second = np.array(differences), np.zeros(len(differences))
    for test in (paired_wald, wilcoxon_signed_rank):
        assert test(first, second).p_value == pytest.approx(test(second, first).p_value)


def test_arrays_of_different_lengths_are_rejected() -> None:
    with pytest.raises(ValueError, match="same length"):
        paired_wald(np.zeros(3), np.zeros(2))


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_agrees_with_the_step_down_procedure(p_values: list[float]) -> None:
    corrected = holm(p_values)
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for alpha in (0.01, 0.05, 0.3):
        rejected = set()
        for step, i in enumerate(order):
            if p_values[i] * (len(p_values) - step) > alpha:
                break
            rejected.add(i)
        assert {i for i, p in enumerate(corrected) if p <= alpha} == rejected
    assert all(p <= c <= 1 for p, c in zip(p_values, corrected, strict=True))


@pytest.mark.parametrize("alternative", ["greater", "less"])
@pytest.mark.parametrize("shift", [-0.3, 0.3])
@pytest.mark.parametrize("n", [6, EXACT_UP_TO, 300])
def test_one_sided_signed_rank_tests_agree_with_scipy(alternative: Any, shift: float, n: int) -> None:
    differences = np.random.default_rng(n).normal(shift, 1, n)
    method: Any = "exact" if n <= EXACT_UP_TO else "asymptotic"
    expected: Any = stats.wilcoxon(differences, alternative=alternative, method=method)
    result = wilcoxon_signed_rank(differences, np.zeros(n), alternative)
    assert (result.statistic, result.p_value) == pytest.approx((expected.statistic, expected.pvalue))


@settings(max_examples=50)
@given(SMALL)
def test_one_sided_signed_rank_tests_count_sign_patterns(differences: list[float]) -> None:
    zeros = np.zeros(len(differences))
    nonzero = [d for d in differences if d != 0]
    ranks = stats.rankdata(np.abs(nonzero)).tolist() if nonzero else []
    positive = sum(rank for rank, d in zip(ranks, nonzero, strict=True) if d > 0)
    sums = [sum(itertools.compress(ranks, signs)) for signs in itertools.product([0, 1], repeat=len(nonzero))]
    for alternative, extreme in (
        ("greater", [s >= positive for s in sums]),
        ("less", [s <= positive for s in sums]),
    ):
        result = wilcoxon_signed_rank(np.array(differences), zeros, cast("Alternative", alternative))
        assert result.p_value == pytest.approx(sum(extreme) / len(sums), abs=1e-12)


def test_one_sided_wald_tests_have_the_tails_of_the_normal_distribution() -> None:
    first, second = np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 0.0, 1.0])
    assert paired_wald(first, second, "greater").p_value == pytest.approx(stats.norm.sf(2.0))
    assert paired_wald(first, second, "less").p_value == pytest.approx(stats.norm.cdf(2.0))
    assert paired_wald(second, first, "greater").p_value == pytest.approx(stats.norm.cdf(2.0))
    assert paired_wald(first, first, "less").p_value == 0.5
    equal = np.full(4, 2.0)
    assert [paired_wald(equal, np.zeros(4), side).p_value for side in ("two_sided", "greater", "less")] == [
        0,
        0,
        1,
    ]
