"""Weights of examples, in the forms in which scikit-learn's tools pass them."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arrays import Floats


def as_weights(sample_weight: Any, n: int) -> Floats | None:
    """Return (n,) weights of examples; None if all count once.

    Args:
        sample_weight: (n,) weights, one number for all, or None.
        n: number of examples.

    Raises:
        ValueError: the number of weights differs, or one is negative or not finite.

    >>> as_weights([2, 0], 2).tolist()
    [2.0, 0.0]
    """
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, weights)
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if weights.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n,)}!")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError("a weight must be a finite number that is not negative")
    return weights
