"""Compares the columns of a table with those of the training, as scikit-learn does."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

_MAX_LISTED = 5


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a table; None for a matrix, or if a name is no text.

    >>> column_names(np.eye(2)) is None
    True
    """
    # The attribute ``columns`` of a table of Arrow contains arrays.
    names = list(getattr(X, "column_names" if hasattr(X, "column_names") else "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def numbered(n: int) -> list[str]:
    """Return the names of n unnamed columns. They sort like their numbers.

    >>> numbered(11)[:2], numbered(2)
    (['00', '01'], ['0', '1'])
    """
    width = len(str(max(n - 1, 0)))
    return [f"{j:0{width}}" for j in range(n)]


def set_column_names(estimator: Any, X: Any) -> None:
    """Set ``feature_names_in_`` to the names of the columns; remove it if they have none."""
    names = column_names(X)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    else:
        estimator.__dict__.pop("feature_names_in_", None)


def check_column_names(estimator: Any, X: Any) -> None:
    """Check that a table has the columns of the training in the same order.

    It warns if only one of the two has names: columns are then matched by position.

    Raises:
        ValueError: the names differ.
    """
    names, known = column_names(X), getattr(estimator, "feature_names_in_", None)
    kind = type(estimator).__name__
    if names is None and known is not None:
        warnings.warn(
            f"X does not have valid feature names, but {kind} was fitted with feature names", stacklevel=4
        )
    elif names is not None and known is None:
        warnings.warn(f"X has feature names, but {kind} was fitted without feature names", stacklevel=4)
    elif names is not None and known is not None and names != known.tolist():
        raise ValueError(_difference(names, known.tolist()))


def _difference(names: list[str], known: list[str]) -> str:
    parts = ["The feature names should match those that were passed during fit."]
    if unseen := sorted(set(names) - set(known)):
        parts += ["Feature names unseen at fit time:", *_listed(unseen)]
    if missing := sorted(set(known) - set(names)):
        parts += ["Feature names seen at fit time, yet now missing:", *_listed(missing)]
    if not unseen and not missing:
        parts.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(parts) + "\n"


def _listed(names: list[str]) -> list[str]:
    return [f"- {name}" for name in names[:_MAX_LISTED]] + ["- ..."] * (len(names) > _MAX_LISTED)
