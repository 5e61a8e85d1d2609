"""The middleware in front of every route: request ids, size limits, security headers, access log.

It is plain ASGI, so that bodies stream through it unchanged.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import structlog
from anyio import CancelScope
from fastapi import HTTPException, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api import problem_handlers
from app.api.access_log import AccessLog
from app.api.errors import HeadersTooLarge, problem_of
from app.api.guards import Authenticator, caller_of
from app.api.protocol_errors import error_response
from app.api.proxies import path_without
from app.api.request_head import KEPT_BYTES, MAX_HEADER_BYTES, RequestHead
from app.api.request_ids import caller_request_id, caller_trace_id
from app.api.web_pages import WebPageFilter
from app.errors import BadRequest, NotReady, ServiceError, TooLarge
from app.ids import new_id
from app.logs import REQUEST, RequestIds
from app.metrics import count_request
from app.settings import Settings

if TYPE_CHECKING:  # needs an extra
    from app.telemetry.spans import Spans

log = structlog.get_logger()

_STREAMED = re.compile(r"/v1/datasets/[^/]+/content|/v1/models/[^/]+/versions")
_UPLOADS = re.compile(_STREAMED.pattern + r"|/v1/routers/[^/]+/messages")
_INBOUND = re.compile(r"/v1/routers/[^/]+/inbound/.+")

_RESOURCES = ("/v1/", "/v2/", "/label-studio/")
"""Paths whose responses depend on the API key."""

INBOUND_FACTOR = 4
"""A request of an e-mail provider can be this many times as large as a message, because it can contain the
parts of the message again in base64."""

UNCOUNTED_BYTES = 64 * 1024
"""Each body may hold this much memory without counting, so that small requests are never refused."""


_Header: TypeAlias = tuple[bytes, bytes]

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
"""Headers of every response that does not set stricter ones itself."""


def _encode(headers: Mapping[str, str]) -> Mapping[bytes, _Header]:
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    return {header[0]: header for header in encoded}


_HEADERS = _encode(SECURITY_HEADERS)
_HEADERS_OF_RESOURCES = _encode({**SECURITY_HEADERS, "Cache-Control": "no-store"})


def body_limit(settings: Settings) -> Callable[[str], int]:
    """Return the size limit of bodies by path. Streamed bodies have stricter limits of their own."""

    def limit(path: str) -> int:
        if _INBOUND.fullmatch(path):
            return settings.max_message_bytes * INBOUND_FACTOR
        return settings.max_upload_bytes if _UPLOADS.fullmatch(path) else settings.max_body_bytes

    return limit


CLIENT_SHARE = 0.75
"""Share of the budget that the bodies of one client can take, so that others can send a message, too."""


class BodyBudget:
    """Count the bytes of request bodies that a process holds in memory.

    Args:
        limit: maximum number of bytes.
        largest: the largest body, in bytes; one client can always send one of them if there is room.
    """

    def __init__(self, limit: int, largest: int = 0) -> None:
        self._limit = limit
        self._limit_of_client = max(int(CLIENT_SHARE * limit), largest)
        self._reserved = 0
        self._of_clients: Counter[str] = Counter()

    def reserve(self, client: str, size: int) -> None:
        """Count bytes of a client that have arrived.

        Raises:
            HTTPException: the process holds too many. FastAPI passes on only this exception while it reads a
                body.
        """
        if self._reserved + size > self._limit:
            raise _too_many_bytes("this process holds", self._reserved, self._limit)
        if self._of_clients[client] + size > self._limit_of_client:
            raise _too_many_bytes(
                "this process holds for this client", self._of_clients[client], self._limit_of_client
            )
        self._reserved += size
        self._of_clients[client] += size

    def release(self, client: str, size: int) -> None:
        """Release bytes when their request has ended."""
        self._reserved -= size
        self._of_clients[client] -= size
        if not self._of_clients[client]:
            del self._of_clients[client]


def _too_many_bytes(who: str, held: int, limit: int) -> HTTPException:
    return HTTPException(
        503,
        f"{who} {held:,} bytes of request bodies, and the limit is {limit:,}; try again",
        headers={"Retry-After": "2", "Connection": "close"},
    )


def body_budget(settings: Settings) -> BodyBudget:
    """Return the budget of a process. A body of the largest allowed size always fits."""
    largest = max(settings.max_body_bytes, settings.max_message_bytes * INBOUND_FACTOR)
    return BodyBudget(max(settings.max_bodies_bytes, largest), largest)


def _client(scope: Scope) -> str:
    """Return the API key of a request; its address if it has none."""
    caller = caller_of(scope)
    if caller is not None:
        return caller.id
    address = scope.get("client")
    return "" if address is None else str(address[0])


class RequestMiddleware:
    """Assign request ids, enforce size limits and log every response.

    Args:
        app: the wrapped application.
        root_path: the path prefix of the service behind a proxy.
        limit: returns the size limit of the body for a path, in bytes.
        web_pages: recognizes requests of foreign web pages.
        budget: counts the bytes of all bodies in memory.
        access_log: logs the responses.
    """

    def __init__(
        self,
        app: ASGIApp,
        root_path: str,
        limit: Callable[[str], int],
        web_pages: WebPageFilter,
        budget: BodyBudget,
        access_log: AccessLog,
    ) -> None:
        self._app = app
        self._root_path = root_path
        self._limit = limit
        self._web_pages = web_pages
        self._budget = budget
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state["head"] = head = RequestHead(scope)
        state["request_id"] = request_id = caller_request_id(head) or new_id("req")
        started = time.perf_counter()
        status = 0
        path = scope["path"] = path_without(self._root_path, scope["path"])
        limit = self._limit(path)
        received = counted = 0
        client = ""

        async def receive_counted() -> Message:
            nonlocal received, counted, client
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                # FastAPI passes on only its own exception while it reads a body.
                raise HTTPException(413, str(_too_large(limit)))
            if received > UNCOUNTED_BYTES and _STREAMED.fullmatch(path) is None:
                held = min(received, state.get(KEPT_BYTES, received))
                if (more := held - UNCOUNTED_BYTES - counted) > 0:
                    client = client or _client(scope)
                    self._budget.reserve(client, more)
                    counted += more
            return message

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # A cache must not serve a response of one API key to other clients.
                default = _HEADERS_OF_RESOURCES if path.startswith(_RESOURCES) else _HEADERS
                headers = _with_defaults(message.get("headers", ()), default)
                headers.append((b"x-request-id", request_id.encode()))
                if scope["app"].state.draining:
                    headers = [item for item in headers if item[0] != b"connection"]
                    headers.append((b"connection", b"close"))
                message["headers"] = headers
            await send(message)

        ids = RequestIds(request_id, caller_trace_id(head))
        token = REQUEST.set(ids)
        try:
            error = await self._reason_to_refuse(scope, head, limit)
            if error is not None:
                await _send_problem(path, error, request_id, send_with_headers)
            else:
                await self._app(scope, receive_counted, send_with_headers)
        except Exception as unexpected:
            # The framework would respond to it outside of this middleware, without any of the above.
            if status:
                log.exception("request.internal_error")
                status = 500
                raise  # the server breaks off the response that has begun
            response = await problem_handlers.respond_always(Request(scope, receive), unexpected)
            await response(scope, receive, send_with_headers)
        finally:
            if counted:
                self._budget.release(client, counted)
            if (release := state.get("release_rate_limit")) is not None:
                with CancelScope(shield=True):
                    await release()
            seconds = time.perf_counter() - started
            operation = operation_id(scope.get("route"))
            count_request(operation, status, seconds)
            self._access_log.write(scope["method"], path, operation, status, seconds)
            if (spans := scope["app"].state.spans) is not None:
                _record_span(spans, scope["method"], operation, status, seconds, head, ids)
            REQUEST.reset(token)

    async def _reason_to_refuse(self, scope: Scope, head: RequestHead, limit: int) -> ServiceError | None:
        """Return the error if the head of a request is reason enough to refuse it."""
        if head.n_bytes > MAX_HEADER_BYTES:
            return HeadersTooLarge(
                f"the head of the request is larger than the limit of {MAX_HEADER_BYTES:,} bytes"
            )
        if head.n_hosts != 1 and scope["http_version"] == "1.1":
            return BadRequest("the request must have exactly one Host header")
        error = self._web_pages.reason_to_refuse(scope["method"], head)
        if error is not None and await _allows_anonymous(scope):
            return error
        return _too_large(limit) if head.content_length > limit else None


def _record_span(
    spans: Spans,
    method: str,
    operation: str,
    status: int,
    seconds: float,
    head: RequestHead,
    ids: RequestIds,
) -> None:
    attributes: dict[str, str | int | None] = {
        "http.request.method": method,
        "http.response.status_code": status,
        "covey.request_id": ids.request_id,
        "covey.decision_id": ids.decision_id,
    }
    spans.record(
        operation,
        time.time_ns() - int(seconds * 1e9),
        attributes,
        traceparent=None if ids.trace_id is None else head.get(b"traceparent"),
        is_request=True,
        failed=status == 0 or status >= 500,
    )


def operation_id(route: object) -> str:
    """Return the id of the operation of a route."""
    return getattr(route, "operation_id", None) or getattr(route, "unique_id", None) or "none"


def _with_defaults(headers: Iterable[_Header], default: Mapping[bytes, _Header]) -> list[_Header]:
    """Return the headers of a response, and those default headers that it does not have."""
    completed = list(headers)
    names = {name for name, _ in completed}
    if names.isdisjoint(default):
        completed += default.values()
    else:
        completed += [header for name, header in default.items() if name not in names]
    return completed


async def _allows_anonymous(scope: Scope) -> bool:
    """Whether the service accepts anonymous requests. A process that was open stays open without database."""
    authenticator: Authenticator = scope["app"].state.authenticator
    try:
        return await authenticator.allows_anonymous()
    except NotReady:
        return True


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the request's body is larger than the limit of {limit:,} bytes")


async def _send_problem(path: str, error: ServiceError, request_id: str, send: Send) -> None:
    response = error_response(path, problem_of(error, request_id))
    # The rest of the body stays unread, so the connection cannot be reused.
    headers = [*response.raw_headers, (b"connection", b"close")]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
