"""Reject label coverings that a version cannot be measured by."""

from __future__ import annotations

from app.db import tables
from app.errors import Invalid, from_library_error
from models.covering import Covering
from models.errors import ParameterError


def check_measured_covering(covering: Covering | None, dataset: tables.Dataset) -> None:
    """Check that the measures of a covering are defined on a data set.

    Args:
        covering: the covering; None if the request has none.
        dataset: a ready data set.

    Raises:
        Invalid: labels of some examples are unknown.
    """
    if covering is not None and (dataset.report or {})["n_with_unknown"]:
        message = "labels of some examples are unknown, so covering errors are not defined; omit covering"
        raise Invalid(message, errors=[("/covering", message)])


def check_covering_of_version(covering: Covering, version: tables.ModelVersion) -> None:
    """Check that a covering fits the labels of a version.

    Args:
        covering: the covering.
        version: the version.

    Raises:
        Invalid: the covering names a label that the version does not have, or leaves a label uncovered.
    """
    try:
        covering.compile(version.description["labels"], pointer="/covering")
    except ParameterError as error:
        raise from_library_error(error) from error
