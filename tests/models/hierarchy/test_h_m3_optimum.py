"""H-M3 finds the optimum of the whole program over all labelings: certificates by weak duality.

The tests turn the marginals of a training into dual variables α(x_i, y) of the program over all labelings,
and compute both objectives of the program literally from α. The dual objective of a feasible α is a lower
bound of the optimum, and the primal objective is an upper bound. If the two agree, α is optimal.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hierarchy_cases import KERNELS, StepLog, edge_labels, small_problem
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sparse_cases import features, frozen, noncanonical, problem_of

from models.arrays import AnyArray, Floats
from models.base import Context
from models.hierarchy.h_m3 import HM3

EDGE_LABELINGS = list(itertools.product([False, True], repeat=2))
"""(parent on, child on), in the order of the learner's marginals."""

LOSSES = [
    ("symmetric_difference", "uniform"),
    ("simplified_hierarchical", "uniform"),
    ("simplified_hierarchical", "sibling"),
    ("simplified_hierarchical", "subtree"),
]


def coefficients(parents: list[int], scaling: str) -> list[float]:
    """The c_j of "Scaling the loss". The roots of a forest share 1."""
    if scaling == "sibling":

        def shared(j: int) -> float:
            above = 1.0 if parents[j] < 0 else shared(parents[j])
            return above / parents.count(parents[j])

        return [shared(j) for j in range(len(parents))]
    if scaling == "subtree":

        def size(j: int) -> int:
            return 1 + sum(size(child) for child, parent in enumerate(parents) if parent == j)

        return [size(j) / len(parents) for j in range(len(parents))]
    return [1.0] * len(parents)


def symmetric_difference(true: AnyArray, y: AnyArray, parents: list[int], costs: list[float]) -> float:
    """ℓ_Δ ("How to measure loss?")."""
    return float(sum(a != b for a, b in zip(true, y, strict=True)))


def hierarchical(true: AnyArray, y: AnyArray, parents: list[int], costs: list[float]) -> float:
    """ℓ_H̃: a mistake costs c_j if the parent is right."""
    wrong = [a != b for a, b in zip(true, y, strict=True)]
    return sum(costs[j] for j, p in enumerate(parents) if wrong[j] and not (p >= 0 and wrong[p]))


class Program:
    """The quadratic program of the paper over all pseudo-examples (x_i, y).

    Args:
        X: (g, r) examples.
        Y: (g, k) their labels.
        parents: the parent of each label, -1 for a root.
        kernel: a name of ``KERNELS``.
        C: cost of the slacks.
        loss: ``symmetric_difference`` or ``simplified_hierarchical``.
        scaling: of the hierarchical loss.
    """

    def __init__(
        self, X: Floats, Y: AnyArray, parents: list[int], kernel: str, C: float, loss: str, scaling: str
    ) -> None:
        self.X, self.parents, self.kernel, self.C = X, parents, KERNELS[kernel], C
        self.labelings = np.array(list(itertools.product([0, 1], repeat=len(parents))))
        # φ(x, y) is φ(x) times these indicators of y's edge labelings ("Feature vectors").
        self.indicators = np.array([self.indicator(y) for y in self.labelings])
        self.differences = np.array([[self.indicator(y) - z for z in self.indicators] for y in Y])
        self.gram = np.array([[self.kernel(x, z) for z in X] for x in X])
        costs = coefficients(parents, scaling)
        literal_loss = {"symmetric_difference": symmetric_difference, "simplified_hierarchical": hierarchical}
        self.losses = np.array(
            [[literal_loss[loss](true, y, parents, costs) for y in self.labelings] for true in Y]
        )

    def indicator(self, y: AnyArray) -> Floats:
        """(4k,) which labeling each edge has."""
        marks = np.zeros((len(self.parents), 4))
        for j, labels in enumerate(edge_labels(self.parents, y)):
            marks[j, EDGE_LABELINGS.index(labels)] = 1
        return marks.ravel()

    def dual_variables(self, marginals: Floats) -> Floats:
        """α (g, number of labelings) with the edge marginals (g, 4, k) μ_e(x_i, y_e), edges by child label.

        "If two edges share a node j, it is necessary and sufficient to have equal node-marginals μ_j": then a
        tree has α(y) = C Π_e μ_e(y_e) / μ_parent(e)(y_parent(e)).
        """
        alpha = np.full((len(marginals), len(self.labelings)), self.C)
        by_parent = marginals.reshape(len(marginals), 2, 2, -1).sum(axis=2)
        for n, y in enumerate(self.labelings):
            for j, labels in enumerate(edge_labels(self.parents, y)):
                parent = by_parent[:, int(labels[0]), j]
                edge = marginals[:, EDGE_LABELINGS.index(labels), j]
                alpha[:, n] *= np.divide(edge, parent, out=np.zeros_like(edge), where=parent > 0)
        return alpha

    def weights(self, alpha: Floats) -> Floats:
        """(g, 4k) ν_i = Σ_y α(x_i, y) (1[y_i] − 1[y]), so that w = Σ_i φ(x_i) ⊗ ν_i."""
        return np.asarray(np.einsum("in,ine->ie", alpha, self.differences))

    def dual(self, alpha: Floats) -> float:
        """Σ α ℓ − ½ Σ Σ α K α ("Dual problem")."""
        weights = self.weights(alpha)
        return float((alpha * self.losses).sum() - 0.5 * np.einsum("ij,ie,je->", self.gram, weights, weights))

    def primal(self, alpha: Floats) -> float:
        """½‖w‖² + C Σ_i ξ_i, each slack the largest violation of its constraints ("Primal problem")."""
        weights = self.weights(alpha)
        margins = np.einsum("ij,je,ine->in", self.gram, weights, self.differences)
        slacks = (self.losses - margins).max(axis=1)
        squared_norm = np.einsum("ij,ie,je->", self.gram, weights, weights)
        return float(0.5 * squared_norm + self.C * slacks.sum())

    def scores(self, alpha: Floats, x: Floats) -> list[float]:
        """For each label the best labeling with it on minus the best with it off, of one example."""
        values = self.indicators @ (np.array([self.kernel(x, z) for z in self.X]) @ self.weights(alpha))
        on = self.labelings == 1
        return [values[on[:, j]].max() - values[~on[:, j]].max() for j in range(len(self.parents))]


def assert_trained_to(gap: float, program: Program, learner: HM3, log: StepLog, points: Floats) -> None:
    """Assert that a training reported its true objectives and ended within a relative gap of the optimum."""
    bounds = []
    for state in log.states:
        marginals = state["marginals"][:, :, learner.forest_.positions]
        alpha = program.dual_variables(marginals)
        # α is feasible and has these marginals, so they lie on the marginal polytope.
        assert (alpha >= 0).all()
        np.testing.assert_allclose(alpha.sum(axis=1), program.C, rtol=1e-9)
        by_edge = marginals.transpose(0, 2, 1).reshape(len(marginals), -1)
        np.testing.assert_allclose(alpha @ program.indicators, by_edge, rtol=0, atol=1e-9 * program.C)
        bounds.append((program.dual(alpha), program.primal(alpha)))
    dual, primal = np.array(bounds).T
    tolerance = 1e-9 * (1 + primal[-1])
    np.testing.assert_allclose(log.measures("dual"), dual, rtol=1e-9, atol=tolerance)
    np.testing.assert_allclose(log.measures("primal"), primal, rtol=1e-9, atol=tolerance)
    np.testing.assert_allclose(log.measures("gap"), (primal - dual) / primal, rtol=0, atol=1e-9)
    assert (np.diff(dual) >= -tolerance).all()
    assert primal[-1] - dual[-1] <= gap * primal[-1]
    expected = [program.scores(alpha, x) for x in points]
    np.testing.assert_allclose(learner.decision_function(points), expected, rtol=1e-9, atol=tolerance)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 3),
    st.sampled_from(sorted(KERNELS)),
    st.sampled_from(LOSSES),
    st.sampled_from([0.1, 1.0, 3.0]),
)
@settings(max_examples=25)
@example(seed=99805563, k=3, kernel="linear", trained_for=("simplified_hierarchical", "uniform"), C=1.0)
def test_training_converges_to_the_optimum_of_the_whole_program(
    seed: int, k: int, kernel: str, trained_for: tuple[str, str], C: float
) -> None:
    X, Y, parents = small_problem(seed, k)
    loss, scaling = trained_for
    log = StepLog()
    learner = HM3(C=C, loss=loss, scaling=scaling, kernel=kernel, gap=1e-5, passes=500)
    learner.fit_problem(problem_of(X, Y, Context(parents=np.array(parents))), monitor=log)
    points = np.vstack([X, np.random.default_rng(seed).normal(size=(2, 3))])
    assert_trained_to(1e-4, Program(X, Y, parents, kernel, C, loss, scaling), learner, log, points)


@pytest.mark.parametrize("loss", ["symmetric_difference", "simplified_hierarchical"])
def test_a_tree_of_six_nodes_reaches_the_optimum(loss: str) -> None:
    X, Y, _ = small_problem(7, 6, g=2)
    parents = [-1, 0, 0, 1, 1, 3]
    log = StepLog()
    learner = HM3(loss=loss, gap=1e-6, passes=3000)
    learner.fit_problem(problem_of(X, Y, Context(parents=np.array(parents))), monitor=log)
    assert_trained_to(1e-6, Program(X, Y, parents, "linear", 1.0, loss, "uniform"), learner, log, X)


@given(
    st.data(),
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.integers(1, 5),
    st.sampled_from(sorted(KERNELS)),
    st.sampled_from(LOSSES),
)
@settings(max_examples=20)
def test_rare_equal_and_unsorted_columns(
    data: st.DataObject, seed: int, g: int, r: int, kernel: str, trained_for: tuple[str, str]
) -> None:
    _, Y, parents = small_problem(seed, 3, g)
    X = data.draw(features(g, r))
    loss, scaling = trained_for
    log = StepLog()
    learner = HM3(C=0.3, loss=loss, scaling=scaling, kernel=kernel, gap=1e-3, passes=500)
    learner.fit_problem(
        problem_of(
            frozen(noncanonical(X, seed)),
            frozen(noncanonical(Y, seed, duplicates=False)),
            Context(parents=np.array(parents)),
        ),
        monitor=log,
    )
    assert_trained_to(1e-3, Program(X, Y, parents, kernel, 0.3, loss, scaling), learner, log, X)
