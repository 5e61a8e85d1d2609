"""Every exception of the package.

The class tree, with the status of the responses:

    CoveyError
      ConnectionFailed        no response: the service cannot be reached, or the connection broke
      UnexpectedResponse      a response that is not from the service, or from a newer one
      WaitTimeout             the wait for a job or data set took too long
      WorkFailed              a job or data set failed
        DatasetFailed         ... the content of a data set cannot be used; `records` names the lines
      WorkCancelled           a job was cancelled
      ProblemError            the service returned a problem
        BadRequest            400
        Unauthorized          401
        Forbidden             403
        NotFound              404
        NotAcceptable         406
        RequestTimeout        408
        Conflict              409
        PreconditionFailed    412
        TooLarge              413
        UnsupportedMediaType  415
        RangeNotSatisfiable   416
        InvalidRequest        422
        TooManyRequests       429
        HeadersTooLarge       431
        ServerError           500 and the other statuses from 500
          ServiceUnavailable  503
      NotRouted               a message has no decision; send it again later

`ProblemError.code` tells problems of one status apart. The page about error codes lists them, and what to do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from covey_client.generated.models import BadRecordItem, Dataset, Problem


class CoveyError(Exception):
    """Base class of all errors of this package."""

    attempts: int = 1
    """How often the request was sent."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the attributes, so that a process pool can return the error."""
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[CoveyError], args: tuple[Any, ...], attributes: dict[str, Any]) -> CoveyError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


class ConnectionFailed(CoveyError):
    """The service could not be reached, or the connection broke before the whole response arrived."""


class UnexpectedResponse(CoveyError):
    """The response cannot be read: it is not from the service, or the service is newer than this package."""


class WaitTimeout(CoveyError, TimeoutError):
    """The work did not end in time. It continues: you can wait for it again.

    Attributes:
        work: the job, experiment, evaluation, batch prediction or data set, as it was when it was created or
            passed to ``wait``.
    """

    def __init__(self, work: Any) -> None:
        self.work = work
        super().__init__(f"{work.id} has not ended in time")


@dataclass(frozen=True)
class FieldError:
    """One wrong field of a request.

    Attributes:
        pointer: JSON pointer (RFC 6901) to the field in the body; `/query/…`, `/path/…` and `/header/…` refer
            to a parameter.
        message: what is wrong.
    """

    pointer: str
    message: str


class WorkFailed(CoveyError):
    """A job or data set failed.

    Attributes:
        work: the job, experiment, evaluation, batch prediction or data set.
        code: error code.
        detail: what went wrong, for people.
        errors: the fields of the request that caused the failure.
    """

    def __init__(self, work: Any, problem: Problem | None) -> None:
        self.work = work
        self.problem = problem
        self.code = "" if problem is None else problem.code
        self.detail = "no reason was recorded" if problem is None else problem.detail
        self.errors = [] if problem is None else _field_errors(problem.to_dict())
        super().__init__(f"{work.id} failed: {self.code}: {self.detail}")


class DatasetFailed(WorkFailed):
    """The content of a data set cannot be used.

    Attributes:
        records: the first invalid records, each with its line and the reason.
    """

    work: Dataset

    @property
    def records(self) -> Sequence[BadRecordItem]:
        """The first invalid records."""
        return (self.problem.records if self.problem is not None else None) or []


class WorkCancelled(CoveyError):
    """A job was cancelled.

    Attributes:
        work: the job, experiment or batch prediction.
    """

    def __init__(self, work: Any) -> None:
        self.work = work
        super().__init__(f"{work.id} was cancelled")


class NotRouted(CoveyError):
    """A message has no decision, for whatever reason. Keep the message, and send it again later.

    Sending it again is safe: the service returns the first decision. `__cause__` is the error behind it.
    """

    exit_status: ClassVar[int] = 75
    """The status with which a program for a mail server must end, so that the server keeps the message and
    tries again (EX_TEMPFAIL of `sysexits.h`)."""


class ProblemError(CoveyError):
    """The service returned a problem (RFC 9457).

    Attributes:
        status: status of the response.
        code: error code, for programs.
        detail: what is wrong, for people.
        errors: the wrong fields, each with a JSON pointer.
        request_id: id of the request in the log of the service; empty if a proxy sent the response.
        retry_after: how long to wait before trying again, in seconds; None if the response does not say.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = list(errors)
        self.request_id = request_id
        self.retry_after = retry_after
        reference = f" ({request_id})" if request_id else ""
        super().__init__(f"{status} {code}: {detail}{reference}")


class BadRequest(ProblemError):
    """400: the body does not match its media type."""


class Unauthorized(ProblemError):
    """401: the API key is missing or not valid."""


class Forbidden(ProblemError):
    """403: the API key does not have the scope."""


class NotFound(ProblemError):
    """404: the resource does not exist."""


class NotAcceptable(ProblemError):
    """406: the operation cannot return the media type."""


class RequestTimeout(ProblemError):
    """408: the request arrived too slowly."""


class Conflict(ProblemError):
    """409: the state of a resource does not allow the request."""


class PreconditionFailed(ProblemError):
    """412: the alias has changed."""


class TooLarge(ProblemError):
    """413: the request exceeds a limit."""


class UnsupportedMediaType(ProblemError):
    """415: the operation does not support the media type or encoding."""


class RangeNotSatisfiable(ProblemError):
    """416: the range is not a part of the file."""


class InvalidRequest(ProblemError):
    """422: fields or parameters are wrong; `errors` names them."""


class TooManyRequests(ProblemError):
    """429: the API key exceeds a limit on requests, jobs or streams."""


class HeadersTooLarge(ProblemError):
    """431: the headers exceed a limit."""


class ServerError(ProblemError):
    """500 and the other statuses from 500."""


class ServiceUnavailable(ServerError):
    """503: the service cannot process the request now."""


_CLASSES: dict[int, type[ProblemError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    406: NotAcceptable,
    408: RequestTimeout,
    409: Conflict,
    412: PreconditionFailed,
    413: TooLarge,
    415: UnsupportedMediaType,
    416: RangeNotSatisfiable,
    422: InvalidRequest,
    429: TooManyRequests,
    431: HeadersTooLarge,
    503: ServiceUnavailable,
}


def class_for(status: int) -> type[ProblemError]:
    """Return the class of the problems with a status.

    >>> class_for(404).__name__, class_for(502).__name__, class_for(418).__name__
    ('NotFound', 'ServerError', 'ProblemError')
    """
    return _CLASSES.get(status, ServerError if status >= 500 else ProblemError)


def problem_error(status: int, content: bytes, reason: str, retry_after: float | None) -> ProblemError:
    """Return the exception for a response.

    Args:
        status: status of the response, from 400.
        content: its body; not a problem if a proxy sent it.
        reason: name of the status.
        retry_after: see ``ProblemError``.
    """
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    fields: Mapping[str, Any] = body if isinstance(body, dict) else {}
    return class_for(status)(
        status,
        str(fields.get("code", "error")),
        str(fields.get("detail", reason)),
        errors=_field_errors(fields),
        request_id=str(fields.get("request_id", "")),
        retry_after=retry_after,
    )


def _field_errors(problem: Mapping[str, Any]) -> list[FieldError]:
    try:
        return [FieldError(str(error["pointer"]), str(error["message"])) for error in problem["errors"]]
    except (KeyError, TypeError):  # without fields, or not from the service
        return []
