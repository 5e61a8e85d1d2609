"""Every error that learning raises on purpose, as one tree.

Each is told to a person: it names the place (a JSON pointer into the parameters, or a record of a file)
and the remedy. Anything else that escapes from ``models`` is a fault of the program.
"""

from __future__ import annotations

from dataclasses import dataclass


class CoveyError(Exception):
    """Root of the errors that a user can cause and mend."""

    code = "error"


class ParameterError(CoveyError, ValueError):
    """A parameter, or a combination of parameters, that cannot be used.

    Args:
        message: what is wrong and what to do instead.
        pointer: JSON pointer of the parameter inside the training request, for example
            ``/learner/rounds``.

    Being a ``ValueError`` as well, it is what scikit-learn's tools expect of an estimator.
    """

    code = "invalid_parameters"

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer


class SnapshotError(ParameterError):
    """A snapshot to resume from that is of a training on other data or with other parameters."""


class UnsuitableDataError(CoveyError, ValueError):
    """Well-formed data that cannot be learned from as asked (no label, negative features, too large)."""

    code = "unsuitable_data"


@dataclass(frozen=True)
class BadRecord:
    """One record of a file that was refused.

    Attributes:
        line: 1-based line (or record) number.
        reason: what is wrong with it.
        field: the field at fault, as a JSON pointer or a column name, where one can be named.
    """

    line: int
    reason: str
    field: str | None = None


class BadDataError(CoveyError, ValueError):
    """A file that cannot become a data set; carries the first records that were refused."""

    code = "bad_data"

    def __init__(self, message: str, records: list[BadRecord] | None = None) -> None:
        super().__init__(message)
        self.records = records or []


class ArtifactError(CoveyError, ValueError):
    """A saved model that is damaged, foreign or of a version that cannot be read."""

    code = "bad_artifact"


class NotFittedError(CoveyError, RuntimeError):
    """A learner or pipeline was asked to predict before it was fitted."""

    code = "not_fitted"


class StopTraining(Exception):  # noqa: N818 - a request, not a failure
    """Raised by a monitor to end a training at the step it was told about."""
