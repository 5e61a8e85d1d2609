"""Splits of a data set: a random test part, or stratified folds."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Ints, Labels


def random_split(n_examples: int, test_fraction: float, *, seed: int) -> Bools:
    """Draw a test part at random.

    Args:
        n_examples: number of examples, at least 2.
        test_fraction: fraction of the examples in the test part, above 0 and below 1. Both parts get at least
            one example.
        seed: seed of the random generator.

    Returns:
        (n_examples,) true for the examples of the test part.

    >>> int(random_split(10, 0.3, seed=0).sum())
    3
    """
    size = min(max(round(n_examples * test_fraction), 1), n_examples - 1)
    test = np.zeros(n_examples, dtype=bool)
    test[np.random.default_rng(seed).permutation(n_examples)[:size]] = True
    return test


def stratified_folds(Y: Labels, n_folds: int, *, seed: int) -> Ints:
    """Assign examples to folds of equal size in which every label is as frequent as in the whole set.

    Iterative stratification (Sechidis, Tsoumakas and Vlahavas 2011, algorithm 1). The label with the fewest
    unassigned examples is next; among equally rare labels, the first in label order. Each of its examples, in
    their order, goes to the fold that lacks the most examples of this label. Ties go to the fold that lacks
    the most examples in total, then to a random one. Examples without labels are assigned last.

    Args:
        Y: (g, k) label sets.
        n_folds: number of folds.
        seed: seed of the random generator.

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
    examples_lacking = np.full(n_folds, n_examples / n_folds)
    labels_lacking = np.repeat(remaining[:, np.newaxis] / n_folds, n_folds, axis=1)
    fold_of = np.full(n_examples, -1, dtype=np.int64)

    def assign(example: int, candidates: Ints) -> None:
        fold = int(candidates[0] if len(candidates) == 1 else rng.choice(candidates))
        labels = Y.indices[Y.indptr[example] : Y.indptr[example + 1]]
        fold_of[example] = fold
        examples_lacking[fold] -= 1
        labels_lacking[labels, fold] -= 1
        remaining[labels] -= 1

    while (remaining > 0).any():
        label = int(np.argmin(np.where(remaining > 0, remaining, n_examples + 1)))
        positives = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
        for example in positives[fold_of[positives] < 0]:
            candidates = _folds_with_maximum(labels_lacking[label], np.arange(n_folds))
            assign(int(example), _folds_with_maximum(examples_lacking, candidates))
    for example in np.flatnonzero(fold_of < 0):
        assign(int(example), _folds_with_maximum(examples_lacking, np.arange(n_folds)))
    return fold_of


def _folds_with_maximum(lacking: np.ndarray[tuple[int], np.dtype[np.float64]], candidates: Ints) -> Ints:
    values = lacking[candidates]
    return np.asarray(candidates[values == values.max()])
