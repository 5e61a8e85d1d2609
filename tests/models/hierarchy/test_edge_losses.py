"""The edge losses of every labeling add up to its loss."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.hierarchy.decoding import indicators
from models.hierarchy.forest import Forest, Scaling
from models.hierarchy.losses import edge_losses
from models.measures.tree import simplified_hierarchical_loss, symmetric_difference_loss


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=6),
    st.sampled_from(["uniform", "sibling", "subtree"]),
    st.sampled_from(["symmetric_difference", "simplified_hierarchical"]),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=40)
def test_edge_losses_of_any_labeling_add_up_to_its_loss(
    draws: list[int],
    scaling: Scaling,
    loss: Literal["symmetric_difference", "simplified_hierarchical"],
    seed: int,
) -> None:
    parents = [draw % (j + 1) - 1 for j, draw in enumerate(draws)]
    forest = Forest(np.array(parents))
    truth = np.random.default_rng(seed).random(len(parents)) < 0.5
    labelings = np.array(list(itertools.product([False, True], repeat=len(parents))))
    costs = forest.coefficients(scaling) if loss == "simplified_hierarchical" else np.ones(len(parents))
    by_edge = edge_losses(forest, truth[None, forest.order], loss, costs[forest.order])
    totals = (by_edge * indicators(forest, labelings[:, forest.order])).sum(axis=(1, 2))
    for labeling, total in zip(labelings, totals, strict=True):
        expected = (
            simplified_hierarchical_loss([truth], [labeling], parents, scaling)
            if loss == "simplified_hierarchical"
            else symmetric_difference_loss([truth], [labeling])
        )
        assert total == pytest.approx(expected, abs=1e-12)
    assert (by_edge >= 0).all()
    assert (by_edge * indicators(forest, truth[None, forest.order])).sum() == 0
