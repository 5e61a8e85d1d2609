"""The errors that the library raises deliberately.

Each is a ``CoveyError``, except that of a missing library, and most are also a ``ValueError``. The message
names the place of the problem and how to fix it.
"""

from models.errors import (
    ArtifactError,
    BadDataError,
    BadRecord,
    CoveyError,
    MissingExtraError,
    NotFittedError,
    ParameterError,
    StopTraining,
    UnsuitableDataError,
)

__all__ = [
    "ArtifactError",
    "BadDataError",
    "BadRecord",
    "CoveyError",
    "MissingExtraError",
    "NotFittedError",
    "ParameterError",
    "StopTraining",
    "UnsuitableDataError",
]
