"""Significance tests of the difference between two learners, and the correction for multiple tests.

The papers compare two learners by their losses on the same test examples. The AdaBoost.LC paper uses the
paired Wald test, and the MLPP paper the Wilcoxon signed-rank test. Many tests at once produce false
positives, so Holm's method corrects their p-values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.stats import norm, rankdata

from models.arrays import Floats

EXACT_UP_TO = 25
"""Maximum number of differences for which the exact signed-rank distribution is used."""

Alternative: TypeAlias = Literal["two_sided", "greater", "less"]
"""The hypothesis that a test confirms if it rejects "no difference": the values of the first learner differ
from those of the second, or are greater, or less."""


@dataclass(frozen=True)
class TestResult:
    """The result of a test of the null hypothesis "no difference".

    Attributes:
        statistic: the test statistic; infinite if all pairs have the same nonzero difference.
        p_value: the probability of a statistic at least this extreme, in the direction of the alternative,
            under the null hypothesis.
        n: number of pairs in the test.
    """

    __test__ = False  # tells pytest that this is not a test class

    statistic: float
    p_value: float
    n: int


def paired_wald(first: Floats, second: Floats, alternative: Alternative = "two_sided") -> TestResult:
    """Paired Wald test: the mean difference divided by its standard error, which is approximately normal.

    The standard error is S/√n with S² = n⁻¹ Σ (d − d̄)² (Wasserman, All of Statistics, section 10.1,
    "comparing two prediction algorithms"). The test needs many pairs, such as test examples; a few folds are
    not enough.

    Args:
        first: (n,) losses of one learner.
        second: (n,) losses of the other learner on the same examples.
        alternative: what the test can confirm.

    Raises:
        ValueError: the arrays have different lengths.

    >>> paired_wald(np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 0.0, 1.0])).statistic
    2.0
    """
    differences = _differences(first, second)
    n = len(differences)
    mean = math.fsum(differences) / n if n else 0.0
    if mean == 0.0:
        return TestResult(0.0, 1.0 if alternative == "two_sided" or not n else 0.5, n)
    error = math.sqrt(math.fsum((differences - mean) ** 2) / n / n)
    statistic = mean / error if error > abs(mean) * 1e-15 else math.copysign(math.inf, mean)
    return TestResult(statistic, _normal_p(statistic, alternative), n)


def wilcoxon_signed_rank(first: Floats, second: Floats, alternative: Alternative = "two_sided") -> TestResult:
    """Wilcoxon signed-rank test (as in Demšar 2006), which uses only the order of the differences.

    Pairs without a difference are omitted, and differences of equal size have their mean rank. The statistic
    is the smaller of the two rank sums; with a one-sided alternative, it is the rank sum of the positive
    differences. Up to ``EXACT_UP_TO`` differences, its distribution is exact,
    including ties. For more differences, it is approximated by a normal distribution with a variance adjusted
    for ties.

    Args:
        first: (n,) values of one learner.
        second: (n,) values of the other learner on the same examples or folds.
        alternative: what the test can confirm.

    Raises:
        ValueError: the arrays have different lengths.

    >>> wilcoxon_signed_rank(np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.0, 0.0]))
    TestResult(statistic=0.0, p_value=0.25, n=3)
    >>> wilcoxon_signed_rank(np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.0, 0.0]), "greater")
    TestResult(statistic=6.0, p_value=0.125, n=3)
    """
    differences = _differences(first, second)
    differences = differences[differences != 0]
    n = len(differences)
    if not n:
        return TestResult(0.0, 1.0, 0)
    ranks = rankdata(np.abs(differences))
    positive = float(ranks[differences > 0].sum())
    negative = n * (n + 1) / 2 - positive
    statistic = min(positive, negative) if alternative == "two_sided" else positive
    if n <= EXACT_UP_TO:
        # The rank sum is symmetric: as many are at least the one as are at most the other.
        tail = _exact_tail(ranks, negative if alternative == "greater" else statistic)
        return TestResult(statistic, min(1.0, 2 * tail) if alternative == "two_sided" else tail, n)
    variance = float((ranks**2).sum()) / 4
    z = (statistic - n * (n + 1) / 4) / math.sqrt(variance)
    return TestResult(statistic, _normal_p(z, alternative), n)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: multiply the smallest p-value by m, the next one by m − 1, and so on.

    If the tests with a corrected p-value below α are called significant, the probability of one or more false
    positives is at most α, even if the tests depend on each other.

    Args:
        p_values: the p-values of m tests.

    Returns:
        the corrected p-values in the same order, at most 1.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    maximum = 0.0
    for n_smaller, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        maximum = max(maximum, min(1.0, p_values[i] * (len(p_values) - n_smaller)))
        corrected[i] = maximum
    return corrected


def _differences(first: Floats, second: Floats) -> Floats:
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(
            f"paired tests need two arrays of the same length, not {first.shape} and {second.shape}"
        )
    return np.asarray(first - second, dtype=np.float64)


def _normal_p(z: float, alternative: Alternative) -> float:
    """Return the p-value of a statistic with the standard normal distribution."""
    if alternative == "two_sided":
        return float(2 * norm.sf(abs(z)))
    return float(norm.sf(z) if alternative == "greater" else norm.cdf(z))


def _exact_tail(ranks: Floats, limit: float) -> float:
    """Return the fraction of the 2^n sign patterns whose rank sum is at most ``limit``."""
    doubled = np.rint(2 * ranks).astype(np.int64)  # ranks of ties are multiples of 1/2
    patterns = np.zeros(int(doubled.sum()) + 1)
    patterns[0] = 1.0
    for rank in doubled.tolist():
        patterns[rank:] += patterns[:-rank].copy()
    return float(patterns[: round(2 * limit) + 1].sum()) / 2.0 ** len(ranks)
