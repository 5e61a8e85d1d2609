"""Every exception as a problem document; no answer of the service has another error shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from sqlalchemy.exc import DataError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import compile_path

from app.db.session import DATABASE_UNAVAILABLE
from app.http.errors import PROBLEM_JSON, ApiError, Invalid, NotReady, Problem, make_problem
from app.http.json_body import escaped
from app.storage import StorageUnavailableError
from app.storage.interface import DISK_UNAVAILABLE

log = structlog.get_logger()

_CODES = {
    400: "malformed_request",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    413: "too_large",
    415: "unsupported_media_type",
}

_LONGEST_MESSAGE = 500


def install(app: FastAPI) -> None:
    """Register the handlers."""
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_exception)
    for away in DATABASE_UNAVAILABLE:
        app.add_exception_handler(away, _database_away)
    app.add_exception_handler(OSError, _system_error)
    app.add_exception_handler(DataError, _unstorable)
    app.add_exception_handler(StorageUnavailableError, _storage_away)
    app.add_exception_handler(ClientDisconnect, _client_left)
    app.add_exception_handler(Exception, _fault)


def answer(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """The problem as a response."""
    return JSONResponse(
        problem.model_dump(exclude_none=True), problem.status, headers=headers, media_type=PROBLEM_JSON
    )


def _request_id(request: Request) -> str | None:
    return getattr(request.state, "request_id", None)


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)  # noqa: S101 - registered for this class
    return answer(error.problem(_request_id(request)), error.headers)


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class
    places = [(pointer(item, error.body), _message(item)) for item in error.errors()]
    detail = "; ".join(f"{place or 'body'}: {message}" for place, message in places[:3])
    if len(places) > 3:
        detail += f"; and {len(places) - 3} more"
    return answer(Invalid(detail, errors=places).problem(_request_id(request)))


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class
    detail = str(error.detail)
    headers = dict(error.headers or {})
    if error.status_code == 404:
        detail = f"there is nothing at {request.url.path}; see /docs"
    elif error.status_code == 405:
        detail = f"{request.url.path} does not take {request.method}; see /docs"
        headers["Allow"] = ", ".join(_allowed(request))
    code = _CODES.get(error.status_code, "error")
    problem = make_problem(error.status_code, code, detail, request_id=_request_id(request))
    return answer(problem, headers)


def _allowed(request: Request) -> list[str]:
    """What the path takes; each of its methods has a route of its own, and the router names only one's."""
    path = request.scope["path"]
    return sorted(
        {
            method
            for context in iter_route_contexts(request.app.routes)
            if context.path is not None and compile_path(context.path)[0].match(path)
            for method in context.methods or ()
        }
    )


async def _database_away(request: Request, error: Exception) -> Response:
    log.error("database.unavailable", reason=str(getattr(error, "orig", error)))
    away = NotReady("the database does not answer; try again", headers={"Retry-After": "2"})
    return answer(away.problem(_request_id(request)), away.headers)


async def _unstorable(request: Request, error: Exception) -> Response:
    # PostgreSQL keeps no NUL in a text; ids in paths and names are the places where one can come.
    assert isinstance(error, DataError)  # noqa: S101 - registered for this class
    log.warning("request.unstorable", reason=str(error.orig))
    refusal = Invalid("the request holds a value that the database cannot keep or compare, such as NUL")
    return answer(refusal.problem(_request_id(request)))


async def _storage_away(request: Request, error: Exception) -> Response:
    log.error("storage.unavailable", reason=str(error))
    away = NotReady("the storage does not answer; try again", headers={"Retry-After": "5"})
    return answer(away.problem(_request_id(request)), away.headers)


async def _system_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)  # noqa: S101 - registered for this class
    if error.errno not in DISK_UNAVAILABLE:
        return await _fault(request, error)
    log.error("disk.unavailable", reason=error.strerror)
    away = NotReady("the disk takes nothing now; try again later", headers={"Retry-After": "30"})
    return answer(away.problem(_request_id(request)), away.headers)


async def _client_left(request: Request, error: Exception) -> Response:  # noqa: ARG001
    # Nobody reads this; it only keeps a hang-up from being logged as a fault of ours.
    return Response(status_code=400)


async def _fault(request: Request, error: Exception) -> Response:
    log.error("fault", exc_info=error)
    detail = "a fault of the service; it has been logged under this request_id"
    return answer(make_problem(500, "internal_error", detail, request_id=_request_id(request)))


def pointer(item: Mapping[str, Any], body: Any) -> str:
    """A validation error's place as a JSON pointer into the body that was sent.

    Pydantic's places also name the branches of unions, which are no part of the body; following the body
    tells the two apart.

    >>> error = {"type": "greater_than_equal", "loc": ("body", "learner", "mp_boost", "rounds")}
    >>> pointer(error, {"learner": {"algorithm": "mp_boost", "rounds": 0}})
    '/learner/rounds'
    >>> pointer({"type": "missing", "loc": ("query", "limit")}, None)
    '/query/limit'
    """
    head, *location = item["loc"]
    if head == "header":
        return f"/header/{header_name(str(location[0]))}"
    if head != "body":
        return "".join(f"/{escaped(part)}" for part in item["loc"])
    found: list[Any] = []
    place = body
    for i, part in enumerate(location):
        if (isinstance(place, Mapping) and part in place) or (
            isinstance(place, list) and isinstance(part, int) and part < len(place)
        ):
            place = place[part]
        elif not (item["type"] == "missing" and i == len(location) - 1):
            continue
        found.append(part)
    return "".join(f"/{escaped(part)}" for part in found)


def header_name(name: str) -> str:
    """A header's name as it is written in its specification.

    >>> header_name("last-event-id"), header_name("if-match")
    ('Last-Event-ID', 'If-Match')
    """
    return "-".join(part.upper() if part == "id" else part.capitalize() for part in name.split("-"))


def _message(item: dict[str, Any]) -> str:
    message = str(item["msg"]).removeprefix("Value error, ")
    return message if len(message) <= _LONGEST_MESSAGE else message[:_LONGEST_MESSAGE] + "…"
