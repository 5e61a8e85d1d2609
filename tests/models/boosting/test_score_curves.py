"""Scores of a boosting hypothesis without the table of all contributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from models.boosting import hypothesis
from models.boosting.hypothesis import Hypothesis, WeakHypothesis

VALUES = [-2.0, -0.5, 0.5, 0.7, 1.0, 3.0]


@st.composite
def hypotheses(draw: st.DrawFn) -> tuple[Hypothesis, Any]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    r, k = int(rng.integers(1, 8)), int(rng.integers(1, 12))
    by_presence = draw(st.booleans())
    rounds = []
    for _ in range(int(rng.integers(0, 12))):
        labels = np.sort(rng.choice(k, int(rng.integers(1, k + 1)), replace=False))
        n = len(labels)
        thresholds = np.zeros(n) if by_presence else rng.choice([-1.5, -0.5, 0.0, 0.5, 1.0, 2.0], n)
        absent, present = rng.normal(size=(2, n))
        rounds.append(WeakHypothesis(labels, rng.integers(0, r, n), thresholds, absent, present))
    documents = csr_array(rng.choice([0.0, 0.0, *VALUES], (9, r)))
    return Hypothesis.compressed((r, k), rounds, by_presence=by_presence), documents


@given(hypotheses())
def test_scores_have_the_same_bits_with_and_without_a_table(case: tuple[Hypothesis, Any]) -> None:
    one, documents = case
    with_table = one.scores(documents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hypothesis, "TABLE_BYTES", -1)
        assert one.scores(documents).tobytes() == with_table.tobytes()
        patch.setattr(hypothesis, "_BLOCK_CONTRIBUTIONS", 3)
        assert one.scores(documents).tobytes() == with_table.tobytes()


@given(hypotheses())
def test_the_contributions_of_an_example_add_up_to_its_score(case: tuple[Hypothesis, Any]) -> None:
    one, documents = case
    scores, empty = one.scores(documents), one.scores(csr_array((1, documents.shape[1])))
    for label in range(one.shape[1]):
        _, contributions = one.contributions(documents[[0]], label)
        assert scores[0, label] == pytest.approx(empty[0, label] + contributions.sum())


def test_many_labels_with_many_thresholds_are_loaded_and_scored() -> None:
    k, r, n_rounds = 2_500, 20, 100
    rng = np.random.default_rng(0)
    rounds = [
        WeakHypothesis(np.arange(k), rng.integers(0, r, k), rng.normal(size=k), *rng.normal(size=(2, k)))
        for _ in range(n_rounds)
    ]
    before = Hypothesis.compressed((r, k), rounds, by_presence=False)
    assert 8 * k * len(before.thresholds) > 2**32  # the table would have a row for each threshold
    after = Hypothesis.from_state(before.state())
    documents = csr_array(rng.normal(size=(3, r)))
    scores = after.scores(documents)
    assert scores.tobytes() == before.scores(documents).tobytes()
    dense = documents.toarray()
    for label in (0, k - 1):
        expected = np.zeros(3)
        for one in rounds:
            above = dense[:, one.features[label]] > one.thresholds[label]
            expected += np.where(above, one.present[label], one.absent[label])
        np.testing.assert_allclose(scores[:, label], expected, rtol=1e-9, atol=1e-9)
