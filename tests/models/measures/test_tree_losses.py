"""The tree losses, compared with literal implementations of the paper's sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from models.errors import ParameterError
from models.hierarchy.forest import Forest, Scaling
from models.measures.tree import (
    hierarchical_loss,
    simplified_hierarchical_loss,
    symmetric_difference_loss,
    zero_one_loss,
)

SCALINGS: tuple[Scaling, ...] = ("uniform", "sibling", "subtree")


@st.composite
def forests(draw: st.DrawFn, max_nodes: int = 9) -> list[int]:
    """Parents of a random forest whose labels are in random order."""
    k = draw(st.integers(1, max_nodes))
    parents = [draw(st.integers(-1, j - 1)) for j in range(k)]
    names = draw(st.permutations(range(k)))
    renamed = [-1] * k
    for child, parent in enumerate(parents):
        renamed[names[child]] = -1 if parent < 0 else names[parent]
    return renamed


def coefficient(parents: list[int], j: int, scaling: Scaling) -> float:
    if scaling == "uniform":
        return 1.0
    if scaling == "sibling":
        share = 1.0 if parents[j] < 0 else coefficient(parents, parents[j], scaling)
        return share / parents.count(parents[j])

    def size(node: int) -> int:
        return 1 + sum(size(child) for child in range(len(parents)) if parents[child] == node)

    return size(j) / len(parents)


def ancestors(parents: list[int], j: int) -> list[int]:
    return [] if parents[j] < 0 else [parents[j], *ancestors(parents, parents[j])]


@given(forests(), st.integers(0, 2**32 - 1), st.sampled_from(SCALINGS))
@settings(max_examples=50, deadline=None)
def test_losses_agree_with_the_sums_of_the_paper(parents: list[int], seed: int, scaling: Scaling) -> None:
    rng = np.random.default_rng(seed)
    true, predicted = rng.integers(0, 2, (2, 5, len(parents)))
    zero_one = symmetric = hierarchical = simplified = 0.0
    for y, z in zip(true, predicted, strict=True):
        zero_one += float(any(y != z))
        for j in range(len(parents)):
            c, above = coefficient(parents, j, scaling), ancestors(parents, j)
            symmetric += float(y[j] != z[j])
            hierarchical += c * (y[j] != z[j] and all(y[i] == z[i] for i in above))
            simplified += c * (y[j] != z[j] and all(y[i] == z[i] for i in above[:1]))
    assert zero_one_loss(true, predicted) == pytest.approx(zero_one / 5, abs=1e-12)
    assert symmetric_difference_loss(true, predicted) == pytest.approx(symmetric / 5, abs=1e-12)
    assert hierarchical_loss(true, predicted, parents, scaling) == pytest.approx(hierarchical / 5, abs=1e-12)
    assert simplified_hierarchical_loss(true, predicted, parents, scaling) == pytest.approx(
        simplified / 5, abs=1e-12
    )
    sparse = csr_array(true.astype(np.int8))
    assert hierarchical_loss(sparse, predicted, parents, scaling) == hierarchical_loss(
        true, predicted, parents, scaling
    )


def test_subtree_scaling_measures_the_unreachable_part_of_the_tree() -> None:
    """ "The proportion of the tree not reachable from the root when we stop before the first mistake"."""
    # 0 has the children 1 and 2; 1 has the children 3 and 4. The mistake at 1 cuts off three of five nodes.
    parents = [-1, 0, 0, 1, 1]
    assert hierarchical_loss([[1, 1, 0, 1, 0]], [[1, 0, 0, 1, 1]], parents, "subtree") == pytest.approx(3 / 5)
    # The mistake at 4 below the mistake at 1 has no cost in either hierarchical loss.
    assert simplified_hierarchical_loss(
        [[1, 1, 0, 1, 0]], [[1, 0, 0, 1, 1]], parents, "subtree"
    ) == pytest.approx(3 / 5)
    assert symmetric_difference_loss([[1, 1, 0, 1, 0]], [[1, 0, 0, 1, 1]]) == 2


def test_the_simplified_loss_counts_mistakes_below_a_correct_node_again() -> None:
    chain = [-1, 0, 1]
    assert hierarchical_loss([[1, 1, 1]], [[0, 1, 0]], chain) == 1
    assert simplified_hierarchical_loss([[1, 1, 1]], [[0, 1, 0]], chain) == 2


def test_sibling_scaling_shares_the_parents_coefficient() -> None:
    assert Forest(np.array([-1, -1, 0, 0, 2])).coefficients("sibling").tolist() == [
        0.5,
        0.5,
        0.25,
        0.25,
        0.25,
    ]


@given(forests(), st.integers(0, 2**32 - 1), st.sampled_from(SCALINGS))
@settings(max_examples=25, deadline=None)
def test_losses_are_ordered(parents: list[int], seed: int, scaling: Scaling) -> None:
    true, predicted = np.random.default_rng(seed).integers(0, 2, (2, 4, len(parents)))
    simplified = simplified_hierarchical_loss(true, predicted, parents, scaling)
    assert hierarchical_loss(true, predicted, parents, scaling) <= simplified + 1e-12
    assert simplified <= symmetric_difference_loss(true, predicted) + 1e-12
    assert zero_one_loss(true, predicted) <= symmetric_difference_loss(true, predicted)


def test_without_examples_the_loss_is_undefined() -> None:
    assert np.isnan(zero_one_loss(np.zeros((0, 2)), np.zeros((0, 2))))


def test_different_shapes_are_rejected() -> None:
    with pytest.raises(ValueError, match="have the shape"):
        zero_one_loss([[1, 0]], [[1]])


@pytest.mark.parametrize("parents", [[1, 0], [0], [2, -1], [-2]])
def test_parents_that_are_not_a_forest_are_rejected(parents: list[int]) -> None:
    with pytest.raises(ParameterError):
        Forest(np.array(parents))
