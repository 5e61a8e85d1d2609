"""Stratified splits and folds."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.arrays import AnyArray
from models.base.validation import as_label_matrix
from models.splits import TRAINING, part_sizes, stratified_folds, stratified_split


def literal_folds(Y: AnyArray, n_folds: int, seed: int) -> list[int]:
    """Iterative stratification as published by Sechidis, Tsoumakas and Vlahavas, with sets and loops."""
    rng = np.random.default_rng(seed)
    n, k = Y.shape
    c = [n / n_folds] * n_folds
    c_of = [[sum(Y[:, label]) / n_folds] * n_folds for label in range(k)]
    left, fold_of = list(range(n)), [-1] * n

    def assign(x: int, candidates: list[int]) -> None:
        most = [j for j in candidates if c[j] == max(c[i] for i in candidates)]
        fold = most[0] if len(most) == 1 else int(rng.choice(most))
        fold_of[x] = fold
        left.remove(x)
        c[fold] -= 1
        for label in range(k):
            if Y[x, label]:
                c_of[label][fold] -= 1

    while True:
        sizes = {label: sum(bool(Y[x, label]) for x in left) for label in range(k)}
        sizes = {label: size for label, size in sizes.items() if size}
        if not sizes:
            break
        rarest = min(sizes, key=lambda label: (sizes[label], label))
        for x in [x for x in left if Y[x, rarest]]:
            wanted = c_of[rarest]
            assign(x, [j for j in range(n_folds) if wanted[j] == max(wanted)])
    for x in list(left):
        assign(x, list(range(n_folds)))
    return fold_of


@given(st.integers(0, 2**31), st.integers(1, 25), st.integers(1, 5), st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_folds_are_those_of_the_published_algorithm(seed: int, n: int, k: int, n_folds: int) -> None:
    Y = (np.random.default_rng(seed).random((n, k)) < 0.3).astype(int)
    assert stratified_folds(as_label_matrix(Y), n_folds, seed=seed).tolist() == literal_folds(
        Y, n_folds, seed
    )


def test_a_label_with_as_many_examples_as_folds_is_in_every_fold() -> None:
    Y = np.zeros((30, 2), dtype=int)
    Y[[3, 4, 5], 0] = 1
    Y[10:25, 1] = 1
    folds = stratified_folds(as_label_matrix(Y), 3, seed=7)
    assert sorted(folds[[3, 4, 5]].tolist()) == [0, 1, 2]
    assert np.bincount(folds[10:25]).tolist() == [5, 5, 5]
    assert np.bincount(folds).tolist() == [10, 10, 10]


def test_folds_depend_only_on_the_seed() -> None:
    Y = as_label_matrix((np.random.default_rng(1).random((50, 4)) < 0.4).astype(int))
    assert (stratified_folds(Y, 3, seed=1) == stratified_folds(Y, 3, seed=1)).all()
    assert (stratified_folds(Y, 3, seed=1) != stratified_folds(Y, 3, seed=2)).any()


LABEL_MATRICES = st.integers(0, 2**31).map(
    lambda seed: (np.random.default_rng(seed).random((3 + seed % 40, 1 + seed % 7)) < 0.25).astype(int)
)
FRACTIONS = st.sampled_from([[0.3], [0.5], [0.01], [0.9], [0.25, 0.25], [0.1, 0.0], [0.4, 0.5]])


@given(LABEL_MATRICES, FRACTIONS, st.integers(0, 99))
@settings(max_examples=100, deadline=None)
def test_a_split_keeps_an_example_of_each_label_for_training(
    Y: AnyArray, fractions: list[float], seed: int
) -> None:
    parts = stratified_split(as_label_matrix(Y), fractions, seed=seed)
    wanted = part_sizes(len(Y), fractions)
    sizes = np.bincount(parts, minlength=len(wanted)).tolist()
    assert len(parts) == sum(wanted) == sum(sizes)
    assert all(size > 0 for size, want in zip(sizes, wanted, strict=True) if want)
    used, learned = Y.any(axis=0), Y[parts == TRAINING].any(axis=0)
    if (used & ~learned).any():
        # Only an otherwise empty part can take the last training example of a label.
        assert min(size for size in sizes[1:] if size) == 1
    elif sizes != wanted:
        too_large = np.flatnonzero(np.array(sizes) > wanted)
        assert too_large.tolist() == [TRAINING]
        rest = Y[parts == TRAINING]
        assert all((rest[:, row.astype(bool)].sum(axis=0) == 1).any() for row in rest)


def test_every_label_is_as_frequent_in_each_part_as_in_the_whole_set() -> None:
    Y = (np.random.default_rng(5).random((400, 6)) < [0.5, 0.3, 0.2, 0.1, 0.05, 0.03]).astype(int)
    parts = stratified_split(as_label_matrix(Y), [0.25, 0.15], seed=0)
    assert np.bincount(parts).tolist() == [240, 100, 60]
    for part, fraction in enumerate([0.6, 0.25, 0.15]):
        assert np.abs(Y[parts == part].sum(axis=0) - fraction * Y.sum(axis=0)).max() <= 3


def test_rare_labels_are_in_the_training_part() -> None:
    Y = np.zeros((100, 3), dtype=int)
    Y[:97, 0] = Y[97, 1] = Y[98:, 2] = 1
    for seed in range(20):
        parts = stratified_split(as_label_matrix(Y), [0.5], seed=seed)
        assert np.bincount(parts).tolist() == [50, 50]
        assert parts[97] == TRAINING
        assert sorted(parts[98:].tolist()) == [TRAINING, 1]


def test_a_split_depends_only_on_the_seed() -> None:
    Y = as_label_matrix((np.random.default_rng(1).random((50, 4)) < 0.4).astype(int))
    assert (stratified_split(Y, [0.3], seed=1) == stratified_split(Y, [0.3], seed=1)).all()
    assert (stratified_split(Y, [0.3], seed=1) != stratified_split(Y, [0.3], seed=2)).any()


def test_splits_of_different_seeds_share_no_more_than_chance() -> None:
    Y = as_label_matrix((np.random.default_rng(3).random((600, 5)) < 0.3).astype(int))
    tests = [set(np.flatnonzero(stratified_split(Y, [0.3], seed=seed)).tolist()) for seed in range(6)]
    shared = [len(tests[i] & tests[j]) / len(tests[i]) for i in range(6) for j in range(i)]
    assert max(shared) < 0.45, "independent test parts share 30 % of their examples"


def test_a_split_without_any_label_is_random() -> None:
    Y = as_label_matrix(np.zeros((100, 1), dtype=int))
    first, second = (stratified_split(Y, [0.3], seed=seed) for seed in (0, 1))
    assert first.sum() == second.sum() == 30
    assert (first != second).any()


@pytest.mark.parametrize(
    ("n", "fractions", "sizes"),
    [
        (10, [0.3], [7, 3]),
        (3, [0.01], [2, 1]),
        (3, [0.99], [1, 2]),
        (2, [0.5], [1, 1]),
        (3, [0.4, 0.5], [1, 1, 1]),
        (10, [0.5, 0.0], [5, 5, 0]),
    ],
)
def test_each_part_of_a_split_has_examples(n: int, fractions: list[float], sizes: list[int]) -> None:
    assert part_sizes(n, fractions) == sizes
    parts = stratified_split(as_label_matrix(np.zeros((n, 1), dtype=int)), fractions, seed=0)
    assert np.bincount(parts, minlength=len(sizes)).tolist() == sizes


def test_examples_without_groups_keep_their_parts() -> None:
    """Otherwise an earlier training could not be divided again, see ``SPLIT_REVISION``."""
    digest = 0
    for seed in range(40):
        Y = as_label_matrix(np.random.default_rng(seed).random((60, 6)) < [0.5, 0.3, 0.2, 0.1, 0.05, 0.02])
        for parts in (
            stratified_split(Y, [0.2], seed=seed),
            stratified_split(Y, [0.25, 0.15], seed=seed),
            stratified_folds(Y, 5, seed=seed),
        ):
            digest = crc32(parts.tobytes(), digest)
    assert digest == 565785625


@given(LABEL_MATRICES, FRACTIONS, st.integers(0, 99), st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_no_group_is_split(Y: AnyArray, fractions: list[float], seed: int, n_groups: int) -> None:
    labels, g = as_label_matrix(Y), len(Y)
    groups = np.random.default_rng(seed).integers(0, n_groups, g)
    wanted = part_sizes(g, fractions)
    n_groups = len(np.unique(groups))

    parts = stratified_split(labels, fractions, seed=seed, groups=groups)
    folds = stratified_folds(labels, 3, seed=seed, groups=groups)
    for part_of in (parts, folds):
        assert len(np.unique(np.column_stack([groups, part_of]), axis=0)) == n_groups

    sizes = np.bincount(parts, minlength=len(wanted))
    in_part = [len(np.unique(groups[parts == part])) for part in range(len(wanted))]
    if n_groups >= 1 + sum(fraction > 0 for fraction in fractions):
        assert all(n > 0 for n, want in zip(in_part, wanted, strict=True) if want)
    else:
        assert sizes[TRAINING] > 0
    if (Y.any(axis=0) & ~Y[parts == TRAINING].any(axis=0)).any():
        assert 1 in in_part[1:], "only an otherwise empty part can take the last training group of a label"

    alone = np.random.default_rng(seed).permutation(g) * 7 - g
    np.testing.assert_array_equal(
        stratified_split(labels, fractions, seed=seed, groups=alone),
        stratified_split(labels, fractions, seed=seed),
    )
    np.testing.assert_array_equal(
        stratified_folds(labels, 3, seed=seed, groups=alone), stratified_folds(labels, 3, seed=seed)
    )


def test_groups_of_many_sizes_are_spread_evenly() -> None:
    rng = np.random.default_rng(4)
    groups = rng.permutation(np.repeat(np.arange(300), rng.geometric(0.15, 300)))
    label_of = rng.integers(0, 5, 300)
    Y = np.eye(5, dtype=int)[label_of[groups]]
    n, largest = len(Y), np.bincount(groups).max()
    parts = stratified_split(as_label_matrix(Y), [0.25, 0.15], seed=0, groups=groups)
    assert np.bincount(parts).tolist() == part_sizes(n, [0.25, 0.15])
    folds = stratified_folds(as_label_matrix(Y), 5, seed=0, groups=groups)
    for fold in range(5):
        assert np.abs(Y[folds == fold].sum(axis=0) - Y.sum(axis=0) / 5).max() < largest
    assert np.abs(np.bincount(folds) - n / 5).max() < largest


def test_a_single_document_is_only_trained_on() -> None:
    Y = as_label_matrix(np.zeros((10, 1), dtype=int))
    assert not stratified_split(Y, [0.9], seed=0, groups=np.zeros(10, dtype=int)).any()
    assert len(np.unique(stratified_folds(Y, 3, seed=0, groups=np.zeros(10, dtype=int)))) == 1
    with pytest.raises(ValueError, match=r"groups has shape \(9,\); there are 10 examples"):
        stratified_folds(Y, 3, seed=0, groups=np.zeros(9, dtype=int))
