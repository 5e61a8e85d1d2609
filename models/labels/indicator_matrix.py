"""Converts label sets to an indicator matrix: one row per example, one column per label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Labels
from models.labels import LabelTree


def collect_labels(
    label_sets: Sequence[Sequence[str]], tree: LabelTree | None = None, *, kept: Iterable[str] = ()
) -> list[str]:
    """Return the labels of a training: those with at least one positive example, in label order.

    Args:
        label_sets: the labels of each training example.
        tree: if given, an example of a label is also an example of the label's ancestors.
        kept: labels that belong to the training even without a positive example.

    >>> collect_labels([("C11",), (), ("GCAT",)], LabelTree({"C11": "CCAT"}))
    ['C11', 'CCAT', 'GCAT']
    """
    labels = {*kept, *(label for label_set in label_sets for label in label_set)}
    return tree.closure(labels) if tree is not None else sorted(labels)


def indicator_matrix(
    label_sets: Sequence[Sequence[str]], labels: Sequence[str], tree: LabelTree | None = None
) -> Labels:
    """Return the relevant labels of each example as a 0/1 matrix.

    Args:
        label_sets: the labels of each of g examples. Duplicates count once.
        labels: the k labels of the columns, in label order. Other labels are ignored.
        tree: if given, the ancestors of a relevant label are relevant too.

    Returns:
        (g, k) compressed sparse rows of int8 ones, indices sorted.
    """
    column = {label: j for j, label in enumerate(labels)}
    rows: dict[tuple[str, ...], list[int]] = {}  # many examples have the same label set
    indices: list[int] = []
    indptr = np.zeros(len(label_sets) + 1, dtype=np.int64)
    for i, label_set in enumerate(label_sets):
        key = tuple(label_set)
        row = rows.get(key)
        if row is None:
            names = tree.closure(key) if tree is not None else set(key)
            row = rows[key] = sorted(column[name] for name in names if name in column)
        indices.extend(row)
        indptr[i + 1] = len(indices)
    ones = np.ones(len(indices), dtype=np.int8)
    return csr_array((ones, np.array(indices, dtype=np.int64), indptr), shape=(len(label_sets), len(labels)))


def unknown_matrix(
    unknown_sets: Sequence[Sequence[str]], Y: Labels, labels: Sequence[str], tree: LabelTree | None = None
) -> Labels | None:
    """Return the unknown labels of each example as a 0/1 matrix; None if there are none.

    Args:
        unknown_sets: the unknown labels of each of g examples.
        Y: (g, k) the relevant labels of the examples. They are not unknown.
        labels: the k labels of the columns, in label order. Other labels are ignored.
        tree: if given, the ancestors of an unknown label are unknown too, unless they are relevant.

    Returns:
        (g, k) compressed sparse rows of int8 ones, indices sorted.

    >>> Y = indicator_matrix([("a",), ()], ["a", "b"])
    >>> unknown_matrix([("b",), ()], Y, ["a", "b"]).toarray().tolist()
    [[0, 1], [0, 0]]
    >>> unknown_matrix([(), ()], Y, ["a", "b"])
    """
    if not any(unknown_sets):
        return None
    unknown = indicator_matrix(unknown_sets, labels, tree)
    unknown = csr_array(unknown - unknown.multiply(Y))
    unknown.eliminate_zeros()
    unknown.sort_indices()
    return unknown if unknown.nnz else None
