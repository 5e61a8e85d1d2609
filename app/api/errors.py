"""Turn errors into problem details (RFC 9457), and define the errors of the HTTP protocol.

``RESPONSES`` is the one place for the status of each error, and for its description in the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from pydantic import BaseModel, ConfigDict, Field

from app.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    NotFound,
    NotReady,
    PreconditionFailed,
    ServiceError,
    TooLarge,
    TooMany,
)

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
    """Describes an error and what to do."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: str = Field(examples=["urn:covey:problem:not_found"])
    """URI of this kind of problem; ends with the code."""
    title: str
    """Reason phrase of the status."""
    status: int
    """HTTP status."""
    detail: str
    """Describes the error, and what to do, for a person."""
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


class Unauthorized(ServiceError):
    """The request needs a valid API key."""

    default_code = "unauthorized"


class MethodNotAllowed(ServiceError):
    """The path exists but does not support the method."""

    default_code = "method_not_allowed"


class NotAcceptable(ServiceError):
    """The client accepts none of the available media types."""

    default_code = "not_acceptable"


class RequestTimeout(ServiceError):
    """The request arrives too slowly."""

    default_code = "request_timeout"


class Unsupported(ServiceError):
    """The service does not read this media type or encoding."""

    default_code = "unsupported_media_type"


class RangeNotSatisfiable(ServiceError):
    """The file does not have the requested range of bytes."""

    default_code = "range_not_satisfiable"


class HeadersTooLarge(ServiceError):
    """The request headers exceed the size limit."""

    default_code = "headers_too_large"


@dataclass(frozen=True)
class ErrorResponse:
    """The form in which an error is sent.

    Attributes:
        error: the class of the error; its subclasses are sent in the same way.
        status: HTTP status.
        description: describes the response in the OpenAPI document.
    """

    error: type[ServiceError]
    status: int
    description: str


RESPONSES = (
    ErrorResponse(BadRequest, 400, "The request cannot be parsed."),
    ErrorResponse(Unauthorized, 401, "The request has no API key, or the key is unknown or expired."),
    ErrorResponse(
        Forbidden,
        403,
        "The API key lacks the required scope. Or the service has no keys, and the request names an "
        "untrusted host or comes from a web page of another origin.",
    ),
    ErrorResponse(NotFound, 404, "The resource does not exist."),
    ErrorResponse(MethodNotAllowed, 405, "The path does not support this method."),
    ErrorResponse(NotAcceptable, 406, "The client accepts none of the available media types."),
    ErrorResponse(RequestTimeout, 408, "The request arrives too slowly."),
    ErrorResponse(Conflict, 409, "The current state of the resource does not allow the operation."),
    ErrorResponse(PreconditionFailed, 412, "`If-Match` names another revision than the current one."),
    ErrorResponse(TooLarge, 413, "The request exceeds a size limit."),
    ErrorResponse(Unsupported, 415, "The operation does not read this media type or encoding."),
    ErrorResponse(RangeNotSatisfiable, 416, "The file does not have the requested range of bytes."),
    ErrorResponse(Invalid, 422, "The request is well formed, but at least one value is not valid."),
    ErrorResponse(TooMany, 429, "The API key exceeds a rate limit. `Retry-After` states when to try again."),
    ErrorResponse(HeadersTooLarge, 431, "The request headers exceed the size limit."),
    ErrorResponse(
        InternalError, 500, "Internal error. The service's log contains the cause under the request's id."
    ),
    ErrorResponse(
        NotReady,
        503,
        "The service cannot process the request now. `Retry-After` states when to try again.",
    ),
)

BY_STATUS: Mapping[int, ErrorResponse] = {response.status: response for response in RESPONSES}

_STATUSES: Mapping[type[ServiceError], int] = {response.error: response.status for response in RESPONSES}


def status_of(error: ServiceError) -> int:
    """Return the HTTP status of an error."""
    return next(_STATUSES[base] for base in type(error).__mro__ if base in _STATUSES)


def problem_of(error: ServiceError, request_id: str | None = None) -> Problem:
    """Return the response body of an error."""
    return make_problem(
        status_of(error), error.code, error.detail, errors=error.errors, request_id=request_id
    )


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
