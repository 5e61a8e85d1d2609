"""The exceptions that ``models`` raises deliberately, as one class hierarchy.

Their messages are for users: each names the place of the problem (a JSON pointer into the parameters, or a
record of a file) and how to fix it. Any other exception that leaves ``models`` is a bug.
"""

from __future__ import annotations

from dataclasses import dataclass


class CoveyError(Exception):
    """Base class of the errors that a user can cause and fix."""

    code = "error"


class ParameterError(CoveyError, ValueError):
    """A parameter or a combination of parameters is invalid.

    Args:
        message: what is wrong and how to fix it.
        pointer: JSON pointer of the parameter inside the training request, for example
            ``/learner/rounds``.

    It is also a ``ValueError`` because scikit-learn's tools expect that from an estimator.
    """

    code = "invalid_parameters"

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer


class SnapshotError(ParameterError):
    """The snapshot to resume from belongs to a training on other data or with other parameters."""


class UnsuitableDataError(CoveyError, ValueError):
    """The data is well-formed, but not suitable for this training: no label, negative features, too large."""

    code = "unsuitable_data"


@dataclass(frozen=True)
class BadRecord:
    """A rejected record of a file.

    Attributes:
        line: 1-based line number, or record number if the format has no lines.
        reason: what is wrong with the record.
        field: the invalid field, as a JSON pointer or a column name; None if the problem is not in one field.
    """

    line: int
    reason: str
    field: str | None = None


class BadDataError(CoveyError, ValueError):
    """A file cannot be read as a data set.

    Args:
        message: what is wrong and how to fix it.
        records: the first rejected records.
        format: the format in which the file was read; None if it was not detected.
    """

    code = "bad_data"

    def __init__(
        self,
        message: str,
        records: list[BadRecord] | None = None,
        format: str | None = None,  # noqa: A002 - the name in the HTTP API
    ) -> None:
        super().__init__(message)
        self.message = message
        self.records = records or []
        self.format = format


class ArtifactError(CoveyError, ValueError):
    """A saved model is damaged, was not written by Covey, or has an unsupported version."""

    code = "bad_artifact"


class NotFittedError(CoveyError, RuntimeError):
    """A learner or pipeline was used for prediction before it was fitted."""

    code = "not_fitted"


class MissingExtraError(ImportError):
    """An optional library is not installed. The message names the extra that installs it."""


class StopTraining(Exception):  # noqa: N818 - a request, not a failure
    """A monitor raises this exception to stop a training at the current step."""
