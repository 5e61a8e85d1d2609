"""Whether one learner is better than another, or was only lucky: paired tests, and their correction.

The papers compare two learners by their losses on the same test examples: AdaBoost.LC's by the paired Wald
test, MLPP's by the Wilcoxon signed-rank test. Comparing many pairs at once finds differences where there are
none, so their p-values are corrected by Holm's method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, rankdata

from models.arrays import Floats

EXACT_UP_TO = 25
"""Up to so many differences the signed-rank distribution is counted out; beyond it is close to normal."""


@dataclass(frozen=True)
class TestResult:
    """What a two-sided test of "no difference" found.

    Attributes:
        statistic: of the test; infinite where every pair differs by the same.
        p_value: how probable a statistic at least this extreme would be if there were no difference.
        n: pairs that the test looked at.
    """

    __test__ = False  # to pytest, it is no test

    statistic: float
    p_value: float
    n: int


def paired_wald(first: Floats, second: Floats) -> TestResult:
    """The paired Wald test: mean difference over its standard error, held against the normal distribution.

    The standard error is S/√n with S² = n⁻¹ Σ (d − d̄)² (Wasserman, All of Statistics, section 10.1,
    "comparing two prediction algorithms"). It takes many pairs, such as test examples; not the few folds.

    Args:
        first: (n,) losses of one learner.
        second: (n,) losses of the other on the same examples.

    Raises:
        ValueError: not as many of both.

    >>> paired_wald(np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 0.0, 1.0])).statistic
    2.0
    """
    differences = _differences(first, second)
    n = len(differences)
    mean = math.fsum(differences) / n if n else 0.0
    if mean == 0.0:
        return TestResult(0.0, 1.0, n)
    error = math.sqrt(math.fsum((differences - mean) ** 2) / n / n)
    if error <= abs(mean) * 1e-15:
        return TestResult(math.copysign(math.inf, mean), 0.0, n)
    statistic = mean / error
    return TestResult(statistic, float(2 * norm.sf(abs(statistic))), n)


def wilcoxon_signed_rank(first: Floats, second: Floats) -> TestResult:
    """The Wilcoxon signed-rank test (as in Demšar 2006), which asks only that differences can be ordered.

    Pairs without a difference are left out; equal sizes of difference share their mean rank. The statistic
    is the smaller of the two rank sums. Its distribution is counted out up to ``EXACT_UP_TO`` differences,
    ties included; beyond, it is held against a normal one whose variance allows for the ties.

    Args:
        first: (n,) values of one learner.
        second: (n,) values of the other on the same examples or folds.

    Raises:
        ValueError: not as many of both.

    >>> wilcoxon_signed_rank(np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.0, 0.0]))
    TestResult(statistic=0.0, p_value=0.25, n=3)
    """
    differences = _differences(first, second)
    differences = differences[differences != 0]
    n = len(differences)
    if not n:
        return TestResult(0.0, 1.0, 0)
    ranks = rankdata(np.abs(differences))
    positive = float(ranks[differences > 0].sum())
    smaller = min(positive, n * (n + 1) / 2 - positive)
    if n <= EXACT_UP_TO:
        return TestResult(smaller, _exact_p(ranks, smaller), n)
    variance = float((ranks**2).sum()) / 4
    z = (smaller - n * (n + 1) / 4) / math.sqrt(variance)
    return TestResult(smaller, min(1.0, float(2 * norm.cdf(z))), n)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the smallest p-value counts m-fold, the next (m − 1)-fold, and so on.

    Calling "significant" what stays under α makes a mistake anywhere among all of them with probability α at
    most, whatever their dependence.

    Args:
        p_values: of m tests.

    Returns:
        corrected p-values, in the same order, none above 1.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    reached = 0.0
    for done, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        reached = max(reached, min(1.0, p_values[i] * (len(p_values) - done)))
        corrected[i] = reached
    return corrected


def _differences(first: Floats, second: Floats) -> Floats:
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"pairs need two lists of the same length, not {first.shape} and {second.shape}")
    return np.asarray(first - second, dtype=np.float64)


def _exact_p(ranks: Floats, smaller: float) -> float:
    """Twice the share of the 2^n sign patterns whose rank sum is at most ``smaller``."""
    doubled = np.rint(2 * ranks).astype(np.int64)  # shared ranks are halves
    patterns = np.zeros(int(doubled.sum()) + 1)
    patterns[0] = 1.0
    for rank in doubled.tolist():
        patterns[rank:] += patterns[:-rank].copy()
    tail = float(patterns[: round(2 * smaller) + 1].sum()) / 2.0 ** len(ranks)
    return min(1.0, 2 * tail)
