"""Drift: differences of distributions, and how large they are by chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.measures.drift import drift, frequent_categories, merge, quantile_bins


def test_the_index_is_the_sum_of_the_definition() -> None:
    found = drift(np.array([300, 700]), np.array([0.5, 0.5]), 1e12)
    assert found is not None
    expected = (0.3 - 0.5) * math.log(0.3 / 0.5) + (0.7 - 0.5) * math.log(0.7 / 0.5)
    assert found.population_stability_index == pytest.approx(expected, rel=0.01)
    assert found.total_variation == pytest.approx(0.2)


def test_without_drift_the_index_exceeds_chance_in_about_5_of_100_samples() -> None:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(10, 5.0))
    above = 0
    for _ in range(1000):
        reference, recent = rng.multinomial(800, shares), rng.multinomial(400, shares)
        found = drift(recent, reference / 800, 800)
        assert found is not None
        above += found.population_stability_index > found.chance
    assert 20 <= above <= 90


def test_drift_exceeds_chance() -> None:
    found = drift(np.array([10, 50, 40]), np.array([0.5, 0.3, 0.2]), 500)
    assert found is not None
    assert found.population_stability_index > 5 * found.chance


def test_an_empty_category_has_a_finite_index() -> None:
    found = drift(np.array([100, 0]), np.array([0.0, 1.0]), 100)
    assert found is not None
    assert math.isfinite(found.population_stability_index)
    assert found.total_variation == 1.0


def test_nothing_recent_or_no_reference_has_no_drift() -> None:
    assert drift(np.array([0, 0]), np.array([0.5, 0.5]), 100) is None
    assert drift(np.array([1, 0]), np.array([0.5, 0.5]), 0) is None


def test_one_category_does_not_drift() -> None:
    found = drift(np.array([7]), np.array([1.0]), 100)
    assert found is not None
    assert (found.population_stability_index, found.chance) == (0.0, 0.0)


def test_rare_categories_are_merged() -> None:
    merged = frequent_categories(np.array([0.001, 0.5, 0.49, 0.009]), 200)
    assert merged.tolist() == [2, 0, 1, 2]
    assert merge(np.array([1, 2, 3, 4]), merged).tolist() == [2, 3, 5]
    assert frequent_categories(np.array([0.5, 0.5]), 1000).tolist() == [0, 1]


def test_bins_have_about_equal_shares_of_the_reference() -> None:
    shares = np.random.default_rng(0).dirichlet(np.ones(100))
    bins = quantile_bins(shares)
    merged = merge(shares, bins)
    assert (np.diff(bins) >= 0).all()
    assert len(merged) <= 10
    assert (merged >= 0.05).all()
    assert merged.sum() == pytest.approx(1.0)
