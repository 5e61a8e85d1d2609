"""Checks the inputs of learners and converts them to sparse matrices in canonical form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array

from models.arrays import AnyArray, Bools, Labels, Matrix
from models.errors import NotFittedError, ParameterError, UnsuitableDataError

MAX_MAGNITUDE = 1e19
"""Largest absolute value of a feature that learners are trained on.

It admits every 64-bit integer. The square of a larger value is not finite in single precision, and sums of
squares of values above 1e154 are not finite in double precision either: weights would become infinite, and
liblinear would never end.
"""


class UnfittedError(NotFittedError, SklearnNotFittedError):  # type: ignore[misc]  # no types
    """The error for callers of the library, which is also the one that scikit-learn's tools expect."""


def as_feature_matrix(X: Any, *, n_features: int | None = None, reader: str = "this learner") -> Matrix:
    """Convert features to CSR of float64 with sorted indices and without explicit zeros.

    The result shares the arrays of ``X`` if ``X`` already has this form. ``X`` itself is never changed.

    Args:
        X: (n, r) features, sparse or dense.
        n_features: the required number of features; None allows any number.
        reader: name of the learner, for the error message.

    Raises:
        ValueError: ``X`` has NaN or infinity, is not two-dimensional, or has the wrong number of features.
    """
    try:
        checked = check_array(X, accept_sparse="csr", dtype=np.float64)
    except (ValueError, TypeError) as error:
        if (reason := _why_no_matrix(X)) is None:
            raise
        raise ParameterError(reason) from error
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


def _why_no_matrix(X: Any) -> str | None:
    """Return why examples are no matrix of numbers, if there is more to say than NumPy does."""
    if sparse.issparse(X):
        return None
    if isinstance(X, Mapping | AbstractSet | Iterator):
        return f"pass X as a matrix of numbers; it is a {type(X).__name__}"
    if isinstance(X, Sequence) and not len(X):
        return "X is empty; pass at least one example"
    if any(isinstance(value, str | bytes) for value in np.asarray(X, dtype=object).ravel().tolist()):
        return (
            "X contains texts, and a learner alone needs numbers; use covey.Pipeline, or scikit-learn's "
            "make_pipeline(covey.TextFeatures(), …)"
        )
    return None


def as_label_matrix(Y: Any) -> Labels:
    """Convert relevant labels to CSR of int8 ones with sorted indices.

    Args:
        Y: (n, k) relevant labels as 0 and 1, sparse or dense. It is never changed.

    Raises:
        ValueError: ``Y`` contains values other than 0 and 1, or is not two-dimensional.
    """
    matrix: Any = Y if sparse.issparse(Y) else np.atleast_2d(np.asarray(Y))
    has_objects = not sparse.issparse(matrix) and matrix.dtype.kind in "OSU"
    if has_objects and any(isinstance(value, str) for value in matrix.ravel().tolist()):
        raise ParameterError("y is a table of texts; pass a column of classes, or a matrix of 0 and 1")
    labels = csr_array(matrix)
    if not labels.has_canonical_format:
        labels = labels.copy()
        labels.sum_duplicates()
    if not np.isin(labels.data, (0, 1)).all():
        raise ValueError("Y contains values other than 0 and 1; pass a 0/1 matrix of relevant labels")
    labels = labels.astype(np.int8)
    labels.eliminate_zeros()
    return labels


def as_classes(y: Any) -> AnyArray:
    """Return one class per example as an array.

    Raises:
        ParameterError: there are no classes, or one is missing or of the type bytes.
        ValueError: a class is infinite.
    """
    values = np.asarray(y)
    if not values.size:
        raise ParameterError("y is empty; pass the labels of each document")
    if values.dtype.kind in "OfSU":
        # In an array of texts, NaN is the text "nan".
        for position, value in enumerate(y if isinstance(y, Sequence) else values.tolist()):
            if value is None or value != value:  # noqa: PLR0124 - NaN
                raise ParameterError(
                    f"the class at position {position} of y is missing ({value}); leave the document out, or "
                    "pass collections of labels, of which one may be empty"
                )
            if isinstance(value, bytes):
                raise ParameterError(f"the class at position {position} of y is of the type bytes; decode it")
    assert_all_finite(values, input_name="y")
    return values


def binarize_classes(y: Any) -> tuple[AnyArray, AnyArray]:
    """Convert one class per example to a 0/1 matrix with one column per class.

    Args:
        y: (n,) classes.

    Returns:
        the sorted classes, and the matrix. With two classes it has a single column, for the second class.

    Raises:
        ValueError: ``y`` has fewer than two classes, NaN, or continuous values.

    >>> binarize_classes(["ham", "spam", "ham"])[1].tolist()
    [[0], [1], [0]]
    """
    y = as_classes(y)
    check_classification_targets(y)
    classes = np.unique(y)
    return classes, indicator_of_classes(y, classes)


def indicator_of_classes(y: AnyArray, classes: AnyArray) -> AnyArray:
    """Return classes of examples as a 0/1 matrix, with a single column if there are two classes.

    Raises:
        ValueError: there are fewer than two classes, or ``y`` has a class that is not among them.
    """
    if len(classes) < 2:
        raise ValueError(f"y has {len(classes)} class; a classifier needs at least two classes")
    indices = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    if (classes[indices] != y).any():
        unknown = np.unique(y[classes[indices] != y]).tolist()
        raise ValueError(f"y has classes that are not among the classes of the first call: {unknown}")
    if len(classes) == 2:
        return indices[:, None]
    return np.asarray(indices[:, None] == np.arange(len(classes)), dtype=np.int64)


def as_training_matrices(X: Any, Y: Any) -> tuple[Matrix, Labels]:
    """Convert X and Y with ``as_feature_matrix`` and ``as_label_matrix``.

    Raises:
        ValueError: an invalid X or Y, or different numbers of rows.
    """
    matrix = as_feature_matrix(X)
    labels = as_label_matrix(Y)
    if matrix.shape[0] != labels.shape[0]:
        raise ValueError(
            f"X has {matrix.shape[0]} rows and Y has {labels.shape[0]}; the numbers must be equal"
        )
    return matrix, labels


def check_magnitude(X: Matrix, features: Sequence[str] | None) -> None:
    """Check that no feature is too large for learners.

    Args:
        X: (g, r) features of the training examples.
        features: names of the features.

    Raises:
        UnsuitableDataError: an absolute value is above ``MAX_MAGNITUDE``; names the first such feature.
    """
    too_large = np.flatnonzero(np.abs(X.data) > MAX_MAGNITUDE)
    if not too_large.size:
        return
    first = int(too_large[X.indices[too_large].argmin()])
    column = int(X.indices[first])
    name = features[column] if features is not None else str(column)
    raise UnsuitableDataError(
        f"the feature {name!r} has the value {X.data[first]:g}; learners accept absolute values up to "
        f"{MAX_MAGNITUDE:g}; use the scaling max_abs, or correct the value"
    )


def in_every_example(Y: Labels, unknown: Labels | None = None) -> Bools:
    """Return (k,) true for labels that every example has for which they are known.

    Args:
        Y: (g, k) relevant labels.
        unknown: (g, k) unknown labels; None if there are none.
    """
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    if unknown is None:
        everywhere: Bools = counts == Y.shape[0]
        return everywhere
    return np.asarray(
        (counts == Y.shape[0] - np.bincount(unknown.indices, minlength=Y.shape[1])) & (counts > 0)
    )
