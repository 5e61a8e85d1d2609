"""Max-sum decoding against the enumeration of all labelings, in forests of up to 12 nodes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.arrays import Bools, Floats
from models.hierarchy.decoding import best_labelings, indicators, max_marginals
from models.hierarchy.forest import Forest


@st.composite
def forests(draw: st.DrawFn) -> list[int]:
    return [draw(st.integers(-1, j - 1)) for j in range(draw(st.integers(1, 12)))]


def all_labelings(k: int) -> Bools:
    return np.array(list(itertools.product([False, True], repeat=k)))


def literal_value(forest: Forest, potentials: Floats, labelings: Bools) -> Floats:
    """Value of each labeling under the (4, k) potentials of one example, edge by edge."""
    total = np.zeros(len(labelings))
    for node, parent in enumerate(forest.parent_positions):
        parent_on = labelings[:, parent] if parent >= 0 else np.ones(len(labelings), dtype=np.bool_)
        total += potentials[2 * parent_on.astype(int) + labelings[:, node], node]
    return total


@given(forests(), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_best_labelings_and_max_marginals_are_those_of_brute_force(parents: list[int], seed: int) -> None:
    forest = Forest(np.array(parents))
    k = forest.n_labels
    potentials = np.random.default_rng(seed).normal(size=(3, 4, k))
    best, marginals = best_labelings(forest, potentials), max_marginals(forest, potentials)
    labelings = all_labelings(k)
    for i in range(len(potentials)):
        values = literal_value(forest, potentials[i], labelings)
        np.testing.assert_array_equal(best[i], labelings[np.argmax(values)])
        for node in range(k):
            on = labelings[:, node]
            assert marginals[i, node] == pytest.approx(values[on].max() - values[~on].max(), abs=1e-9)
    np.testing.assert_array_equal(marginals > 0, best)


@given(forests(), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_ties_decode_to_a_best_labeling(parents: list[int], seed: int) -> None:
    forest = Forest(np.array(parents))
    potentials = np.random.default_rng(seed).integers(-1, 2, size=(3, 4, forest.n_labels)).astype(float)
    best = best_labelings(forest, potentials)
    labelings = all_labelings(forest.n_labels)
    for i in range(len(potentials)):
        values = literal_value(forest, potentials[i], labelings)
        assert literal_value(forest, potentials[i], best[i : i + 1])[0] == values.max()


def test_a_node_with_equal_values_is_off() -> None:
    assert not best_labelings(Forest(np.array([-1, 0, 0])), np.zeros((1, 4, 3))).any()


@given(forests(), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_forbidden_edge_labelings_are_avoided(parents: list[int], seed: int) -> None:
    """Decoding on a face of the marginal polytope returns a labeling on that face."""
    rng = np.random.default_rng(seed)
    forest = Forest(np.array(parents))
    span = rng.random((3, forest.n_labels)) < 0.5
    allowed = indicators(forest, span).max(axis=0) > 0
    potentials = np.where(allowed, rng.normal(size=allowed.shape), -np.inf)
    best = best_labelings(forest, potentials[None])[0]
    values = literal_value(forest, potentials, all_labelings(forest.n_labels))
    assert literal_value(forest, potentials, best[None])[0] == pytest.approx(values.max(), abs=1e-12)


def test_indicators_mark_one_labeling_of_each_edge() -> None:
    forest = Forest(np.array([-1, 0]))
    marks = indicators(forest, np.array([[True, False], [False, True]]))
    np.testing.assert_array_equal(marks[0].T, [[0, 0, 0, 1], [0, 0, 1, 0]])  # for each edge: 00, 01, 10, 11
    np.testing.assert_array_equal(marks[1].T, [[0, 0, 1, 0], [0, 1, 0, 0]])


def test_a_forest_decodes_tree_by_tree() -> None:
    potentials = np.random.default_rng(0).normal(size=(4, 4, 5))
    both = max_marginals(Forest(np.array([-1, 0, 0, -1, 3])), potentials[:, :, [0, 3, 1, 2, 4]])
    first = max_marginals(Forest(np.array([-1, 0, 0])), potentials[:, :, :3])
    second = max_marginals(Forest(np.array([-1, 0])), potentials[:, :, 3:])
    np.testing.assert_allclose(both[:, [0, 2, 3]], first, atol=1e-12)
    np.testing.assert_allclose(both[:, [1, 4]], second, atol=1e-12)
