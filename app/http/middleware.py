"""The middleware in front of every route: request ids, size limits, security headers, access log.

It is plain ASGI, so that bodies stream through it unchanged.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import structlog
from anyio import CancelScope, to_thread
from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.errors import PROBLEM_JSON, ApiError, HeadersTooLarge, TooLarge
from app.ids import new_id
from app.metrics import REQUESTS, SECONDS
from app.settings import Settings

log = structlog.get_logger()

_UPLOADS = re.compile(r"/v1/datasets/[^/]+/content|/v1/models/[^/]+/versions|/v1/routers/[^/]+/messages")


SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
"""Headers of every response that does not set stricter ones itself."""


def body_limit(settings: Settings) -> Callable[[str], int]:
    """Return the size limit of bodies by path. Streamed bodies have stricter limits of their own."""
    largest = max(settings.max_upload_bytes, settings.max_artifact_bytes)

    def limit(path: str) -> int:
        return largest if _UPLOADS.fullmatch(path) else settings.max_body_bytes

    return limit


class RequestMiddleware:
    """Assigns request ids, enforces size limits and logs every response.

    Args:
        app: the wrapped application.
        limit: returns the size limit of the body for a path, in bytes.
        max_header_bytes: size limit of all headers, in bytes.
    """

    def __init__(self, app: ASGIApp, limit: Callable[[str], int], max_header_bytes: int) -> None:
        self._app = app
        self._limit = limit
        self._max_header_bytes = max_header_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = new_id("req")
        scope.setdefault("state", {})["request_id"] = request_id
        started = time.perf_counter()
        status = 0
        limit = self._limit(scope["path"])
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                # FastAPI passes on only its own exception while it reads a body.
                raise HTTPException(TooLarge.status, str(_too_large(limit)))
            return message

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                if scope["app"].state.draining:
                    headers["Connection"] = "close"
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith("/v1/"):
                    # A cache must not serve a response of one API key to other clients.
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                if _header_bytes(scope) > self._max_header_bytes:
                    error = HeadersTooLarge(
                        f"the request's headers are larger than the limit of {self._max_header_bytes:,} bytes"
                    )
                    await _send_problem(error, request_id, send_with_headers)
                elif _content_length(scope) > limit:
                    await _send_problem(_too_large(limit), request_id, send_with_headers)
                else:
                    await self._app(scope, receive_counted, send_with_headers)
            finally:
                if (release := scope["state"].get("release_rate_limit")) is not None:
                    with CancelScope(shield=True):
                        await to_thread.run_sync(release)
                seconds = time.perf_counter() - started
                route = scope.get("route")
                operation = getattr(route, "operation_id", None) or getattr(route, "unique_id", "none")
                REQUESTS.labels(operation, status).inc()
                SECONDS.labels(operation).observe(seconds)
                # Health checks are frequent and would hide the other requests.
                write = log.debug if scope["path"].startswith("/health/") else log.info
                write(
                    "request",
                    method=scope["method"],
                    operation=operation,
                    status=status,
                    milliseconds=round(seconds * 1000, 1),
                )


def _content_length(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "0")
    return int(length) if length.isdecimal() else 0


def _header_bytes(scope: Scope) -> int:
    return sum(len(name) + len(value) + 4 for name, value in scope["headers"])


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the request's body is larger than the limit of {limit:,} bytes")


async def _send_problem(error: ApiError, request_id: str, send: Send) -> None:
    body = error.problem(request_id).model_dump_json(exclude_none=True).encode()
    headers = [
        (b"content-type", PROBLEM_JSON.encode()),
        (b"content-length", str(len(body)).encode()),
        # The rest of the body stays unread, so the connection cannot be reused.
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
