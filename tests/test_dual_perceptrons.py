"""The dual form of the perceptrons in the papers' scripts gives the results of the learners and of loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from benchmarks.papers import dual
from models.arrays import Bools, Floats
from models.perceptrons import MLPP, MMP, BinaryRelevancePerceptron

LEARNERS: dict[str, Any] = {
    "mlpp": MLPP,
    "mmp": MMP,
    "binary_relevance_perceptron": BinaryRelevancePerceptron,
}


def problem(seed: int = 0) -> tuple[Floats, Bools, Floats]:
    rng = np.random.default_rng(seed)
    relevant = rng.random((30, 4)) < 0.4
    return rng.normal(size=(30, 5)), relevant, rng.normal(size=(10, 5))


@pytest.mark.parametrize("margin", [0.0, 1.5])
@pytest.mark.parametrize("algorithm", LEARNERS)
def test_the_linear_kernel_gives_the_scores_of_the_learner(algorithm: str, margin: float) -> None:
    X, Y, others = problem()
    found = dual.scores(algorithm, dual.linear, X, Y, others, dual.Training(epochs=3, margin=margin))
    learner = LEARNERS[algorithm](epochs=3, margin=margin).fit(X, Y.astype(np.int64))
    np.testing.assert_allclose(found, learner.decision_function(others), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("algorithm", LEARNERS)
def test_the_kernel_of_products_gives_the_scores_of_the_learner_on_all_products(algorithm: str) -> None:
    X, Y, others = problem(1)

    def mapped(Z: Floats) -> Floats:
        pairs = [Z[:, a] * Z[:, b] for a in range(5) for b in range(a, 5)]
        return np.column_stack([Z, *pairs])

    found = dual.scores(algorithm, dual.products, X, Y, others, dual.Training(epochs=2))
    learner = LEARNERS[algorithm](epochs=2).fit(mapped(X), Y.astype(np.int64))
    np.testing.assert_allclose(found, learner.decision_function(mapped(others)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("margin", [0.0, 1.5])
def test_a_kernel_and_a_margin_are_those_of_loops(margin: float) -> None:
    X, Y, others = problem(2)
    gamma = 0.3

    def k(x: Floats, z: Floats) -> float:
        return math.exp(-gamma * sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))

    alpha = [[0.0] * 4 for _ in X]
    for _ in range(2):
        for i, x in enumerate(X):
            for c in range(4):
                output = sum(alpha[n][c] * k(z, x) for n, z in enumerate(X))
                y = 1 if Y[i, c] else -1
                if (1 if output >= 0 else -1) != y or y * output < margin:
                    alpha[i][c] += 2 * y
    expected = [[sum(alpha[n][c] * k(z, x) for n, z in enumerate(X)) for c in range(4)] for x in others]
    training = dual.Training(epochs=2, margin=margin)
    found = dual.scores("binary_relevance_perceptron", dual.rbf(gamma), X, Y, others, training)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_margin_of_mmp_separates_the_labels_by_it() -> None:
    X, Y = np.eye(4), np.eye(4, dtype=np.bool_)
    for margin in (0.0, 3.0):
        s = dual.scores("mmp", dual.linear, X, Y, X, dual.Training(epochs=20, margin=margin))
        for row, relevant in zip(s, Y, strict=True):
            assert row[relevant].min() - row[~relevant].max() > margin


@pytest.mark.parametrize(
    ("algorithm", "plain", "at_random"),
    [
        ("mmp", {(1.0, -1.0)}, {(1.0, -1.0), (0.0, 0.0)}),
        ("binary_relevance_perceptron", {(0.0, -2.0)}, {(a, b) for a in (0.0, 2.0) for b in (0.0, -2.0)}),
    ],
)
def test_random_ties_decide_about_the_first_example(
    algorithm: str, plain: set[tuple[float, float]], at_random: set[tuple[float, float]]
) -> None:
    X, Y = np.array([[1.0]]), np.array([[True, False]])
    for random_ties, expected in ((False, plain), (True, at_random)):
        found = set()
        for seed in range(30):
            training = dual.Training(epochs=1, seed=seed, random_ties=random_ties)
            (row,) = dual.scores(algorithm, dual.linear, X, Y, X, training)
            found.add(tuple(round(score, 6) + 0.0 for score in row.tolist()))
        assert found == expected
