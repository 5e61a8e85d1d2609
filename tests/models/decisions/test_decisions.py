"""Decision rules, compared with a literal implementation for single labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from models.decisions import DecisionRule, untuned_rule

ANY: TypeAdapter[DecisionRule] = TypeAdapter(DecisionRule)
KINDS = ["sign", "at_least_one", "calibrated_label", "tuned_threshold", "single_label"]


def literal(kind: str, scores: list[float], thresholds: list[float], k: int) -> list[int]:
    best_first = sorted(range(len(scores)), key=lambda label: (-scores[label], label))
    on = [label for label, score in enumerate(scores) if score > thresholds[label]]
    if kind == "top_k":
        return sorted(best_first[:k])
    if kind == "single_label":
        return best_first[:1]
    if kind == "at_least_one" and not on:
        return best_first[:1]
    return on


@given(
    st.sampled_from([*KINDS, "top_k"]),
    st.lists(st.lists(st.integers(-2, 2).map(float), min_size=4, max_size=4), max_size=5),
    st.lists(st.integers(-1, 1).map(float), min_size=4, max_size=4),
    st.integers(1, 6),
)
@settings(max_examples=50, deadline=None)
def test_each_rule_agrees_with_the_literal_implementation(
    kind: str, scores: list[list[float]], thresholds: list[float], k: int
) -> None:
    decision = ANY.validate_python({"kind": kind, "k": k} if kind == "top_k" else {"kind": kind})
    if kind in ("top_k", "single_label"):  # the thresholds of these rules are equal and have no effect
        thresholds = thresholds[:1] * 4
    sets = untuned_rule(decision, np.array(thresholds)).label_sets(np.array(scores).reshape(-1, 4))
    assert sets.shape == (len(scores), 4)
    assert sets.dtype == np.int8
    rows = [np.flatnonzero(row).tolist() for row in sets.toarray()]
    assert rows == [literal(kind, row, thresholds, k) for row in scores]


def test_a_score_equal_to_the_threshold_is_not_predicted() -> None:
    decision = ANY.validate_python({"kind": "sign"})
    rule = untuned_rule(decision, np.zeros(2))
    assert rule.label_sets(np.array([[0.0, 5e-324]])).toarray().tolist() == [[0, 1]]


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"kind": "best"},
        {"kind": "top_k"},
        {"kind": "top_k", "k": 0},
        {"kind": "sign", "k": 1},
        {"kind": "tuned_threshold", "fbr": 1.5},
        {"kind": "tuned_threshold", "fbr": float("nan")},
    ],
)
def test_invalid_decisions_are_rejected(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ANY.validate_python(bad)


def test_the_default_of_fbr_is_the_published_value() -> None:
    assert ANY.validate_python({"kind": "tuned_threshold"}).model_dump() == {
        "kind": "tuned_threshold",
        "fbr": 0.1,
    }
