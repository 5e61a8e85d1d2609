"""Confidence intervals of shares, also of those of documents with several labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

CONFIDENCE: Final = 0.95
"""Level of all intervals."""

_Z: Final = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""

Interval: TypeAlias = tuple[float, float]
"""The lower and the upper bound."""


def wilson(share: float, n: float) -> Interval:
    """Return the score interval of a share (Wilson 1927), at the level ``CONFIDENCE``.

    It keeps its level also for few trials and for shares near 0 and 1 (Brown, Cai and DasGupta 2001).

    Args:
        share: the observed share of successes, from 0 to 1.
        n: the number of independent trials, above 0; an effective number can be a fraction.

    >>> [round(bound, 4) for bound in wilson(0.9, 10)]
    [0.5958, 0.9821]
    >>> wilson(1.0, 10)[1]
    1.0
    """
    center = share + _Z**2 / (2 * n)
    half = _Z * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    scale = 1 + _Z**2 / n
    # Rounding must not exclude the extreme shares themselves.
    low = 0.0 if share <= 0 else max(0.0, (center - half) / scale)
    high = 1.0 if share >= 1 else min(1.0, (center + half) / scale)
    return low, high


@dataclass
class RatioSums:
    """The sums of a share whose parts come from documents: Σ a / Σ b, where 0 ≤ a ≤ b in each document.

    Micro-averaged precision, for example, has the right labels a among the predicted labels b. The labels of
    a document depend on each other, so they are not independent trials. The interval is that of Wilson with
    an effective number of trials: the number with which a share of independent trials has the variance of the
    ratio (Cochran 1977, section 6.5; Korn and Graubard 1998), at most the number of documents. If each
    document has one trial, this is the plain interval of Wilson.

    >>> sums = RatioSums()
    >>> sums.add(1, 2, times=3)
    >>> sums.add(2, 2)
    >>> sums.share
    0.625
    """

    n: int = 0
    a: int = 0
    b: int = 0
    _aa: int = field(default=0, repr=False)
    _ab: int = field(default=0, repr=False)
    _bb: int = field(default=0, repr=False)

    def add(self, a: int, b: int, times: int = 1) -> None:
        """Add documents with the same parts. Documents without trials (b = 0) do not count."""
        if b:
            self.n += times
            self.a += a * times
            self.b += b * times
            self._aa += a * a * times
            self._ab += a * b * times
            self._bb += b * b * times

    @property
    def share(self) -> float | None:
        """The share; None without trials."""
        return self.a / self.b if self.b else None

    @property
    def interval(self) -> Interval | None:
        """The confidence interval of the share; None without trials."""
        if not self.b:
            return None
        share = self.a / self.b
        variance = (self._aa - 2 * share * self._ab + share * share * self._bb) / self.b**2
        n = min(self.n, share * (1 - share) / variance) if variance > 1e-18 else self.n
        return wilson(share, max(n, 1.0))


def f1_of_jaccard(jaccard: float) -> float:
    """Return the F1 of a Jaccard index J = tp / (tp + fp + fn), which is 2 J / (1 + J).

    The function increases, so it converts the bounds of an interval, too.

    >>> f1_of_jaccard(0.5) == 2 * 1 / (2 * 1 + 1)
    True
    """
    return 2 * jaccard / (1 + jaccard)


@dataclass(frozen=True)
class Stratum:
    """A part of all documents, some of which were examined.

    Attributes:
        size: number of its documents.
        n: number of those that were examined.
        successes: number of successes among these.
    """

    size: int
    n: int
    successes: int


def stratified_share(strata: Sequence[Stratum]) -> tuple[float, Interval] | None:
    """Estimate a share of all documents if some strata were examined more often than others.

    Each stratum counts with its size (poststratification: Cochran 1977, section 5A.9). Documents must have
    been chosen at random within each stratum. The variance of a stratum comes from its share with one more
    success and one more failure, so that a few successes in a row do not look certain.

    Returns:
        The share and its interval; None if there are no documents, or a stratum has none that was examined.

    >>> share, _ = stratified_share([Stratum(90, 10, 10), Stratum(10, 10, 5)])
    >>> round(share, 6)
    0.95
    """
    filled = [stratum for stratum in strata if stratum.size]
    if not filled or any(stratum.n == 0 for stratum in filled):
        return None
    total = sum(stratum.size for stratum in filled)
    share = smooth = variance = 0.0
    for stratum in filled:
        weight = stratum.size / total
        of_stratum = (stratum.successes + 1) / (stratum.n + 2)
        share += weight * stratum.successes / stratum.n
        smooth += weight * of_stratum
        variance += weight**2 * of_stratum * (1 - of_stratum) / stratum.n
    share = min(1.0, share)
    return share, wilson(share, max(1.0, smooth * (1 - smooth) / variance))
