"""Random splits and stratified folds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.arrays import AnyArray
from models.base.validation import as_label_matrix
from models.splits import random_split, stratified_folds


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


@pytest.mark.parametrize(("n", "fraction", "size"), [(10, 0.3, 3), (3, 0.01, 1), (3, 0.99, 2), (2, 0.5, 1)])
def test_both_parts_of_a_random_split_have_examples(n: int, fraction: float, size: int) -> None:
    split = random_split(n, fraction, seed=0)
    assert split.sum() == size
    assert (split == random_split(n, fraction, seed=0)).all()


def test_random_splits_differ_by_seed() -> None:
    assert (random_split(100, 0.5, seed=0) != random_split(100, 0.5, seed=1)).any()
