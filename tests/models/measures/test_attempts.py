"""Repeated comparisons on the same test part share one level."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

from models.arrays import Bools, Floats
from models.data.examples import SelectedBy, is_fair_test
from models.measures import paired
from models.measures.attempts import SKETCH_SIZE, attempt_number, document_sketch, level_of_attempt
from models.measures.paired import compare, mean


def test_the_levels_of_all_attempts_sum_to_alpha() -> None:
    sums = np.cumsum([level_of_attempt(0.05, attempt) for attempt in range(1, 10_001)])
    assert sums[0] == 0.025
    assert 0.04999 < sums[-1] < 0.05


def test_a_comparison_counts_the_earlier_ones_that_share_a_document() -> None:
    rng = np.random.default_rng(1)
    documents = rng.integers(-(2**63), 2**63, 20_000)
    large, other = document_sketch(documents[:10_000]), document_sketch(documents[10_000:])
    assert len(large) == SKETCH_SIZE
    assert document_sketch(np.repeat(documents[10_000::-1], 2)) == document_sketch(documents[:10_001])
    assert attempt_number(large, []) == 1
    assert attempt_number(large, [other]) == 1, "other documents have a level of their own"
    overlapping = document_sketch(np.concatenate([documents[:200], documents[10_200:]]))
    assert attempt_number(overlapping, [large, large, other]) == 4
    small = document_sketch(documents[:100])
    assert attempt_number(small, [document_sketch(documents[99:150])]) == 2, "one common document is enough"


def right(rng: np.random.Generator, n: int, error: float = 0.3) -> Floats:
    """Return for each document whether a version is right."""
    return (rng.random(n) >= error).astype(np.float64)


def is_promoted(new: Floats, live: Floats, level: float) -> bool:
    """Decide as a training with ``if_better`` does."""
    first, second = (csr_array(np.column_stack([values, np.ones(len(values))])) for values in (new, live))
    result = compare(first, second, mean, level=level)
    return result.difference > 0 and result.p_value <= level


@pytest.fixture
def few_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "PERMUTATIONS", 300)


@pytest.mark.usefixtures("few_permutations")
def test_ten_attempts_rarely_promote_a_version_that_is_not_better() -> None:
    """Versions that are equally good, compared on one random sample of the messages."""
    rng = np.random.default_rng(5)
    alpha, n_models = 0.2, 80
    by_attempt = always_alpha = 0
    for _ in range(n_models):
        live = right(rng, 60)
        candidates = [right(rng, 60) for _ in range(10)]
        by_attempt += any(
            is_promoted(new, live, level_of_attempt(alpha, i)) for i, new in enumerate(candidates, 1)
        )
        always_alpha += any(is_promoted(new, live, alpha) for new in candidates)
    assert stats.binomtest(by_attempt, n_models, alpha, "greater").pvalue > 0.05, by_attempt
    assert stats.binomtest(always_alpha, n_models, alpha, "greater").pvalue < 0.001, always_alpha


@pytest.mark.usefixtures("few_permutations")
def test_messages_that_the_live_version_doubted_are_no_test() -> None:
    """Equally good versions, whose errors are on different messages, tested on what people have reviewed."""
    rng = np.random.default_rng(6)
    on_reviewed = on_sample = 0
    for _ in range(30):
        live, new = right(rng, 1000, 0.15), right(rng, 1000, 0.15)
        doubted: Bools = rng.random(1000) < np.where(live == 1.0, 0.05, 0.6)
        sampled: Bools = rng.random(1000) < 0.1
        reviewed = sampled | doubted
        selections: list[SelectedBy | None] = ["sample" if drawn else "doubt" for drawn in sampled[reviewed]]
        is_fair = is_fair_test(selections)
        assert is_fair.sum() == sampled.sum()
        on_reviewed += is_promoted(new[reviewed], live[reviewed], 0.05)
        on_sample += is_promoted(new[reviewed][is_fair], live[reviewed][is_fair], 0.05)
    assert on_reviewed >= 28, "the selection makes the live version look bad"
    assert on_sample <= 3


def test_a_low_level_adds_permutations_only_near_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "PERMUTATIONS", 1000)
    rng = np.random.default_rng(7)
    better, worse = right(rng, 150, 0.05), right(rng, 150, 0.35)
    first, second = (csr_array(np.column_stack([values, np.ones(150)])) for values in (better, worse))
    assert compare(first, second, mean).p_value == pytest.approx(1 / 1001)
    assert compare(first, second, mean, level=0.001).p_value == pytest.approx(1 / 20_001)
    monkeypatch.setattr(paired, "MAX_PERMUTATIONS", 5000)
    assert compare(first, second, mean, level=0.001).p_value == pytest.approx(1 / 5001)
    same = csr_array(np.column_stack([right(rng, 150, 0.06), np.ones(150)]))
    plain, low = compare(first, same, mean), compare(first, same, mean, level=0.001)
    assert plain.p_value == low.p_value > 0.01
