"""Calls the endpoints of predictions and messages without the router and the dependencies of FastAPI.

These operations are most of the traffic, and FastAPI's part of a request would take longer than the
prediction. The same functions are documented FastAPI routes, which serve the rare requests that this module
does not recognize, such as those with an unusual query.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Depends, Request, Response
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api import problem_handlers
from app.api.guards import Scope as KeyScope
from app.api.guards import authorize
from app.api.request_head import RequestHead, check_media_type
from app.context import AppContext

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""Names of models and routers, as ``app.api.schemas.Name`` documents them."""


class DirectRequest:
    """A request that an endpoint reads itself.

    Args:
        scope: the ASGI scope.
        receive: receives the body.

    Attributes:
        head: the headers.
        state: state of the application, with the same attributes as ``app.state``.
    """

    __slots__ = ("_receive", "head", "scope", "state")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self._receive = receive
        self.head: RequestHead = scope["state"]["head"]
        self.state: Any = scope["app"].state

    @property
    def context(self) -> AppContext:
        """The context of the process."""
        context: AppContext = self.state.context
        return context

    async def body(self) -> bytes:
        """Return the whole body, whose size the middleware limits.

        Raises:
            ClientDisconnect: the client has closed the connection.
        """
        chunk, more = await self._chunk()
        if not more:
            return chunk
        chunks = [chunk]
        while more:
            chunk, more = await self._chunk()
            chunks.append(chunk)
        return b"".join(chunks)

    async def body_up_to(self, limit: int) -> tuple[bytes, bool]:
        """Return the first bytes of the body, and whether the body is longer; discard the other bytes.

        Args:
            limit: maximum number of bytes to return.

        Raises:
            ClientDisconnect: the client has closed the connection.
        """
        chunk, more = await self._chunk()
        if not more and len(chunk) <= limit:
            return chunk, False
        received = len(chunk)
        first_bytes = bytearray(chunk[:limit])
        while more:
            chunk, more = await self._chunk()
            received += len(chunk)
            first_bytes += chunk[: limit - len(first_bytes)]
        return bytes(first_bytes), received > limit

    async def _chunk(self) -> tuple[bytes, bool]:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        return message.get("body", b""), message.get("more_body", False)


def _direct_request(request: Request) -> DirectRequest:
    return DirectRequest(request.scope, request.receive)


Direct = Annotated[DirectRequest, Depends(_direct_request)]
"""The request, for an endpoint that is a direct route and a FastAPI route."""


class JsonResponse(Response):
    """A response that is JSON already.

    Args:
        body: the JSON text.
        background: runs after the response was sent.
    """

    media_type = "application/json"

    def __init__(self, body: bytes, background: BackgroundTask | None = None) -> None:
        # The constructor of the base class takes ten times as long.
        self.body = body
        self.status_code = 200
        self.background = background
        self.raw_headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
        ]


@dataclass(frozen=True, slots=True)
class DirectRoute:
    """An endpoint of ``POST /v1/<collection>/<name>/<action>``.

    Attributes:
        collection: the second part of the path.
        action: the last part of the path.
        unique_id: id of the operation in logs, metrics and the OpenAPI document.
        required: the scope that a key must have.
        media_types: media types of the body.
        endpoint: handles a request, given the name in the path and the arguments of its query.
        queries: the arguments of each query that FastAPI need not parse.
    """

    collection: str
    action: str
    unique_id: str
    required: KeyScope
    media_types: frozenset[str]
    endpoint: Callable[..., Awaitable[Response]]
    queries: Mapping[bytes, Mapping[str, Any]] = field(default_factory=lambda: {b"": {}})


class DirectRoutes:
    """Middleware that calls the endpoints of direct routes, and passes on all other requests.

    It is one of the innermost middleware, so that the checks of all requests apply to direct routes too.

    Args:
        app: the wrapped application.
        routes: the direct routes.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[DirectRoute]) -> None:
        self._app = app
        self._routes = {(route.collection, route.action): route for route in routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process one request."""
        route, name = self._match(scope)
        if route is None or (arguments := route.queries.get(scope["query_string"])) is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = route
        try:
            request = DirectRequest(scope, receive)
            await authorize(request.scope, request.head.bearer, route.required)
            check_media_type(request.head, route.media_types)
            response = await route.endpoint(request, name, **arguments)
        except Exception as error:  # noqa: BLE001 - raised again if it is unexpected
            response = await problem_handlers.respond(Request(scope, receive), error)
        await response(scope, receive, send)

    def _match(self, scope: Scope) -> tuple[DirectRoute | None, str]:
        """Return the route of a request and the name in its path; None if FastAPI must handle it."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return None, ""
        parts = scope["path"].split("/")
        if len(parts) != 5 or parts[0] or parts[1] != "v1":
            return None, ""
        _, _, collection, name, action = parts
        route = self._routes.get((collection, action))
        if route is None or _NAME.fullmatch(name) is None:
            return None, ""
        return route, name
