"""Accepts documents in the forms in which a notebook has them, and prepares them for features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from scipy import sparse

from models.base.column_names import check_column_names, column_names, numbered, set_column_names
from models.base.validation import as_feature_matrix
from models.data.examples import Documents, FeatureRows, Kind
from models.errors import ParameterError
from models.mail import Email, MailDocument, read_email

_DOCUMENT = (str, Email, MailDocument)
_NO_DOCUMENT = (bytes, type(None))


def as_documents(X: Any) -> Documents | Sequence[MailDocument]:
    """Return documents as a list of texts or of e-mails, or as rows of numbers.

    Args:
        X: n documents: a list or a column of texts or e-mails, rows of numbers as ``FeatureRows``, or an
            (n, r) matrix or table of numbers. The columns of a table keep their names; others are numbered.

    Raises:
        ParameterError: ``X`` is a single text or e-mail, no list, a table of texts, or a mixture.
        ValueError: a matrix has NaN or infinity, or is not two-dimensional.

    >>> as_documents(np.array([[1.0, 2.0]])).names
    ['0', '1']
    """
    if isinstance(X, FeatureRows):
        return X
    if isinstance(X, str | bytes | Email | MailDocument):
        raise ParameterError("pass a list of documents; for one document, a list with one element")
    if isinstance(X, Iterator):
        raise ParameterError("pass a list of documents; an iterator can be read only once")
    values = X if isinstance(X, Sequence) else None
    if getattr(X, "ndim", None) == 1 and not sparse.issparse(X):
        values = np.asarray(X).tolist()
    if values is not None and (not len(values) or isinstance(values[0], _DOCUMENT + _NO_DOCUMENT)):
        return _of_one_kind(values)
    if isinstance(X, Mapping | AbstractSet) and not sparse.issparse(X):
        raise ParameterError(f"pass a list of documents; X is a {type(X).__name__}")
    try:
        matrix = as_feature_matrix(X)
    except (ValueError, TypeError) as error:
        if (reason := _reason(X, values)) is None:
            raise
        raise ParameterError(reason) from error
    return FeatureRows(column_names(X) or numbered(matrix.shape[1]), matrix)


def kind_of(documents: Documents | Sequence[MailDocument]) -> Kind:
    """Return the kind of documents."""
    if isinstance(documents, FeatureRows):
        return "features"
    return "text" if not documents or isinstance(documents[0], str) else "email"


def read_documents(documents: Documents | Sequence[MailDocument]) -> Any:
    """Parse the e-mails among some documents, and return other documents unchanged."""
    if isinstance(documents, FeatureRows):
        return documents
    return [read_email(document) if isinstance(document, Email) else document for document in documents]


def set_columns(estimator: Any, X: Any, rows: FeatureRows) -> None:
    """Remember the columns of the training: their number, and, unless ``X`` is ``rows``, their order."""
    estimator.n_features_in_ = rows.matrix.shape[1]
    if rows is not X:
        set_column_names(estimator, X)
        estimator.columns_in_ = rows.names


def forget_columns(estimator: Any) -> None:
    """Forget the columns of an earlier training."""
    for name in ("n_features_in_", "feature_names_in_", "columns_in_"):
        vars(estimator).pop(name, None)


def restore_columns(estimator: Any, names: Sequence[str]) -> None:
    """Restore the columns of the training: their number, and their order if they are numbered."""
    estimator.n_features_in_ = len(names)
    if list(names) == numbered(len(names)):
        estimator.columns_in_ = names


def match_columns(estimator: Any, X: object, rows: FeatureRows, known: Sequence[str]) -> FeatureRows:
    """Return a table or matrix with the names of the columns of the training.

    Args:
        estimator: what ``set_columns`` was called with.
        X: the table or matrix, as it was passed.
        rows: its rows.
        known: the names of the features.

    Raises:
        ValueError: the training had other names, or another number.
        ParameterError: the training had names, and they cannot be matched by position.
    """
    if rows is X:
        return rows
    if not hasattr(estimator, "columns_in_"):  # fitted on FeatureRows, or loaded: they are matched by name
        if column_names(X) is None and not set(rows.names) <= set(known):
            raise ParameterError("the columns have no names; pass a table with the names of the training")
        return rows
    check_column_names(estimator, X)
    n, expected = rows.matrix.shape[1], estimator.n_features_in_
    if n != expected:
        kind = type(estimator).__name__
        raise ValueError(f"X has {n} features, but {kind} is expecting {expected} features as input")
    return FeatureRows(estimator.columns_in_, rows.matrix)


def _of_one_kind(documents: Sequence[Any]) -> Documents | Sequence[MailDocument]:
    kinds = (str,) if documents and isinstance(documents[0], str) else (Email, MailDocument)
    for position, document in enumerate(documents):
        if isinstance(document, kinds):
            continue
        if isinstance(document, bytes):
            raise ParameterError(
                f"document {position} is of the type bytes; decode it to a text, or pass an e-mail through "
                "covey.read_message"
            )
        if document is None or document != document:  # noqa: PLR0124 - NaN
            raise ParameterError(
                f"document {position} is missing ({document}); leave it out, or pass an empty text"
            )
        raise ParameterError(
            f"document {position} is of the type {type(document).__name__}, but the first one is of the "
            f"type {type(documents[0]).__name__}; pass only texts or only e-mails"
        )
    return documents


def _reason(X: Any, values: Sequence[Any] | None) -> str | None:
    """Return why documents are no matrix of numbers, if there is more to say than NumPy does."""
    if (names := column_names(X)) is not None:
        name = next((name for name in names if _contains_texts(X, name)), None)
        if name is not None:
            return (
                f"the column {name!r} of the table contains texts; pass the column, such as df[{name!r}], or "
                "for several columns a list of covey.Email(subject=…, text=…)"
            )
    if getattr(X, "ndim", 1) == 2 and any(isinstance(value, str) for value in np.asarray(X).ravel().tolist()):
        return "X is a table of texts; pass one column, or a list of covey.Email(subject=…, text=…)"
    for position, value in enumerate(values or ()):
        if isinstance(value, _DOCUMENT):
            return (
                f"document {position} is of the type {type(value).__name__}, but the first one is of the "
                f"type {type(X[0]).__name__}; pass only texts or only e-mails"
            )
        if isinstance(value, list | tuple) and any(isinstance(item, str) for item in value):
            return f"document {position} is a list of texts; join its words by spaces"
    return None


def _contains_texts(X: Any, name: str) -> bool:
    return any(isinstance(value, str) for value in np.asarray(X[name], dtype=object).tolist())
