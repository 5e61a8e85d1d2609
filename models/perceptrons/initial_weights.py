"""Weights of perceptrons before the first example."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from models.arrays import AnyArray

Initial: TypeAlias = Literal["zeros", "random"]

DEVIATION = 1e-3
"""Standard deviation of random weights, small compared to an update of features of unit length."""


def initial_weights(shape: tuple[int, int], dtype: Any, initial: Initial, seed: tuple[int, ...]) -> AnyArray:
    """Return zeros, or random weights from a normal distribution with standard deviation 1e-3.

    With random weights, a perceptron without examples has no preference for one side, and inner products are
    never exactly 0. With zeros, sgn(0) = +1 always prefers the same side.

    Args:
        shape: (features, perceptrons).
        dtype: float64 or float32.
        initial: ``zeros`` or ``random``.
        seed: seed of the random weights. It must differ between the first labels and labels that are added
            later, which must not start from the same weights.
    """
    if initial == "zeros":
        return np.zeros(shape, dtype=dtype)
    weights = np.random.default_rng(seed).standard_normal(shape, dtype=dtype)
    weights *= DEVIATION
    return weights
