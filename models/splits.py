"""Splits of a data set: stratified parts and stratified folds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.arrays import Floats, Ints, Labels

TRAINING = 0
"""The number of the training part in the result of :func:`stratified_split`."""

SPLIT_REVISION = 2
"""Incremented if :func:`stratified_split` draws other parts than before from the same seed."""


def stratified_split(Y: Labels, fractions: Sequence[float], *, seed: int) -> Ints:
    """Draw held-out parts in which every label is about as frequent as in the whole set.

    Iterative stratification as in :func:`stratified_folds`, with parts of different sizes, of the examples in
    a random order. It keeps the frequencies of labels, but not the sizes of the parts. So examples are then
    moved between the parts, those with the most frequent labels first, until each part has its size. Every
    label keeps an example in the training part, even if a held-out part is then too small, unless the part
    would be empty.

    Args:
        Y: (g, k) label sets, g at least the number of parts.
        fractions: fraction of the examples in each held-out part; their sum is below 1. A part whose fraction
            is above 0 gets at least one example, and so does the training part.
        seed: seed of the random generator.

    Returns:
        (g,) the part of each example: ``TRAINING``, or 1 + the index of its fraction.

    >>> from scipy.sparse import csr_array
    >>> Y = csr_array([[1, 0]] * 8 + [[0, 1]] * 2)
    >>> parts = stratified_split(Y, [0.2], seed=0)
    >>> int((parts == 1).sum()), int((parts[:8] == 1).sum()), int((parts[8:] == 0).sum())
    (2, 2, 2)
    """
    rng = np.random.default_rng(seed)
    sizes = part_sizes(Y.shape[0], fractions)
    wanted = np.array([1.0 - sum(fractions), *fractions])
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    order = rng.permutation(Y.shape[0])  # stratification alone uses the seed only for ties
    Y = Y[order]
    shuffled = _stratify(Y, Y.shape[0] * wanted, counts[:, np.newaxis] * wanted, rng)
    _give_training_examples(Y, shuffled)
    _move_to_sizes(Y, shuffled, sizes, rng)
    part_of = np.empty_like(shuffled)
    part_of[order] = shuffled
    return part_of


def part_sizes(n_examples: int, fractions: Sequence[float]) -> list[int]:
    """Return the number of examples of the training part and of each held-out part.

    >>> part_sizes(10, [0.25, 0.0]), part_sizes(3, [0.01, 0.9])
    ([8, 2, 0], [1, 1, 1])
    """
    held_out = [max(round(n_examples * fraction), 1) if fraction else 0 for fraction in fractions]
    while sum(held_out) >= n_examples and max(held_out) > 1:
        held_out[held_out.index(max(held_out))] -= 1
    return [n_examples - sum(held_out), *held_out]


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
    n_examples, n_labels = Y.shape
    counts = np.bincount(Y.indices, minlength=n_labels)
    return _stratify(
        Y,
        np.full(n_folds, n_examples / n_folds),
        np.repeat(counts[:, np.newaxis] / n_folds, n_folds, axis=1),
        np.random.default_rng(seed),
    )


def _stratify(Y: Labels, examples: Floats, labels: Floats, rng: np.random.Generator) -> Ints:
    """Assign examples to parts by iterative stratification; see :func:`stratified_folds`.

    The loop over examples works on lists of Python, which is several times faster than NumPy for a few
    numbers.

    Args:
        Y: (g, k) label sets.
        examples: (p,) the wanted number of examples of each part.
        labels: (k, p) the wanted number of examples of each label in each part.
        rng: breaks ties.

    Returns:
        (g,) the part of each example.
    """
    columns = Y.tocsc()
    remaining = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int64)
    examples_lacking: list[float] = examples.tolist()
    labels_lacking: list[list[float]] = labels.tolist()
    part_of = np.full(Y.shape[0], -1, dtype=np.int64)

    def assign(example: int, candidates: Sequence[int]) -> None:
        most = max(examples_lacking[part] for part in candidates)
        candidates = [part for part in candidates if examples_lacking[part] == most]
        part = candidates[0 if len(candidates) == 1 else int(rng.integers(len(candidates)))]
        part_of[example] = part
        examples_lacking[part] -= 1
        of_example = Y.indices[Y.indptr[example] : Y.indptr[example + 1]]
        remaining[of_example] -= 1
        for label in of_example.tolist():
            labels_lacking[label][part] -= 1

    while (remaining > 0).any():
        label = int(np.argmin(np.where(remaining > 0, remaining, Y.shape[0] + 1)))
        positives = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
        lacking = labels_lacking[label]
        for example in positives[part_of[positives] < 0].tolist():
            most = max(lacking)
            assign(example, [part for part, value in enumerate(lacking) if value == most])
    for example in np.flatnonzero(part_of < 0).tolist():
        assign(example, range(len(examples_lacking)))
    return part_of


def _give_training_examples(Y: Labels, part_of: Ints) -> None:
    """Move the first example of every label that has no training example to the training part, in place."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    in_training = np.bincount(Y[part_of == TRAINING].indices, minlength=Y.shape[1])
    missing = np.flatnonzero((counts > 0) & (in_training == 0))
    columns = Y.tocsc()
    for label in missing[np.argsort(counts[missing], kind="stable")].tolist():
        if not in_training[label]:
            example = int(columns.indices[columns.indptr[label]])
            part_of[example] = TRAINING
            in_training[Y.indices[Y.indptr[example] : Y.indptr[example + 1]]] += 1


def _move_to_sizes(Y: Labels, part_of: Ints, sizes: Sequence[int], rng: np.random.Generator) -> None:
    """Move examples from parts that are too large to parts that are too small, in place.

    Args:
        Y: (g, k) label sets.
        part_of: (g,) the part of each example.
        sizes: the wanted number of examples of each part.
        rng: breaks ties.
    """
    lacking = [
        size - count
        for size, count in zip(sizes, np.bincount(part_of, minlength=len(sizes)).tolist(), strict=True)
    ]
    if not any(lacking):
        return
    in_training = np.bincount(Y[part_of == TRAINING].indices, minlength=Y.shape[1])
    order = _by_rarest_label(Y, rng)
    for example in order.tolist():
        source = int(part_of[example])
        if lacking[source] >= 0:
            continue
        labels = Y.indices[Y.indptr[example] : Y.indptr[example + 1]]
        if source == TRAINING and (in_training[labels] == 1).any():
            continue
        _move(part_of, lacking, example)
        if source == TRAINING:
            in_training[labels] -= 1
    for part, size in enumerate(sizes):
        if size and lacking[part] == size:  # all other examples are the only ones of a label
            example = next(example for example in order.tolist() if lacking[int(part_of[example])] < 0)
            _move(part_of, lacking, example)


def _move(part_of: Ints, lacking: list[int], example: int) -> None:
    target = lacking.index(max(lacking))
    lacking[int(part_of[example])] += 1
    lacking[target] -= 1
    part_of[example] = target


def _by_rarest_label(Y: Labels, rng: np.random.Generator) -> Ints:
    """Return the examples ordered by the frequency of their rarest label, the most frequent first."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    rarest = np.full(Y.shape[0], Y.shape[0] + 1)
    np.minimum.at(rarest, np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr)), counts[Y.indices])
    shuffled = rng.permutation(Y.shape[0])
    return np.asarray(shuffled[np.argsort(-rarest[shuffled], kind="stable")])
