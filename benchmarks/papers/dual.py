"""Perceptrons in dual form, for many epochs with products of features, and for variants of learners.

The weights of a perceptron are a sum of training examples, w = Σ a_i x_i, so its inner products are Σ a_i
k(x_i, x) with a kernel k. With the kernel of ``products``, the results are those of the learners on all
products of two features, up to rounding. An epoch costs g² operations for each perceptron instead of g·r,
which is a hundredth for the 43,659 products of the scene data.

The variants are other kernels, a margin, and random ties (the paper's outlook, section VII).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from models.arrays import Bools, Floats
from models.perceptrons.mmp import update_sizes
from models.perceptrons.pairs import full_votes, pairs_of

Kernel = Callable[[Floats, Floats], Floats]


TIE = 1e-9
"""Largest number that random ties add to an inner product or subtract from it."""


@dataclass(frozen=True)
class Training:
    """How the perceptrons are trained.

    Attributes:
        epochs: number of epochs.
        shuffle: present the examples in a new random order in each epoch.
        seed: seed of the order and of random ties.
        margin: a perceptron is updated unless its inner product is on the right side by at least this number;
            MMP, unless each relevant label is above all irrelevant labels by more than this number.
        random_ties: equal numbers are ordered at random. Otherwise sgn(0) = +1, and in MMP irrelevant labels
            are above relevant labels.
    """

    epochs: int
    shuffle: bool = False
    seed: int = 0
    margin: float = 0.0
    random_ties: bool = False


def linear(X: Floats, Z: Floats) -> Floats:
    """Return (n, m) inner products."""
    return X @ Z.T


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


def scores(algorithm: str, kernel: Kernel, X: Floats, Y: Bools, X_test: Floats, training: Training) -> Floats:
    """Train a perceptron learner, and return the scores of other examples.

    Args:
        algorithm: ``mlpp``, ``mmp`` or ``binary_relevance_perceptron``.
        kernel: the kernel.
        X: (g, r) training examples.
        Y: (g, k) their labels.
        X_test: (n, r) other examples.
        training: how the perceptrons are trained.
    """
    with threadpool_limits(1):
        found = outputs(algorithm, kernel(X, X), Y, kernel(X_test, X), training)
    return votes(found, Y.shape[1]) if algorithm == "mlpp" else found


def outputs(algorithm: str, K: Floats, Y: Bools, K_test: Floats, training: Training) -> Floats:
    """Train the perceptrons of a learner, and return their inner products with other examples.

    Args:
        algorithm: ``mlpp``, ``mmp`` or ``binary_relevance_perceptron``.
        K: (g, g) kernel of the training examples.
        Y: (g, k) their labels.
        K_test: (n, g) kernel of other examples and the training examples.
        training: how the perceptrons are trained.

    Returns:
        (n, k), or (n, k(k-1)/2) in the order of the pairs for ``mlpp``.
    """
    rng = np.random.default_rng(training.seed)
    g, shuffle = len(K), training.shuffle
    orders = [rng.permutation(g).tolist() if shuffle else list(range(g)) for _ in range(training.epochs)]
    found = K_test @ _TRAINERS[algorithm](K, Y, orders, training, rng)
    return found + _jitter(found.shape, rng) if training.random_ties else found


def votes(products: Floats, k: int) -> Floats:
    """Return the votes of the k labels from the inner products of all pairs."""
    return full_votes(products, pairs_of(k), "max_wins")


def _jitter(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    return rng.uniform(-TIE, TIE, shape)


Orders = list[list[int]]


def _pairwise(K: Floats, Y: Bools, orders: Orders, training: Training, rng: np.random.Generator) -> Floats:
    pairs = pairs_of(Y.shape[1])
    first, second = Y[:, pairs.first], Y[:, pairs.second]
    return _independent(K, first, first != second, orders, training, rng)


def _one_per_label(
    K: Floats, Y: Bools, orders: Orders, training: Training, rng: np.random.Generator
) -> Floats:
    return _independent(K, Y, np.ones(Y.shape, dtype=np.bool_), orders, training, rng)


def _independent(
    K: Floats, positive: Bools, chosen: Bools, orders: Orders, training: Training, rng: np.random.Generator
) -> Floats:
    """Train perceptrons; an example trains those that are ``chosen``, towards +1 if ``positive``."""
    A = np.zeros(positive.T.shape)  # a row per perceptron, so that the rows of few perceptrons are read fast
    for i in itertools.chain(*orders):
        trained = chosen[i].nonzero()[0]
        output = A[trained] @ K[i]
        if training.random_ties:
            output += _jitter(output.shape, rng)
        up = positive[i, trained]
        wrong = (output >= 0) != up
        if training.margin:
            wrong |= np.abs(output) < training.margin
        A[trained[wrong], i] += np.where(up[wrong], 2.0, -2.0)
    return A.T


def _mmp(K: Floats, Y: Bools, orders: Orders, training: Training, rng: np.random.Generator) -> Floats:
    A = np.zeros(Y.shape)
    for i in itertools.chain(*orders):
        if Y[i].all() or not Y[i].any():
            continue
        s = np.einsum("i,ij->j", K[i], A)  # the same order of sums for all labels keeps exact ties
        if training.random_ties:
            s += _jitter(s.shape, rng)
        relevant = Y[i].nonzero()[0]
        reached = s[relevant] - training.margin
        irrelevant = ((s >= reached.min()) & ~Y[i]).nonzero()[0]
        if len(irrelevant):
            up, down = update_sizes(reached, s[irrelevant], "is_error", "uniform")
            A[i, relevant] += up
            A[i, irrelevant] -= down
    return A


_Trainer = Callable[[Floats, Bools, Orders, Training, np.random.Generator], Floats]

_TRAINERS: dict[str, _Trainer] = {
    "mlpp": _pairwise,
    "mmp": _mmp,
    "binary_relevance_perceptron": _one_per_label,
}
