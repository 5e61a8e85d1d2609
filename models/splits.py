"""Splits of a data set: stratified parts and stratified folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from models.arrays import AnyArray, Floats, Ints, Labels, numbered_by_first_occurrence

TRAINING = 0
"""The number of the training part in the result of :func:`stratified_split`."""

SPLIT_REVISION = 2
"""Incremented if :func:`stratified_split` draws other parts than before from the same seed."""


def stratified_split(Y: Labels, fractions: Sequence[float], *, seed: int, groups: Ints | None = None) -> Ints:
    """Draw held-out parts in which every label is about as frequent as in the whole set.

    Iterative stratification as in :func:`stratified_folds`, with parts of different sizes, of the examples in
    a random order. It keeps the frequencies of labels, but not the sizes of the parts. So examples are then
    moved between the parts, those with the most frequent labels first, until each part has its size, or as
    nearly as groups allow. Every label keeps an example in the training part, even if a held-out part is then
    too small, unless the part would be empty.

    Args:
        Y: (g, k) label sets, g at least the number of parts.
        fractions: fraction of the examples in each held-out part; their sum is below 1. A part whose fraction
            is above 0 gets at least one example, and so does the training part. If there are fewer groups
            than parts, held-out parts are empty.
        seed: seed of the random generator.
        groups: (g,) a number for each example. Examples with equal numbers, such as those of one document,
            stay in one part. None if every example is a group of its own.

    Returns:
        (g,) the part of each example: ``TRAINING``, or 1 + the index of its fraction.

    Raises:
        ValueError: ``groups`` does not have the shape (g,).

    >>> from scipy.sparse import csr_array
    >>> Y = csr_array([[1, 0]] * 8 + [[0, 1]] * 2)
    >>> parts = stratified_split(Y, [0.2], seed=0)
    >>> int((parts == 1).sum()), int((parts[:8] == 1).sum()), int((parts[8:] == 0).sum())
    (2, 2, 2)
    >>> stratified_split(Y, [0.2], seed=0, groups=np.arange(10) // 2).reshape(5, 2).tolist()
    [[0, 0], [1, 1], [0, 0], [0, 0], [0, 0]]
    """
    rng = np.random.default_rng(seed)
    wanted = np.array([1.0 - sum(fractions), *fractions])
    units, group_of = _Groups.of(Y, groups)
    order = rng.permutation(len(units.sizes))  # stratification alone uses the seed only for ties
    units = _Groups(units.counts[order], units.sizes[order])
    shuffled = _stratify(units, Y.shape[0] * wanted, _label_counts(Y)[:, np.newaxis] * wanted, rng)
    _give_training_examples(units, shuffled)
    _move_to_sizes(units, shuffled, part_sizes(Y.shape[0], fractions), rng)
    part_of = np.empty_like(shuffled)
    part_of[order] = shuffled
    return part_of[group_of]


def part_sizes(n_examples: int, fractions: Sequence[float]) -> list[int]:
    """Return the number of examples of the training part and of each held-out part.

    >>> part_sizes(10, [0.25, 0.0]), part_sizes(3, [0.01, 0.9])
    ([8, 2, 0], [1, 1, 1])
    """
    held_out = [max(round(n_examples * fraction), 1) if fraction else 0 for fraction in fractions]
    while sum(held_out) >= n_examples and max(held_out) > 1:
        held_out[held_out.index(max(held_out))] -= 1
    return [n_examples - sum(held_out), *held_out]


def stratified_folds(Y: Labels, n_folds: int, *, seed: int, groups: Ints | None = None) -> Ints:
    """Assign examples to folds of equal size in which every label is as frequent as in the whole set.

    Iterative stratification (Sechidis, Tsoumakas and Vlahavas 2011, algorithm 1). The label with the fewest
    unassigned examples is next; among equally rare labels, the first in label order. Each of its examples, in
    their order, goes to the fold that lacks the most examples of this label. Ties go to the fold that lacks
    the most examples in total, then to a random one. Examples without labels are assigned last.

    A group of several examples is assigned as a whole, and the largest groups of a label first, so that the
    small ones make up for their differences.

    Args:
        Y: (g, k) label sets.
        n_folds: number of folds. If there are fewer groups, some folds are empty.
        seed: seed of the random generator.
        groups: (g,) a number for each example. Examples with equal numbers, such as those of one document,
            stay in one fold. None if every example is a group of its own.

    Returns:
        (g,) the fold of each example, 0 … n_folds − 1.

    Raises:
        ValueError: ``groups`` does not have the shape (g,).

    >>> from scipy.sparse import csr_array
    >>> folds = stratified_folds(csr_array([[1], [1], [1], [0], [0], [0]]), 3, seed=0)
    >>> sorted(folds[:3].tolist()), sorted(folds[3:].tolist())
    ([0, 1, 2], [0, 1, 2])
    """
    units, group_of = _Groups.of(Y, groups)
    fold_of = _stratify(
        units,
        np.full(n_folds, Y.shape[0] / n_folds),
        np.repeat(_label_counts(Y)[:, np.newaxis] / n_folds, n_folds, axis=1),
        np.random.default_rng(seed),
    )
    return fold_of[group_of]


class _Groups(NamedTuple):
    """The d groups of examples that stay together, in the order of their first examples.

    Attributes:
        counts: (d, k) the number of examples of each label in each group; no explicit zeros.
        sizes: (d,) the number of examples of each group.
    """

    counts: Labels
    sizes: Ints

    @classmethod
    def of(cls, Y: Labels, groups: Ints | None) -> tuple[_Groups, Ints]:
        """Return the groups, and (g,) the group of each example."""
        g = Y.shape[0]
        counts = csr_array((np.ones(len(Y.indices), dtype=np.int32), Y.indices, Y.indptr), shape=Y.shape)
        group_of = np.arange(g) if groups is None else numbered_by_first_occurrence(groups)
        if group_of.shape != (g,):
            raise ValueError(f"groups has shape {group_of.shape}; there are {g} examples")
        sizes = np.bincount(group_of)
        if len(sizes) < g:
            members = csr_array((np.ones(g, dtype=np.int32), (group_of, np.arange(g))), shape=(len(sizes), g))
            counts = csr_array(members @ counts)
            counts.sort_indices()
        return cls(counts, sizes), group_of

    def labels(self, group: int) -> AnyArray:
        """Return the labels that examples of a group have."""
        return self.counts.indices[self.counts.indptr[group] : self.counts.indptr[group + 1]]


def _label_counts(Y: Labels) -> Ints:
    """Return the number of rows that have each label."""
    return np.bincount(Y.indices, minlength=Y.shape[1])


def _stratify(units: _Groups, examples: Floats, labels: Floats, rng: np.random.Generator) -> Ints:
    """Assign groups to parts by iterative stratification; see :func:`stratified_folds`.

    The loop over groups works on lists of Python, which is several times faster than NumPy for a few numbers.

    Args:
        units: the d groups.
        examples: (p,) the wanted number of examples of each part.
        labels: (k, p) the wanted number of examples of each label in each part.
        rng: breaks ties.

    Returns:
        (d,) the part of each group.
    """
    counts = units.counts
    columns = counts.tocsc()
    remaining = _label_counts(counts)
    examples_lacking: list[float] = examples.tolist()
    labels_lacking: list[list[float]] = labels.tolist()
    part_of = np.full(len(units.sizes), -1, dtype=np.int64)
    sizes: list[int] = units.sizes.tolist()

    def assign(group: int, candidates: Sequence[int]) -> None:
        most = max(examples_lacking[part] for part in candidates)
        candidates = [part for part in candidates if examples_lacking[part] == most]
        part = candidates[0 if len(candidates) == 1 else int(rng.integers(len(candidates)))]
        part_of[group] = part
        examples_lacking[part] -= sizes[group]
        row = slice(counts.indptr[group], counts.indptr[group + 1])
        for label, n_examples in zip(counts.indices[row].tolist(), counts.data[row].tolist(), strict=True):
            remaining[label] -= 1
            labels_lacking[label][part] -= n_examples

    while (remaining > 0).any():
        label = int(np.argmin(np.where(remaining > 0, remaining, len(sizes) + 1)))
        column = slice(columns.indptr[label], columns.indptr[label + 1])
        positives = columns.indices[column][np.argsort(-columns.data[column], kind="stable")]
        lacking = labels_lacking[label]
        for group in positives[part_of[positives] < 0].tolist():
            most = max(lacking)
            assign(group, [part for part, value in enumerate(lacking) if value == most])
    unlabelled = np.flatnonzero(part_of < 0)
    for group in unlabelled[np.argsort(-units.sizes[unlabelled], kind="stable")].tolist():
        assign(group, range(len(examples_lacking)))
    return part_of


def _give_training_examples(units: _Groups, part_of: Ints) -> None:
    """Move a smallest group of every label that has no training example to the training part, in place."""
    counts, sizes = units
    n_groups = _label_counts(counts)
    in_training = _label_counts(counts[part_of == TRAINING])
    missing = np.flatnonzero((n_groups > 0) & (in_training == 0))
    columns = counts.tocsc()
    for label in missing[np.argsort(n_groups[missing], kind="stable")].tolist():
        if not in_training[label]:
            positives = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
            group = int(positives[np.argmin(sizes[positives])])
            part_of[group] = TRAINING
            in_training[units.labels(group)] += 1


def _move_to_sizes(
    units: _Groups, part_of: Ints, wanted_sizes: Sequence[int], rng: np.random.Generator
) -> None:
    """Move groups from parts that are too large to parts that are too small, in place.

    Args:
        units: the d groups.
        part_of: (d,) the part of each group.
        wanted_sizes: the wanted number of examples of each part.
        rng: breaks ties.
    """
    n_parts = len(wanted_sizes)
    sizes: list[int] = units.sizes.tolist()
    n_examples = np.bincount(part_of, weights=units.sizes, minlength=n_parts).astype(np.int64)
    lacking: list[int] = (np.array(wanted_sizes) - n_examples).tolist()
    if not any(lacking):
        return
    n_groups: list[int] = np.bincount(part_of, minlength=n_parts).tolist()
    in_training = _label_counts(units.counts[part_of == TRAINING])
    order: list[int] = _by_rarest_label(units.counts, rng).tolist()

    def move(group: int, target: int) -> None:
        source = int(part_of[group])
        lacking[source] += sizes[group]
        lacking[target] -= sizes[group]
        n_groups[source] -= 1
        n_groups[target] += 1
        part_of[group] = target

    def is_last(group: int) -> bool:
        """Whether the training part would lose a label."""
        return part_of[group] == TRAINING and bool((in_training[units.labels(group)] == 1).any())

    # A group of several examples can be too large for every gap. Then a second pass moves one that makes a
    # gap smaller, though it makes another one. With groups of one example, it finds nothing to do.
    for makes_gaps in (False, True):
        for group in order if any(lacking) else ():
            source, size = int(part_of[group]), sizes[group]
            too_many, too_few = -lacking[source], max(lacking)
            fits = size < too_many + too_few if makes_gaps else size <= min(too_many, too_few)
            if too_many <= 0 or not fits or is_last(group) or n_groups[source] == 1 <= wanted_sizes[source]:
                continue
            if source == TRAINING:
                in_training[units.labels(group)] -= 1
            move(group, lacking.index(too_few))
    for part, size in enumerate(wanted_sizes):
        if size and not n_groups[part]:  # all groups that would fit are the only ones of a label
            # The training part comes first. A single group can only be trained on.
            candidates = [group for group in order if part == TRAINING or n_groups[int(part_of[group])] > 1]
            if candidates:
                move(min(candidates, key=lambda g: (lacking[part_of[g]] >= 0, is_last(g), sizes[g])), part)


def _by_rarest_label(counts: Labels, rng: np.random.Generator) -> Ints:
    """Return the groups ordered by the frequency of their rarest label, the most frequent first."""
    d = counts.shape[0]
    n_groups = _label_counts(counts)
    rarest = np.full(d, d + 1)
    np.minimum.at(rarest, np.repeat(np.arange(d), np.diff(counts.indptr)), n_groups[counts.indices])
    shuffled = rng.permutation(d)
    return np.asarray(shuffled[np.argsort(-rarest[shuffled], kind="stable")])
