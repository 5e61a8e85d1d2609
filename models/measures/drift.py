"""Drift: how much the distribution of recent values differs from that of a reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import chdtri

from models.arrays import Floats, Ints

ALPHA: Final = 0.05
"""Share of samples without drift whose index exceeds ``Drift.chance``."""

MIN_EXPECTED: Final = 5.0
"""Categories for which fewer values are expected are merged, as for a chi-squared test."""

N_BINS: Final = 10
"""Number of bins with about the same share of the reference."""

_SMOOTHING: Final = 0.5
"""Values that are added to each category, so that empty ones have a logarithm."""


@dataclass(frozen=True)
class Drift:
    """The difference of two distributions over the same categories.

    Attributes:
        population_stability_index: Σ (p - q) · ln(p / q) over the categories, where p is the share of the
            recent values and q that of the reference. It is 0 for equal distributions. Values below 0.1 are
            usually called stable, and above 0.25 a large change (Siddiqi 2006).
        total_variation: Σ |p - q| / 2, from 0 to 1: the share of values that would have to change.
        chance: the index that samples of this size exceed in 5 % of cases although nothing has changed:
            (1/n + 1/m) times the 95 % quantile of χ² with (categories - 1) degrees of freedom (Yurdakul and
            Naranjo 2020).
        n: number n of recent values.
    """

    population_stability_index: float
    total_variation: float
    chance: float
    n: int


def drift(observed: Ints, expected: Floats, n_reference: float) -> Drift | None:
    """Compare the counts of recent values with the shares of a reference.

    Args:
        observed: (c,) number of recent values in each category.
        expected: (c,) share of the reference in each category; they add up to 1.
        n_reference: number m of values of the reference.

    Returns:
        The difference; None if there are no values.

    >>> found = drift(np.array([80, 20]), np.array([0.5, 0.5]), 1e9)
    >>> round(found.population_stability_index, 2), round(found.total_variation, 2)
    (0.41, 0.3)
    """
    n, c = int(observed.sum()), len(observed)
    if n == 0 or n_reference <= 0:
        return None
    p = (observed + _SMOOTHING) / (n + _SMOOTHING * c)
    q = (expected * n_reference + _SMOOTHING) / (n_reference + _SMOOTHING * c)
    quantile = float(chdtri(c - 1, ALPHA)) if c > 1 else 0.0
    return Drift(
        population_stability_index=float(((p - q) * np.log(p / q)).sum()),
        total_variation=float(np.abs(observed / n - expected).sum() / 2),
        chance=(1 / n + 1 / n_reference) * quantile,
        n=n,
    )


def frequent_categories(expected: Floats, n: int) -> Ints:
    """Return the number of the merged category of each category.

    Categories with at least ``MIN_EXPECTED`` expected values stay alone. All others share the last one.

    Args:
        expected: (c,) share of the reference in each category.
        n: number of recent values.

    >>> frequent_categories(np.array([0.6, 0.001, 0.398, 0.001]), 100).tolist()
    [0, 2, 1, 2]
    """
    alone = expected * n >= MIN_EXPECTED
    merged = np.full(len(expected), int(alone.sum()), dtype=np.int64)
    merged[alone] = np.arange(int(alone.sum()))
    return merged


def quantile_bins(expected: Floats) -> Ints:
    """Return the bin of each fine bin, so that at most ``N_BINS`` bins have about equal shares.

    A bin ends with the fine bin with which it has a share of at least 1 / ``N_BINS``.

    Args:
        expected: (f,) share of the reference in each of f fine bins, in ascending order.

    >>> quantile_bins(np.array([0.05, 0.05, 0.8, 0.02, 0.08])).tolist()
    [0, 0, 1, 2, 2]
    """
    bins = np.empty(len(expected), dtype=np.int64)
    current, mass = 0, 0.0
    for i, share in enumerate(expected.tolist()):
        bins[i] = current
        mass += share
        if mass >= 1 / N_BINS - 1e-9:
            current, mass = current + 1, 0.0
    if current and mass < 1 / (2 * N_BINS):  # what is left is too little for a bin of its own
        bins[bins == current] = current - 1
    return bins


def merge(values: Floats | Ints, categories: Ints) -> Floats:
    """Add up the values of merged categories."""
    n = int(categories.max(initial=-1)) + 1
    return np.bincount(categories, weights=values, minlength=n).astype(np.float64)
