"""Shared problems and helpers of the tests of H-M3."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Floats
from models.base import Context, State, Step

KERNELS: dict[str, Any] = {
    "linear": lambda x, z: x @ z,
    "polynomial": lambda x, z: (x @ z + 1) ** 2,
    "rbf": lambda x, z: np.exp(-((x - z) @ (x - z))),
}
"""The kernels, with their default parameters, as functions of two examples."""


@dataclass
class StepLog:
    """A monitor that stores every step of a training, and a snapshot after each step."""

    steps: list[Step] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    def __call__(self, step: Step) -> None:
        self.steps.append(step)
        self.states.append(step.snapshot())

    def measures(self, name: str) -> Floats:
        """Return the values of a measure at all steps, in order."""
        return np.array([step.measures[name] for step in self.steps])


def edge_labels(parents: list[int], y: AnyArray) -> list[tuple[bool, bool]]:
    """Return (parent is on, child is on) for every edge; the parent of a root is always on."""
    return [(bool(y[p]) if p >= 0 else True, bool(y[j])) for j, p in enumerate(parents)]


def small_problem(seed: int, k: int, g: int = 3) -> tuple[Floats, AnyArray, list[int]]:
    """Return X (g, 3), Y (g, k) and the parents of a random forest."""
    rng = np.random.default_rng(seed)
    parents = [int(rng.integers(-1, j)) for j in range(k)]
    X = rng.normal(size=(g, 3)) * (rng.random((g, 3)) < 0.8)
    return X, (rng.random((g, k)) < 0.5).astype(int), parents


def larger_problem() -> tuple[csr_array[Any, tuple[int, int]], AnyArray, Context]:
    """Return 150 examples with 12 features and 7 noisy labels in two trees."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12)) * (rng.random((150, 12)) < 0.5)
    parents = np.array([4, -1, 1, 1, 1, 4, -1])
    Y = (X @ rng.normal(size=(12, 7)) + rng.normal(size=(150, 7)) > 0).astype(int)
    return csr_array(X), Y, Context(parents=parents)
