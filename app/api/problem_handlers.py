"""Exception handlers: every error response of the service is a problem document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError, IntegrityError, OperationalError
from sqlalchemy.orm.exc import StaleDataError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from app.api.errors import BY_STATUS, MAX_ERRORS, Problem, make_problem, problem_of
from app.api.protocol_errors import error_response
from app.api.proxies import own_path
from app.api.validation_errors import pointer
from app.db.deadlocks import is_deadlock
from app.db.failures import (
    DatabaseDamagedError,
    DatabaseFullError,
    DatabaseReadOnlyError,
    DatabaseStateError,
)
from app.db.session import DATABASE_UNAVAILABLE
from app.db.violations import find_violation
from app.errors import (
    Conflict,
    DatabaseDamaged,
    DatabaseFull,
    DatabaseReadOnly,
    InternalError,
    Invalid,
    NotReady,
    ServiceError,
)
from app.storage import MissingFileError, StorageUnavailableError
from app.storage.interface import UNAVAILABLE_ERRNOS

log = structlog.get_logger()

_MAX_MESSAGE_LENGTH = 500

_FAILURES: Mapping[type[DatabaseStateError], type[NotReady]] = {
    DatabaseFullError: DatabaseFull,
    DatabaseReadOnlyError: DatabaseReadOnly,
    DatabaseDamagedError: DatabaseDamaged,
}


def install(app: FastAPI) -> None:
    """Register the handlers of the errors that are expected."""
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)


async def respond(request: Request, error: Exception) -> Response:
    """Return the response to a request that FastAPI does not handle, and that raised an error.

    Raises:
        Exception: the error is unexpected; the middleware reports it.
    """
    for kind in type(error).__mro__:
        if (handler := _HANDLERS.get(kind)) is not None:
            return await handler(request, error)
    raise error


async def respond_always(request: Request, error: Exception) -> Response:
    """Return the response to a request that raised an error, also if the error is unexpected."""
    try:
        return await respond(request, error)
    except Exception as unexpected:  # noqa: BLE001 - logged, and answered
        return await _internal_error(request, unexpected)


def to_response(request: Request, problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """Convert a problem to the response to a request."""
    return error_response(own_path(request), problem, headers)


def _request_id(request: Request) -> str | None:
    return getattr(request.state, "request_id", None)


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)  # noqa: S101 - registered for this class
    return to_response(request, problem_of(error, _request_id(request)), error.headers)


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class
    places = [(pointer(item, error.body), _message(item)) for item in error.errors()[:MAX_ERRORS]]
    detail = "; ".join(f"{place or 'body'}: {message}" for place, message in places[:3])
    if len(places) > 3:
        at_least = "at least " if len(places) == MAX_ERRORS else ""
        detail += f"; and {at_least}{len(places) - 3} more"
    return to_response(request, problem_of(Invalid(detail, errors=places), _request_id(request)))


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class
    detail = str(error.detail)
    headers = dict(error.headers or {})
    if error.status_code == 404:
        detail = f"the path {request.url.path} does not exist; see /docs"
    elif error.status_code == 405:
        detail = f"{request.url.path} does not support {request.method}; see /docs"
        headers["Allow"] = ", ".join(allowed_methods(request))
    code = BY_STATUS[error.status_code].error.default_code
    problem = make_problem(error.status_code, code, detail, request_id=_request_id(request))
    return to_response(request, problem, headers)


def allowed_methods(request: Request) -> list[str]:
    """Return all methods of a path, or of the service if the path is ``*``; none if the path does not exist.

    Each method is a route of its own, and the router reports only one.
    """
    path = own_path(request)
    methods = {
        method
        for route in request.app.routes
        if path == "*" or route.path_regex.match(path)
        for method in getattr(route, "methods", None) or ["GET"]  # files
    }
    more = {"HEAD", "OPTIONS"} if "GET" in methods else {"OPTIONS"}
    return sorted(methods | more) if methods else []


async def _database_unavailable(request: Request, error: Exception) -> Response:
    if isinstance(error, OperationalError) and is_deadlock(error):
        log.warning("request.conflict", reason="deadlock")
        return _conflict(request, "other requests change the same resource all the time; try again")
    log.error("database.unavailable", reason=str(getattr(error, "orig", error)))
    if isinstance(error, DatabaseStateError):
        problem = _FAILURES[type(error)](
            f"the database is {error.state}; the administrator must {error.hint}",
            retry_after=30,
        )
    else:
        problem = NotReady("the database is unavailable; try again", retry_after=2)
    return to_response(request, problem_of(problem, _request_id(request)), problem.headers)


async def _invalid_data(request: Request, error: Exception) -> Response:
    # PostgreSQL stores no NUL in a text. Ids and names in paths are not validated earlier.
    assert isinstance(error, DataError)  # noqa: S101 - registered for this class
    log.warning("request.invalid_data", reason=str(error.orig))
    refusal = Invalid("the request contains a value that the database cannot store or compare, such as NUL")
    return to_response(request, problem_of(refusal, _request_id(request)))


async def _integrity_error(request: Request, error: Exception) -> Response:
    """Report that another request has created or deleted what this one relies on.

    Services lock what they rely on, and name the resources in their errors. This handler is for a case that
    none of them foresees.
    """
    assert isinstance(error, IntegrityError)  # noqa: S101 - registered for this class
    violation = find_violation(error)
    if violation is None:
        return await _internal_error(request, error)
    log.warning("request.conflict", reason=violation)
    return _conflict(request, f"another request changed {violation} at the same time; try again")


async def _stale_data(request: Request, error: Exception) -> Response:
    log.warning("request.conflict", reason=str(error))
    return _conflict(
        request, "another request deleted the resource at the same time; check whether it exists"
    )


def _conflict(request: Request, detail: str) -> Response:
    return to_response(request, problem_of(Conflict(detail, code="conflict"), _request_id(request)))


async def _storage_unavailable(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)  # noqa: S101 - registered for errors of the operating system
    log.error("storage.unavailable", reason=error.strerror)
    problem = NotReady(
        "the storage is unavailable or full; try again later",
        code="storage_unavailable",
        retry_after=5,
    )
    return to_response(request, problem_of(problem, _request_id(request)), problem.headers)


async def _missing_file(request: Request, error: Exception) -> Response:
    assert isinstance(error, MissingFileError)  # noqa: S101 - registered for this class
    log.error("storage.file_missing", key=error.key)
    problem = NotReady(
        "the storage does not contain a file of this resource; restore the storage from a backup",
        code="file_missing",
        retry_after=60,
    )
    return to_response(request, problem_of(problem, _request_id(request)), problem.headers)


async def _system_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)  # noqa: S101 - registered for this class
    if error.errno in UNAVAILABLE_ERRNOS:
        return await _storage_unavailable(request, error)
    return await _internal_error(request, error)


async def _client_disconnected(request: Request, error: Exception) -> Response:  # noqa: ARG001
    # No client reads this response; it prevents that a closed connection is logged as an internal error.
    return Response(status_code=400)


async def _internal_error(request: Request, error: Exception) -> Response:
    log.error("request.internal_error", exc_info=error)
    failure = InternalError("internal error; the service's log contains the cause under this request_id")
    return to_response(request, problem_of(failure, _request_id(request)))


_HANDLERS: Mapping[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
    ServiceError: _api_error,
    RequestValidationError: _validation_error,
    HTTPException: _http_exception,
    **dict.fromkeys(DATABASE_UNAVAILABLE, _database_unavailable),
    OSError: _system_error,
    DataError: _invalid_data,
    IntegrityError: _integrity_error,
    StaleDataError: _stale_data,
    StorageUnavailableError: _storage_unavailable,
    MissingFileError: _missing_file,
    ClientDisconnect: _client_disconnected,
}


def _message(item: dict[str, Any]) -> str:
    message = str(item["msg"]).removeprefix("Value error, ")
    return message if len(message) <= _MAX_MESSAGE_LENGTH else message[:_MAX_MESSAGE_LENGTH] + "…"
