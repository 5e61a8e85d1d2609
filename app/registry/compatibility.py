"""Check whether a version can predict for the examples of a data set."""

from __future__ import annotations

from app.db import tables
from app.errors import Invalid


def check_kind(version: tables.ModelVersion, dataset: tables.Dataset, *, pointer: str) -> None:
    """Check that a version can predict for the examples of a data set.

    A version that was trained on text can predict for e-mail, and the other way round.

    Args:
        version: the version.
        dataset: a data set that is ready.
        pointer: JSON pointer of the data set in the request, for the error.

    Raises:
        Invalid: only one of them has numeric features.
    """
    numeric = version.description["features"]["kind"] == "numeric"
    kind = (dataset.report or {})["kind"]
    if numeric != (kind == "features"):
        required = "features" if numeric else "text or e-mail"
        message = f"the version was trained on {required}, but the data set has {kind}"
        raise Invalid(message, errors=[(pointer, message)])
