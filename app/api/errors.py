"""Every error that the API returns, as problem details (RFC 9457).

The class tree, with status and default code:

    ApiError
      BadRequest          400 malformed_request
      Unauthorized        401 unauthorized
      Forbidden           403 forbidden, or a more specific code
      NotFound            404 not_found
      MethodNotAllowed    405 method_not_allowed
      NotAcceptable       406 not_acceptable
      Conflict            409 with a specific code
      RequestTimeout      408 request_timeout
      PreconditionFailed  412 precondition_failed
      TooLarge            413 too_large
      Unsupported         415 unsupported_media_type
      RangeNotSatisfiable 416 range_not_satisfiable
      Invalid             422 invalid_request
      HeadersTooLarge     431 headers_too_large
      TooMany             429 too_many_requests, or a more specific code
      InternalError       500 internal_error
      NotReady            503 not_ready
        DatabaseFull      503 database_full
        DatabaseReadOnly  503 database_read_only
        DatabaseDamaged   503 database_damaged
        FileDamaged       503 file_damaged

Each class is the one place for its status, its code and its description in the OpenAPI document.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from models.errors import BadDataError, CoveyError, MemoryLimitError, ParameterError

PROBLEM_JSON = "application/problem+json"

MAX_ERRORS = 50
"""Maximum number of invalid values that one problem lists."""


class ProblemItem(BaseModel):
    """One invalid value and its place."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    pointer: str = Field(examples=["/learner/rounds"])
    """JSON pointer into the request body; `/query/…`, `/path/…` or `/header/…` for parameters."""
    message: str
    """What is wrong with the value."""


class BadRecordItem(BaseModel):
    """One record of a data set's content that was rejected."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    line: int
    """Line of the record, or number of the record in a format without lines; starts at 1."""
    reason: str
    """What is wrong with the record."""
    field: str | None = None
    """The invalid field, as a JSON pointer or a column name."""


class Problem(BaseModel):
    """Describes an error and its remedy."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: str = Field(examples=["urn:covey:problem:not_found"])
    """URI of this kind of problem; ends with the code."""
    title: str
    """Reason phrase of the status."""
    status: int
    """HTTP status."""
    detail: str
    """Describes the error and the remedy for a person."""
    code: str
    """Stable, documented code for programs."""
    errors: list[ProblemItem] | None = None
    """The invalid values; left out if no single value is at fault."""
    records: list[BadRecordItem] | None = None
    """The first rejected records of a data set that failed."""
    log: list[str] | None = None
    """The last log lines of a job whose process died repeatedly."""
    request_id: str | None = None
    """Id of the request, as in the service's log."""


class ApiError(Exception):
    """Base of the errors that end a request.

    Args:
        detail: describes the error and the remedy for a person.
        code: a more specific code than that of the class.
        errors: the invalid values, as (pointer, message).
        headers: response headers.
    """

    status: ClassVar[int]
    default_code: ClassVar[str]
    description: ClassVar[str]
    """Describes the response in the OpenAPI document."""

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        errors: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or self.default_code
        self.errors = list(errors)
        self.headers = dict(headers or {})

    def problem(self, request_id: str | None = None) -> Problem:
        """Return the response body."""
        return make_problem(self.status, self.code, self.detail, errors=self.errors, request_id=request_id)


class BadRequest(ApiError):
    """The request cannot be parsed."""

    status, default_code = 400, "malformed_request"
    description = "The request cannot be parsed."


class Unauthorized(ApiError):
    """The request needs a valid API key."""

    status, default_code = 401, "unauthorized"
    description = "The request has no API key, or the key is unknown or expired."


class Forbidden(ApiError):
    """The API key lacks the required scope, or the request may come from a foreign web page."""

    status, default_code = 403, "forbidden"
    description = (
        "The API key lacks the required scope. Or the service has no keys, and the request names an "
        "untrusted host or comes from a web page of another origin."
    )


class NotFound(ApiError):
    """The resource does not exist."""

    status, default_code = 404, "not_found"
    description = "The resource does not exist."


class MethodNotAllowed(ApiError):
    """The path exists but does not support the method."""

    status, default_code = 405, "method_not_allowed"
    description = "The path does not support this method."


class NotAcceptable(ApiError):
    """The client accepts none of the available media types."""

    status, default_code = 406, "not_acceptable"
    description = "The client accepts none of the available media types."


class RequestTimeout(ApiError):
    """The request arrives too slowly."""

    status, default_code = 408, "request_timeout"
    description = "The request arrives too slowly."


class Conflict(ApiError):
    """The current state of the resource does not allow the operation."""

    status = 409
    description = "The current state of the resource does not allow the operation."

    def __init__(self, detail: str, *, code: str, errors: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(detail, code=code, errors=errors)


class PreconditionFailed(ApiError):
    """``If-Match`` names another revision."""

    status, default_code = 412, "precondition_failed"
    description = "`If-Match` names another revision than the current one."


class TooLarge(ApiError):
    """The request exceeds a size limit."""

    status, default_code = 413, "too_large"
    description = "The request exceeds a size limit."


class Unsupported(ApiError):
    """The service does not read this media type or encoding."""

    status, default_code = 415, "unsupported_media_type"
    description = "The operation does not read this media type or encoding."


class RangeNotSatisfiable(ApiError):
    """The file does not have the requested range of bytes."""

    status, default_code = 416, "range_not_satisfiable"
    description = "The file does not have the requested range of bytes."


class Invalid(ApiError):
    """The request is well formed, but a value is not valid."""

    status, default_code = 422, "invalid_request"
    description = "The request is well formed, but at least one value is not valid."


class TooMany(ApiError):
    """The API key exceeds a rate limit; ``Retry-After`` states when to try again."""

    status, default_code = 429, "too_many_requests"
    description = "The API key exceeds a rate limit. `Retry-After` states when to try again."

    def __init__(self, detail: str, *, code: str | None = None, retry_after: float) -> None:
        super().__init__(detail, code=code, headers={"Retry-After": str(max(1, math.ceil(retry_after)))})


class HeadersTooLarge(ApiError):
    """The request headers exceed the size limit."""

    status, default_code = 431, "headers_too_large"
    description = "The request headers exceed the size limit."


class InternalError(ApiError):
    """The service has a bug; the log contains the cause."""

    status, default_code = 500, "internal_error"
    description = "Internal error. The service's log contains the cause under the request's id."


class NotReady(ApiError):
    """The service cannot process the request now."""

    status, default_code = 503, "not_ready"
    description = "The service cannot process the request now. `Retry-After` states when to try again."


class DatabaseFull(NotReady):
    """The disk of the database is full."""

    status, default_code = 503, "database_full"


class DatabaseReadOnly(NotReady):
    """The database refuses to write."""

    status, default_code = 503, "database_read_only"


class DatabaseDamaged(NotReady):
    """The database cannot read its own data."""

    status, default_code = 503, "database_damaged"


class FileDamaged(NotReady):
    """A file in the storage cannot be read.

    Args:
        name: what the file belongs to.
    """

    status, default_code = 503, "file_damaged"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the file of {name} is damaged; restore the storage from a backup", headers={"Retry-After": "60"}
        )


ERRORS: Mapping[int, type[ApiError]] = {error.status: error for error in ApiError.__subclasses__()}
"""Error class by HTTP status."""


def make_problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[tuple[str, str]] = (),
    request_id: str | None = None,
) -> Problem:
    """Create a problem and fill in its title and type."""
    return Problem(
        type=f"urn:covey:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=_without_surrogates(detail),
        code=code,
        errors=[
            ProblemItem(pointer=_without_surrogates(pointer), message=_without_surrogates(message))
            for pointer, message in errors
        ]
        or None,
        request_id=request_id,
    )


def _without_surrogates(text: str) -> str:
    """Replace unpaired surrogates, which JSON can express but UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def from_learning(error: CoveyError) -> ApiError:
    """Convert an error of ``models`` that a request caused."""
    if isinstance(error, ParameterError):
        return Invalid(str(error), code="invalid_parameters", errors=[(error.pointer, str(error))])
    return Invalid(str(error), code=error.code)


def job_problem(error: CoveyError) -> dict[str, Any]:
    """Convert an error of ``models`` that ended a job into the JSON value that the job's row stores."""
    if isinstance(error, MemoryLimitError):  # as if the job had exceeded its limit
        return make_problem(500, error.code, str(error)).model_dump(exclude_none=True)
    problem = from_learning(error).problem()
    if isinstance(error, BadDataError):
        problem.records = [
            BadRecordItem(line=record.line, reason=record.reason, field=record.field)
            for record in error.records
        ]
    return problem.model_dump(exclude_none=True)
