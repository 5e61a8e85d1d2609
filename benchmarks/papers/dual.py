"""Perceptrons in dual form, for many epochs with products of features, and for kernels, as a study.

The weights of a perceptron are a sum of training examples, w = Σ a_i x_i, so its inner products are Σ a_i k(x_i, x)
with a kernel k. With the kernel of ``products``, the results are those of the learners on all products of two
features, up to rounding. An epoch costs g² operations for each perceptron instead of g·r, which is a hundredth for
the 43,659 products of the scene data.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from models.arrays import Bools, Floats
from models.perceptrons.mmp import update_sizes
from models.perceptrons.pairs import full_votes, pairs_of

Kernel = Callable[[Floats, Floats], Floats]


def products(X: Floats, Z: Floats) -> Floats:
    """Return (n, m) inner products of all features and all products of two features, squares included."""
    inner = X @ Z.T
    return np.asarray(inner + (inner**2 + (X**2) @ (Z**2).T) / 2)


def rbf(gamma: float) -> Kernel:
    """Return the kernel exp(-γ|x - z|²)."""

    def kernel(X: Floats, Z: Floats) -> Floats:
        distance = (X**2).sum(axis=1)[:, np.newaxis] + (Z**2).sum(axis=1) - 2 * X @ Z.T
        return np.asarray(np.exp(-gamma * np.maximum(distance, 0)))

    return kernel


def scores(
    algorithm: str,
    kernel: Kernel,
    X: Floats,
    Y: Bools,
    X_test: Floats,
    *,
    epochs: int,
    seed: int | None = None,
) -> Floats:
    """Train a perceptron learner, and return the scores of other examples.

    Args:
        algorithm: ``mlpp``, ``mmp`` or ``binary_relevance_perceptron``.
        kernel: the kernel.
        X: (g, r) training examples.
        Y: (g, k) their labels.
        X_test: (n, r) other examples.
        epochs: number of epochs.
        seed: seed of the order of the examples in each epoch; None for the order of the rows.
    """
    rng = None if seed is None else np.random.default_rng(seed)
    with threadpool_limits(1):
        K = kernel(X, X)
        trained = _TRAINERS[algorithm](K, Y, epochs, rng)
        outputs = kernel(X_test, X) @ trained
    return full_votes(outputs, pairs_of(Y.shape[1]), "max_wins") if algorithm == "mlpp" else outputs


def _orders(g: int, epochs: int, rng: np.random.Generator | None) -> list[list[int]]:
    return [list(range(g)) if rng is None else rng.permutation(g).tolist() for _ in range(epochs)]


def _pairwise(K: Floats, Y: Bools, epochs: int, rng: np.random.Generator | None) -> Floats:
    pairs = pairs_of(Y.shape[1])
    first, second = Y[:, pairs.first], Y[:, pairs.second]
    chosen = first != second
    return _independent(K, first, chosen, epochs, rng)


def _one_per_label(K: Floats, Y: Bools, epochs: int, rng: np.random.Generator | None) -> Floats:
    return _independent(K, Y, np.ones(Y.shape, dtype=np.bool_), epochs, rng)


def _independent(
    K: Floats, positive: Bools, chosen: Bools, epochs: int, rng: np.random.Generator | None
) -> Floats:
    """Train perceptrons; an example trains those that are ``chosen``, towards +1 if ``positive``."""
    A = np.zeros(positive.shape)
    for order in _orders(len(K), epochs, rng):
        for i in order:
            output = K[i] @ A
            wrong = ((output >= 0) != positive[i]) & chosen[i]
            A[i] += np.where(wrong, np.where(positive[i], 2.0, -2.0), 0.0)
    return A


def _mmp(K: Floats, Y: Bools, epochs: int, rng: np.random.Generator | None) -> Floats:
    A = np.zeros(Y.shape)
    for order in _orders(len(K), epochs, rng):
        for i in order:
            if Y[i].all() or not Y[i].any():
                continue
            s = np.einsum("i,ij->j", K[i], A)  # the same order of sums for all labels keeps exact ties
            relevant = Y[i].nonzero()[0]
            irrelevant = ((s >= s[relevant].min()) & ~Y[i]).nonzero()[0]
            if len(irrelevant):
                up, down = update_sizes(s[relevant], s[irrelevant], "is_error", "uniform")
                A[i, relevant] += up
                A[i, irrelevant] -= down
    return A


_TRAINERS: dict[str, Callable[[Floats, Bools, int, np.random.Generator | None], Floats]] = {
    "mlpp": _pairwise,
    "mmp": _mmp,
    "binary_relevance_perceptron": _one_per_label,
}
