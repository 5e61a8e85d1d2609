"""Significance tests of the difference between two learners, and the correction for multiple tests.

The papers compare two learners by their losses on the same test examples. The AdaBoost.LC paper uses the
paired Wald test, and the MLPP paper the Wilcoxon signed-rank test. Many tests at once produce false
positives, so Holm's method corrects their p-values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, rankdata

from models.arrays import Floats

EXACT_UP_TO = 25
"""Maximum number of differences for which the exact signed-rank distribution is used."""


@dataclass(frozen=True)
class TestResult:
    """The result of a two-sided test of the null hypothesis "no difference".

    Attributes:
        statistic: the test statistic; infinite if all pairs have the same nonzero difference.
        p_value: the probability of a statistic at least this extreme under the null hypothesis.
        n: number of pairs in the test.
    """

    __test__ = False  # tells pytest that this is not a test class

    statistic: float
    p_value: float
    n: int


def paired_wald(first: Floats, second: Floats) -> TestResult:
    """Paired Wald test: the mean difference divided by its standard error, which is approximately normal.

    The standard error is S/√n with S² = n⁻¹ Σ (d − d̄)² (Wasserman, All of Statistics, section 10.1,
    "comparing two prediction algorithms"). The test needs many pairs, such as test examples; a few folds are
    not enough.

    Args:
        first: (n,) losses of one learner.
        second: (n,) losses of the other learner on the same examples.

    Raises:
        ValueError: the arrays have different lengths.

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
    """Wilcoxon signed-rank test (as in Demšar 2006), which uses only the order of the differences.

    Pairs without a difference are omitted, and differences of equal size have their mean rank. The statistic
    is the smaller of the two rank sums. Up to ``EXACT_UP_TO`` differences, its distribution is exact,
    including ties. For more differences, it is approximated by a normal distribution with a variance adjusted
    for ties.

    Args:
        first: (n,) values of one learner.
        second: (n,) values of the other learner on the same examples or folds.

    Raises:
        ValueError: the arrays have different lengths.

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


def _exact_p(ranks: Floats, smaller: float) -> float:
    """Return twice the fraction of the 2^n sign patterns whose rank sum is at most ``smaller``."""
    doubled = np.rint(2 * ranks).astype(np.int64)  # ranks of ties are multiples of 1/2
    patterns = np.zeros(int(doubled.sum()) + 1)
    patterns[0] = 1.0
    for rank in doubled.tolist():
        patterns[rank:] += patterns[:-rank].copy()
    tail = float(patterns[: round(2 * smaller) + 1].sum()) / 2.0 ** len(ranks)
    return min(1.0, 2 * tail)
