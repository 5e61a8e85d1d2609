"""Compares two models on the same documents: a paired randomization test, and an interval of the difference.

A measure is a function of sums over the documents: micro-averaged F1 of the numbers of true and false
positives and false negatives, a mean of the values and their number, a macro average of the counts of each
label. So the measure of any mixture or resample of the documents follows from a product of matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Floats, Matrix

PERMUTATIONS = 10_000
"""Number of random permutations of the test; the smallest p-value is 1 / (1 + this number)."""

MAX_PERMUTATIONS = 1_000_000
"""Number of permutations at which no further ones follow, however low the level is."""

_ABOVE_LEVEL = 20
"""A test at a low level has this many times 1 / level permutations, so that p-values near it are precise."""

RESAMPLES = 2_000
"""Number of resamples of the documents for the interval."""

_BLOCK_VALUES = 2**21
"""Values of a block of permutations or resamples, which limits the memory."""

_TOLERANCE = 1e-12
"""Statistics that differ by less are equal: their sums were rounded differently."""

Statistic: TypeAlias = Callable[[Floats], Floats]
"""Converts sums over documents, (b, m), to values of a measure, (b,)."""


@dataclass(frozen=True)
class PairedComparison:
    """Two models compared on the same documents.

    Attributes:
        first: value of the measure for the first model.
        second: value of the measure for the second model.
        difference: first − second.
        interval: interval of the difference with the requested confidence.
        p_value: probability of a difference at least this large, in any direction, if the two models were
            exchangeable for each document.
    """

    first: float
    second: float
    difference: float
    interval: tuple[float, float]
    p_value: float


def compare(
    first: Matrix,
    second: Matrix,
    statistic: Statistic,
    *,
    confidence: float = 0.95,
    level: float = 0.05,
    seed: int = 0,
) -> PairedComparison:
    """Compare two models by an approximate randomization test and a paired bootstrap.

    The test exchanges the outcomes of the two models for random documents (Noreen 1989; Yeh 2000, "More
    accurate tests for the statistical significance of result differences"). The observed outcomes count as
    one of the permutations, so the test is valid for any number of them. The interval contains the
    differences of random samples of the documents with replacement, without the extreme ones on either side
    (percentiles). The result depends only on the arguments. If the models change places, the p-value is the
    same.

    Args:
        first: (n, m) what each document adds to the sums of the first model, at least one document.
        second: (n, m) the same for the second model.
        statistic: the measure.
        confidence: probability that the interval contains the true difference.
        level: the level of the test. Only a low one needs more than ``PERMUTATIONS`` permutations, and only
            if the p-value of these is not far above it.
        seed: seed of permutations and resamples.

    >>> right = csr_array([[1.0, 1.0]] * 9 + [[0.0, 1.0]])
    >>> wrong = csr_array([[1.0, 1.0]] * 2 + [[0.0, 1.0]] * 8)
    >>> result = compare(right, wrong, mean)
    >>> round(result.difference, 2), result.p_value < 0.05, result.interval[0] > 0
    (0.7, True, True)
    """
    values = statistic(np.stack([first.sum(axis=0), second.sum(axis=0)]))
    observed = float(values[0] - values[1])
    rng = np.random.default_rng(seed)
    tail = (1 - confidence) / 2
    resampled = _resampled(first, second, statistic, rng)
    low, high = np.quantile(resampled, [tail, 1 - tail]).tolist()
    p_value = _p_value(first, second, statistic, abs(observed), level, rng)
    return PairedComparison(float(values[0]), float(values[1]), observed, (low, high), p_value)


def mean(sums: Floats) -> Floats:
    """Return the means of values, from (b, 2) their sums and their numbers; 0 without values."""
    return ratio(sums[:, 0], sums[:, 1])


def _p_value(
    first: Matrix,
    second: Matrix,
    statistic: Statistic,
    observed: float,
    level: float,
    rng: np.random.Generator,
) -> float:
    """Return the share of permutations with a difference at least as large as the observed one.

    Permutations are added if the share is not above 10 times the level. The result is below any smaller limit
    only if the share of all permutations is, so it remains a valid p-value there.
    """
    changes = csr_array(second - first)
    changes.eliminate_zeros()
    changes = changes[np.diff(changes.indptr) > 0]  # exchanging equal outcomes changes nothing
    n_changes = changes.shape[0]
    if not n_changes:
        return 1.0
    sums_of_first, sums_of_second = first.sum(axis=0), second.sum(axis=0)
    total, extreme, wanted = 0, 0, PERMUTATIONS
    while total < wanted:
        size = min(wanted - total, _block_size(max(changes.shape)))
        exchanged = rng.integers(0, 2, (size, n_changes), dtype=np.int8).astype(np.float64) @ changes
        values = statistic(sums_of_first + exchanged) - statistic(sums_of_second - exchanged)
        extreme += int((np.abs(values) >= observed - _TOLERANCE).sum())
        total += size
        if total == PERMUTATIONS and (1 + extreme) / (1 + total) <= 10 * level:
            wanted = max(PERMUTATIONS, min(math.ceil(_ABOVE_LEVEL / level), MAX_PERMUTATIONS))
    return (1 + extreme) / (1 + total)


def _resampled(first: Matrix, second: Matrix, statistic: Statistic, rng: np.random.Generator) -> Floats:
    """Return the differences for resamples of the documents, (RESAMPLES,)."""
    n, m = first.shape
    parts = []
    block = _block_size(max(n, m))
    for start in range(0, RESAMPLES, block):
        size = min(block, RESAMPLES - start)
        drawn = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, np.newaxis]
        times = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
        parts.append(statistic(times @ first) - statistic(times @ second))
    return np.concatenate(parts)


def _block_size(width: int) -> int:
    return max(1, _BLOCK_VALUES // width)


def ratio(numerator: Floats, denominator: Floats, otherwise: float = 0.0) -> Floats:
    """Return ratios; ``otherwise`` if the denominator is 0."""
    result = np.full(numerator.shape, otherwise)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result
