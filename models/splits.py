"""Splits of a data set: at random, or in folds that share every label out evenly."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Ints, Labels


def random_split(n_examples: int, test_fraction: float, *, seed: int) -> Bools:
    """A test part drawn at random.

    Args:
        n_examples: how many examples there are, at least 2.
        test_fraction: the share of the test part, above 0 and below 1. Both parts get an example at least.
        seed: the draw's seed.

    Returns:
        (n_examples,) true in the test part.

    >>> int(random_split(10, 0.3, seed=0).sum())
    3
    """
    size = min(max(round(n_examples * test_fraction), 1), n_examples - 1)
    test = np.zeros(n_examples, dtype=bool)
    test[np.random.default_rng(seed).permutation(n_examples)[:size]] = True
    return test


def stratified_folds(Y: Labels, n_folds: int, *, seed: int) -> Ints:
    """Folds of equal size in which every label is as frequent as in the whole.

    Iterative stratification (Sechidis, Tsoumakas and Vlahavas 2011, algorithm 1): the rarest label that
    still has unassigned examples is shared out first, each of its examples to the fold that lacks most of
    the label, then to the one that lacks most examples, then at random. Examples without labels fill up.
    Equally rare labels go in label order, a label's examples in theirs.

    Args:
        Y: (g, k) label sets.
        n_folds: how many folds.
        seed: the seed of what is left to chance.

    Returns:
        (g,) the fold of each example, 0 … n_folds − 1.

    >>> from scipy.sparse import csr_array
    >>> folds = stratified_folds(csr_array([[1], [1], [1], [0], [0], [0]]), 3, seed=0)
    >>> sorted(folds[:3].tolist()), sorted(folds[3:].tolist())
    ([0, 1, 2], [0, 1, 2])
    """
    rng = np.random.default_rng(seed)
    n_examples, n_labels = Y.shape
    columns = Y.tocsc()
    remaining = np.bincount(Y.indices, minlength=n_labels).astype(np.int64)
    examples_wanted = np.full(n_folds, n_examples / n_folds)
    labels_wanted = np.repeat(remaining[:, np.newaxis] / n_folds, n_folds, axis=1)
    fold_of = np.full(n_examples, -1, dtype=np.int64)

    def assign(example: int, candidates: Ints) -> None:
        fold = int(candidates[0] if len(candidates) == 1 else rng.choice(candidates))
        labels = Y.indices[Y.indptr[example] : Y.indptr[example + 1]]
        fold_of[example] = fold
        examples_wanted[fold] -= 1
        labels_wanted[labels, fold] -= 1
        remaining[labels] -= 1

    while (remaining > 0).any():
        label = int(np.argmin(np.where(remaining > 0, remaining, n_examples + 1)))
        having = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
        for example in having[fold_of[having] < 0]:
            lacking = _largest(labels_wanted[label], np.arange(n_folds))
            assign(int(example), _largest(examples_wanted, lacking))
    for example in np.flatnonzero(fold_of < 0):
        assign(int(example), _largest(examples_wanted, np.arange(n_folds)))
    return fold_of


def _largest(wanted: np.ndarray[tuple[int], np.dtype[np.float64]], among: Ints) -> Ints:
    values = wanted[among]
    return np.asarray(among[values == values.max()])
