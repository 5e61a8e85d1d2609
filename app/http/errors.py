"""Every error that the service answers with, as problem details (RFC 9457).

The tree, with status and code:

    ApiError
      BadRequest          400 malformed_request
      Unauthorized        401 unauthorized
      Forbidden           403 forbidden
      NotFound            404 not_found
      MethodNotAllowed    405 method_not_allowed
      NotAcceptable       406 not_acceptable
      Conflict            409 conflict, or a more telling code
      PreconditionFailed  412 precondition_failed
      TooLarge            413 too_large
      Unsupported         415 unsupported_media_type
      RangeNotSatisfiable 416 range_not_satisfiable
      Invalid             422 invalid_request
      HeadersTooLarge     431 headers_too_large
      TooMany             429 too_many_requests, or a more telling code
      NotReady            503 not_ready
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from models.errors import BadDataError, CoveyError, ParameterError

PROBLEM_JSON = "application/problem+json"


class ProblemItem(BaseModel):
    """One thing that is wrong, and where."""

    pointer: str = Field(examples=["/learner/rounds"])
    """JSON pointer into the request's body; for parameters ``/query/…``, ``/path/…`` or ``/header/…``."""
    message: str
    """What is wrong there."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class BadRecordItem(BaseModel):
    """One record of a data set's content that was refused."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    line: int
    """Its line, or its number in a format without lines; from 1."""
    reason: str
    """What is wrong with it."""
    field: str | None = None
    """The field at fault, as a JSON pointer or a column's name."""


class Problem(BaseModel):
    """What went wrong, and what to do about it."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: str = Field(examples=["urn:covey:problem:not_found"])
    """A name for this kind of problem; ends in the code."""
    title: str
    """The status in words."""
    status: int
    """The HTTP status."""
    detail: str
    """What is wrong and what to do about it, for a person."""
    code: str
    """Stable and documented; what a program should look at."""
    errors: list[ProblemItem] | None = None
    """The places that are wrong, where they can be named."""
    records: list[BadRecordItem] | None = None
    """The first records that were refused, for a data set that failed."""
    log: list[str] | None = None
    """The last lines that a job's process logged, for one that kept dying."""
    request_id: str | None = None
    """The request that was answered with it, as in the service's log."""


class ApiError(Exception):
    """Root of the errors that end a request.

    Args:
        detail: what is wrong and what to do instead, for a person.
        code: a more telling code than the class's own.
        errors: the places at fault, as (pointer, message).
        headers: headers for the answer.
    """

    status: int = 500
    code: str = "internal_error"

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
        self.code = code or type(self).code
        self.errors = list(errors)
        self.headers = dict(headers or {})

    def problem(self, request_id: str | None = None) -> Problem:
        """The answer's body."""
        return make_problem(self.status, self.code, self.detail, errors=self.errors, request_id=request_id)


class BadRequest(ApiError):
    """The request cannot be understood at all."""

    status, code = 400, "malformed_request"


class Unauthorized(ApiError):
    """No key, or one that does not open anything."""

    status, code = 401, "unauthorized"


class Forbidden(ApiError):
    """A key without the scope that this needs."""

    status, code = 403, "forbidden"


class NotFound(ApiError):
    """There is no such thing."""

    status, code = 404, "not_found"


class MethodNotAllowed(ApiError):
    """The path exists, the method does not."""

    status, code = 405, "method_not_allowed"


class NotAcceptable(ApiError):
    """None of the forms that there are is accepted."""

    status, code = 406, "not_acceptable"


class Conflict(ApiError):
    """The thing is not in a state that allows this."""

    status, code = 409, "conflict"


class PreconditionFailed(ApiError):
    """``If-Match`` names another revision."""

    status, code = 412, "precondition_failed"


class TooLarge(ApiError):
    """More than a limit allows."""

    status, code = 413, "too_large"


class HeadersTooLarge(ApiError):
    """More bytes of headers than the limit allows."""

    status, code = 431, "headers_too_large"


class Unsupported(ApiError):
    """A media type or encoding that is not read here."""

    status, code = 415, "unsupported_media_type"


class RangeNotSatisfiable(ApiError):
    """A part of a file that it does not have."""

    status, code = 416, "range_not_satisfiable"


class Invalid(ApiError):
    """Well formed, and not possible as asked."""

    status, code = 422, "invalid_request"


class TooMany(ApiError):
    """More than a key may ask for; ``Retry-After`` says when to ask again."""

    status, code = 429, "too_many_requests"

    def __init__(self, detail: str, *, code: str | None = None, retry_after: float) -> None:
        super().__init__(detail, code=code, headers={"Retry-After": str(max(1, math.ceil(retry_after)))})


class NotReady(ApiError):
    """The service cannot do this now."""

    status, code = 503, "not_ready"


def make_problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[tuple[str, str]] = (),
    request_id: str | None = None,
) -> Problem:
    """A problem with its title and type filled in."""
    return Problem(
        type=f"urn:covey:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=_sendable(detail),
        code=code,
        errors=[
            ProblemItem(pointer=_sendable(pointer), message=_sendable(message)) for pointer, message in errors
        ]
        or None,
        request_id=request_id,
    )


def _sendable(text: str) -> str:
    """A text without halves of surrogate pairs, which JSON can say and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def from_learning(error: CoveyError) -> ApiError:
    """An error of ``models`` that a request caused, as the answer to it."""
    if isinstance(error, ParameterError):
        return Invalid(str(error), code="invalid_parameters", errors=[(error.pointer, str(error))])
    return Invalid(str(error), code=error.code)


def job_problem(error: CoveyError) -> dict[str, Any]:
    """An error of ``models`` that ended a job, as it is kept in the job's row."""
    problem = from_learning(error).problem()
    if isinstance(error, BadDataError):
        problem.records = [
            BadRecordItem(line=record.line, reason=record.reason, field=record.field)
            for record in error.records
        ]
    return problem.model_dump(exclude_none=True)
