"""The errors that a service function raises. They know no HTTP status; ``app/api/errors.py`` has the table.

    ServiceError
      BadRequest          malformed_request
      Forbidden           forbidden, or a more specific code
      NotFound            not_found
      Conflict            a specific code
      PreconditionFailed  precondition_failed
      TooLarge            too_large
      Invalid             invalid_request
      TooMany             too_many_requests, or a more specific code
      InternalError       internal_error
      NotReady            not_ready
        DatabaseFull      database_full
        DatabaseReadOnly  database_read_only
        DatabaseDamaged   database_damaged
        FileDamaged       file_damaged

Errors of the HTTP protocol alone, such as a header that is too long, are in ``app/api/errors.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from models.errors import CoveyError, ParameterError


class ServiceError(Exception):
    """Base of the errors that end a request.

    Args:
        detail: describes the error, and what to do, for a person.
        code: a more specific code than that of the class.
        errors: the invalid values, as (pointer, message).
        retry_after: seconds after which the caller can try again; None if a repetition would not help.
        headers: more headers of the response.
    """

    default_code: ClassVar[str]

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        errors: Sequence[tuple[str, str]] = (),
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or self.default_code
        self.errors = list(errors)
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, math.ceil(retry_after)))


class BadRequest(ServiceError):
    """The request cannot be parsed."""

    default_code = "malformed_request"


class Forbidden(ServiceError):
    """The API key lacks the required scope, or the request may come from a foreign web page."""

    default_code = "forbidden"


class NotFound(ServiceError):
    """The resource does not exist."""

    default_code = "not_found"


class Conflict(ServiceError):
    """The current state of the resource does not allow the operation."""

    def __init__(self, detail: str, *, code: str, errors: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(detail, code=code, errors=errors)


class PreconditionFailed(ServiceError):
    """The caller expects another revision than the current one."""

    default_code = "precondition_failed"


class TooLarge(ServiceError):
    """A limit of size is exceeded."""

    default_code = "too_large"


class Invalid(ServiceError):
    """A value is not valid."""

    default_code = "invalid_request"


class TooMany(ServiceError):
    """The API key exceeds a limit; ``retry_after`` states when to try again."""

    default_code = "too_many_requests"

    def __init__(self, detail: str, *, code: str | None = None, retry_after: float) -> None:
        super().__init__(detail, code=code, retry_after=retry_after)


class InternalError(ServiceError):
    """The service has a bug; the log contains the cause."""

    default_code = "internal_error"


class NotReady(ServiceError):
    """The service cannot do this now."""

    default_code = "not_ready"


class DatabaseFull(NotReady):
    """The disk of the database is full."""

    default_code = "database_full"


class DatabaseReadOnly(NotReady):
    """The database refuses to write."""

    default_code = "database_read_only"


class DatabaseDamaged(NotReady):
    """The database cannot read its own data."""

    default_code = "database_damaged"


class FileDamaged(NotReady):
    """A file in the storage cannot be read.

    Args:
        name: what the file belongs to.
    """

    default_code = "file_damaged"

    def __init__(self, name: str) -> None:
        super().__init__(f"the file of {name} is damaged; restore the storage from a backup", retry_after=60)


def from_library_error(error: CoveyError) -> ServiceError:
    """Convert an error of ``models`` that a request caused."""
    if isinstance(error, ParameterError):
        return Invalid(str(error), code="invalid_parameters", errors=[(error.pointer, str(error))])
    return Invalid(str(error), code=error.code)
