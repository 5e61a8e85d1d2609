"""Confidence intervals of shares keep their level."""

from __future__ import annotations

import numpy as np
import pytest

from models.measures.intervals import RatioSums, Stratum, f1_of_jaccard, stratified_share, wilson


def test_the_interval_of_wilson_is_that_of_the_literature() -> None:
    # Newcombe 1998, table I, method 3.
    for successes, n, low, high in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611)]:
        assert wilson(successes / n, n) == pytest.approx((low, high), abs=5e-5)


def test_one_trial_for_each_document_has_the_interval_of_wilson() -> None:
    sums = RatioSums()
    sums.add(1, 1, times=90)
    sums.add(0, 1, times=10)
    sums.add(0, 0, times=50)
    assert sums.n == 100
    assert sums.interval == pytest.approx(wilson(0.9, 100))


def test_labels_that_are_all_right_or_all_wrong_together_count_as_one_trial() -> None:
    together = RatioSums()
    together.add(4, 4, times=90)
    together.add(0, 4, times=10)
    assert together.interval == pytest.approx(wilson(0.9, 100))


def test_without_trials_there_is_no_interval() -> None:
    assert RatioSums().share is None
    assert RatioSums().interval is None


def test_the_intervals_of_ratios_and_of_f1_contain_the_truth_in_about_95_of_100_samples() -> None:
    rng = np.random.default_rng(0)
    hits = f1_hits = 0
    for _ in range(400):
        sums = RatioSums()
        for quality, size in zip(rng.beta(8, 2, 60), rng.integers(1, 4, 60), strict=True):
            sums.add(int(rng.binomial(size, quality)), int(size))
        assert sums.interval is not None
        low, high = sums.interval
        hits += low <= 0.8 <= high
        f1_hits += f1_of_jaccard(low) <= f1_of_jaccard(0.8) <= f1_of_jaccard(high)
    assert 370 <= hits <= 400
    assert f1_hits == hits


def test_a_sample_with_more_feedback_on_bad_messages_is_corrected_by_the_sizes_of_the_strata() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        right = rng.binomial(40, 0.95), rng.binomial(100, 0.5)
        found = stratified_share([Stratum(900, 40, right[0]), Stratum(100, 100, right[1]), Stratum(0, 0, 0)])
        assert found is not None
        share, (low, high) = found
        assert low <= share <= high
        hits += low <= 0.9 * 0.95 + 0.1 * 0.5 <= high
    assert hits >= 370


def test_a_stratum_without_feedback_has_an_unknown_share() -> None:
    assert stratified_share([Stratum(900, 0, 0), Stratum(100, 100, 50)]) is None
    assert stratified_share([]) is None
