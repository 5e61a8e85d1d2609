"""Respond to ``HEAD`` and ``OPTIONS``, which no operation declares: so the OpenAPI document has neither."""

from __future__ import annotations

from http import HTTPStatus

from anyio import CancelScope
from fastapi import Request, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problem_handlers import allowed_methods


class HeadAndOptions:
    """Middleware that sends the headers of ``GET`` for ``HEAD``, and the methods of a path for ``OPTIONS``.

    Args:
        app: the wrapped application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process one request."""
        method = scope["method"] if scope["type"] == "http" else ""
        if method == "HEAD":
            await self._send_head(scope, receive, send)
        elif method == "OPTIONS" and (methods := allowed_methods(Request(scope))):
            response = Response(status_code=HTTPStatus.NO_CONTENT, headers={"Allow": ", ".join(methods)})
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _send_head(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request as ``GET`` until its headers are sent. A body can be long, or never end."""
        with CancelScope() as rest:

            async def send_head(message: Message) -> None:
                if message["type"] == "http.response.start":
                    scope["method"] = "HEAD"  # the server sends no body for it
                    await send(message)
                    await send({"type": "http.response.body"})
                    rest.cancel()

            scope["method"] = "GET"
            try:
                await self._app(scope, receive, send_head)
            finally:
                scope["method"] = "HEAD"
