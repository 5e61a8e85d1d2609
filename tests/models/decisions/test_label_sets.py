"""Label set rules, compared with a literal implementation for single labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.decisions import LabelSetRule

N_LABELS = 5


def literal(
    scores: list[float],
    thresholds: list[float],
    at_least: int,
    at_most: int | None,
    parents: list[int] | None,
) -> list[int]:
    best_first = sorted(range(len(scores)), key=lambda label: (-scores[label], label))
    chosen = {label for label in best_first if scores[label] > thresholds[label]}
    for label in best_first:
        if len(chosen) < at_least:
            chosen.add(label)
    ranked = [label for label in best_first if label in chosen]
    chosen = set(ranked[:at_most])
    for label in list(chosen):
        while parents is not None and (label := parents[label]) >= 0:
            chosen.add(label)
    return sorted(chosen)


scores_of_example = st.lists(st.integers(-2, 2).map(float), min_size=N_LABELS, max_size=N_LABELS)
forests = st.permutations(range(N_LABELS)).flatmap(
    lambda order: st.tuples(
        *(
            st.sampled_from([-1, *(other for other in range(N_LABELS) if order[other] < order[label])])
            for label in range(N_LABELS)
        )
    ).map(list)
)


@given(
    st.lists(scores_of_example, max_size=4),
    scores_of_example,
    st.integers(0, 6),
    st.none() | st.integers(1, 6),
    st.none() | forests,
)
@settings(max_examples=100, deadline=None)
def test_label_sets_agree_with_the_literal_implementation(
    scores: list[list[float]],
    thresholds: list[float],
    at_least: int,
    at_most: int | None,
    parents: list[int] | None,
) -> None:
    rule = LabelSetRule(
        np.array(thresholds), at_least, at_most, None if parents is None else np.array(parents)
    )
    array = np.array(scores).reshape(-1, N_LABELS)
    predicted = rule.predicted(array)
    assert [np.flatnonzero(row).tolist() for row in predicted] == [
        literal(row, thresholds, at_least, at_most, parents) for row in scores
    ]
    assert (rule.label_sets(array).toarray() == predicted).all()


@pytest.mark.parametrize("n_labels", [3, 1000])
def test_a_row_has_the_same_label_set_alone_and_in_a_batch(n_labels: int) -> None:
    rng = np.random.default_rng(n_labels)
    scores = rng.integers(-3, 3, (20, n_labels)).astype(float)
    parents = np.array([-1, *(int(rng.integers(-1, j)) for j in range(1, n_labels))])
    rule = LabelSetRule(rng.normal(2, 1, n_labels), at_least=2, at_most=3, parents=parents)
    rows = [rule.predicted(scores[[i]])[0] for i in range(20)]
    assert (rule.predicted(scores) == rows).all()
