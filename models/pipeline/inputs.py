"""Accepts documents in the forms in which a notebook has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from models.base.column_names import column_names
from models.base.validation import as_feature_matrix
from models.data.examples import Documents, FeatureRows, Kind
from models.errors import ParameterError
from models.mail import Email, MailDocument


def as_documents(X: Any) -> Documents | Sequence[MailDocument]:
    """Return documents as a list of texts or of e-mails, or as rows of numbers.

    Args:
        X: n documents: a list or a column of texts or e-mails, rows of numbers as ``FeatureRows``, or an
            (n, r) matrix or table of numbers. The columns of a table keep their names; others are numbered.

    Raises:
        ParameterError: ``X`` is a single text or e-mail, an iterator, or a mixture.
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
    if isinstance(X, Sequence) and (not X or isinstance(X[0], str | Email | MailDocument)):
        return _of_one_kind(X)
    if getattr(X, "ndim", None) == 1 and not sparse.issparse(X):
        values = np.asarray(X).tolist()
        if values and isinstance(values[0], str | Email | MailDocument):
            return _of_one_kind(values)
    matrix = as_feature_matrix(X)
    return FeatureRows(column_names(X) or numbered(matrix.shape[1]), matrix)


def numbered(n: int) -> list[str]:
    """Return the names of n unnamed columns. They sort like their numbers.

    >>> numbered(11)[:2], numbered(2)
    (['00', '01'], ['0', '1'])
    """
    width = len(str(max(n - 1, 0)))
    return [f"{j:0{width}}" for j in range(n)]


def kind_of(documents: Documents | Sequence[MailDocument]) -> Kind:
    """Return the kind of documents."""
    if isinstance(documents, FeatureRows):
        return "features"
    return "text" if not documents or isinstance(documents[0], str) else "email"


def _of_one_kind(documents: Sequence[Any]) -> Documents | Sequence[MailDocument]:
    kinds = (str,) if documents and isinstance(documents[0], str) else (Email, MailDocument)
    for position, document in enumerate(documents):
        if not isinstance(document, kinds):
            raise ParameterError(
                f"document {position} is of the type {type(document).__name__}, but the first one is of the "
                f"type {type(documents[0]).__name__}; pass only texts or only e-mails"
            )
    return documents
