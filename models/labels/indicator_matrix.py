"""From label sets by name to the columns of Y."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Labels
from models.labels import LabelTree


def collect_labels(label_sets: Sequence[Sequence[str]], tree: LabelTree | None = None) -> list[str]:
    """The labels that a training on these examples has: those with a positive example, in label order.

    Args:
        label_sets: the labels of each training example.
        tree: with it, the ancestors of a label have its examples too.

    >>> collect_labels([("C11",), (), ("GCAT",)], LabelTree({"C11": "CCAT"}))
    ['C11', 'CCAT', 'GCAT']
    """
    met = {label for labels in label_sets for label in labels}
    return tree.closure(met) if tree is not None else sorted(met)


def indicator_matrix(
    label_sets: Sequence[Sequence[str]], labels: Sequence[str], tree: LabelTree | None = None
) -> Labels:
    """The relevant labels of each example as a matrix.

    Args:
        label_sets: the labels of each of g examples; repetitions count once.
        labels: the k columns, in label order. Labels outside them are left out.
        tree: with it, each set is closed under ancestors.

    Returns:
        (g, k) compressed sparse rows of int8 ones, indices sorted.
    """
    column = {label: j for j, label in enumerate(labels)}
    closed: dict[tuple[str, ...], list[int]] = {}
    indices: list[int] = []
    indptr = np.zeros(len(label_sets) + 1, dtype=np.int64)
    for i, given in enumerate(label_sets):
        key = tuple(given)
        row = closed.get(key)
        if row is None:
            names = tree.closure(key) if tree is not None else set(key)
            row = closed[key] = sorted(column[name] for name in names if name in column)
        indices.extend(row)
        indptr[i + 1] = len(indices)
    ones = np.ones(len(indices), dtype=np.int8)
    return csr_array((ones, np.array(indices, dtype=np.int64), indptr), shape=(len(label_sets), len(labels)))
