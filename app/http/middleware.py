"""What stands before everything: a request id, a byte count, a log line.

Plain ASGI, so that bodies stream through it untouched.
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
"""On every answer that does not say something stricter itself."""


def body_limit(settings: Settings) -> Callable[[str], int]:
    """Path to the most bytes that a body may have there; streamed bodies have limits of their own on top."""
    largest = max(settings.max_upload_bytes, settings.max_artifact_bytes)

    def limit(path: str) -> int:
        return largest if _UPLOADS.fullmatch(path) else settings.max_body_bytes

    return limit


class RequestMiddleware:
    """Counts the bytes of a body as they come, names the request, and logs the answer.

    Args:
        app: what comes after.
        limit: path to the most bytes of a body.
        max_header_bytes: most bytes of all headers.
    """

    def __init__(self, app: ASGIApp, limit: Callable[[str], int], max_header_bytes: int) -> None:
        self._app = app
        self._limit = limit
        self._max_header_bytes = max_header_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = new_id("req")
        scope.setdefault("state", {})["request_id"] = request_id
        started = time.perf_counter()
        status = 0
        limit = self._limit(scope["path"])
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                # FastAPI lets only its own exception through while it reads a body.
                raise HTTPException(TooLarge.status, str(_too_large(limit)))
            return message

        async def answered(message: Message) -> None:
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
                    # What is said to one who has a key is not for a cache to say to others.
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                if _header_bytes(scope) > self._max_header_bytes:
                    error = HeadersTooLarge(
                        f"the request's headers are larger than the limit of {self._max_header_bytes:,} bytes"
                    )
                    await _refuse(error, request_id, answered)
                elif _declared(scope) > limit:
                    await _refuse(_too_large(limit), request_id, answered)
                else:
                    await self._app(scope, counted, answered)
            finally:
                if (done := scope["state"].get("release_rate_limit")) is not None:
                    with CancelScope(shield=True):
                        await to_thread.run_sync(done)
                seconds = time.perf_counter() - started
                route = scope.get("route")
                operation = getattr(route, "operation_id", None) or getattr(route, "unique_id", "none")
                REQUESTS.labels(operation, status).inc()
                SECONDS.labels(operation).observe(seconds)
                # Probes come every second or two and would drown the rest.
                tell = log.debug if scope["path"].startswith("/health/") else log.info
                tell(
                    "request",
                    method=scope["method"],
                    operation=operation,
                    status=status,
                    milliseconds=round(seconds * 1000, 1),
                )


def _declared(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "0")
    return int(length) if length.isdecimal() else 0


def _header_bytes(scope: Scope) -> int:
    return sum(len(name) + len(value) + 4 for name, value in scope["headers"])


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the request's body is larger than the limit of {limit:,} bytes")


async def _refuse(error: ApiError, request_id: str, send: Send) -> None:
    body = error.problem(request_id).model_dump_json(exclude_none=True).encode()
    headers = [
        (b"content-type", PROBLEM_JSON.encode()),
        (b"content-length", str(len(body)).encode()),
        # The rest of the body is not read, so the connection cannot be used again.
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
