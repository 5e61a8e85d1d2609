"""Checks and conversions of the matrices that learners are fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csr_array
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array

from models.arrays import AnyArray, Bools, Labels, Matrix


def as_feature_matrix(X: Any, *, n_features: int | None = None, reader: str = "this learner") -> Matrix:
    """Features as float64 CSR with sorted indices and no explicit zeros; a view where they already are.

    Args:
        X: the features.
        n_features: how many there must be.
        reader: who says so.

    Raises:
        ValueError: NaN, infinity, not two-dimensional, or the wrong number of features.
    """
    checked = check_array(X, accept_sparse="csr", dtype=np.float64)
    if n_features is not None and checked.shape[1] != n_features:
        raise ValueError(
            f"X has {checked.shape[1]} features, but {reader} is expecting {n_features} features as input"
        )
    matrix = csr_array(checked)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if (matrix.data == 0).any():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix


def as_label_matrix(Y: Any) -> Labels:
    """Relevant labels as int8 CSR of ones.

    Raises:
        ValueError: values other than 0 and 1, or not two-dimensional.
    """
    given: Any = Y if sparse.issparse(Y) else np.atleast_2d(np.asarray(Y))
    labels = csr_array(given)
    if not labels.has_canonical_format:
        labels = labels.copy()
        labels.sum_duplicates()
    if not np.isin(labels.data, (0, 1)).all():
        raise ValueError("Y holds values other than 0 and 1; give a matrix of relevant labels")
    labels = labels.astype(np.int8)
    labels.eliminate_zeros()
    return labels


def binarize_classes(y: Any) -> tuple[AnyArray, AnyArray]:
    """One class an example as (sorted classes, 0/1 indicator of them); two classes need one column only.

    Raises:
        ValueError: fewer than two classes, NaN, or numbers that are no classes.

    >>> binarize_classes(["ham", "spam", "ham"])[1].tolist()
    [[0], [1], [0]]
    """
    y = np.asarray(y)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes, which = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y holds {len(classes)} class; a classifier needs at least two classes")
    if len(classes) == 2:
        return classes, which[:, None]
    return classes, (which[:, None] == np.arange(len(classes))).astype(np.int64)


def as_training_matrices(X: Any, Y: Any) -> tuple[Matrix, Labels]:
    """X and Y in canonical form, with as many rows as each other."""
    matrix = as_feature_matrix(X)
    labels = as_label_matrix(Y)
    if matrix.shape[0] != labels.shape[0]:
        raise ValueError(f"X has {matrix.shape[0]} rows and Y has {labels.shape[0]}; they must have the same")
    return matrix, labels


def in_every_example(Y: Labels) -> Bools:
    """(k,) true for labels that every example has."""
    everywhere: Bools = np.bincount(Y.indices, minlength=Y.shape[1]) == Y.shape[0]
    return everywhere
