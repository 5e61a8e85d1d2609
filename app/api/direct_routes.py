"""Call the endpoints of predictions and messages without the router and the dependencies of FastAPI.

These operations are most of the traffic, and FastAPI's part of a request would take longer than the
prediction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.background import BackgroundTask
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api import problem_handlers
from app.api.base_route import StrictJSONRoute
from app.api.request_head import KEPT_BYTES, RequestHead
from app.context import AppContext


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
        self.scope["state"][KEPT_BYTES] = limit  # the middleware does not count what is discarded
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
"""The request, for an endpoint that reads its body itself."""


Endpoint = TypeVar("Endpoint", bound=Callable[..., Awaitable[Response]])
"""An endpoint of a direct route."""


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


class DirectRoute(StrictJSONRoute):
    """A route that calls its endpoint itself. FastAPI only documents the operation.

    The endpoint takes a ``DirectRequest``, parameters of the path and parameters of the query. The method is
    POST.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self._path_fields = [(field.name, field) for field in self.dependant.path_params]
        self._query_fields = [(field.alias, field) for field in self.dependant.query_params]

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process one request whose path is that of the route."""
        try:
            if scope["method"] != "POST":
                raise HTTPException(405)
            await self.check(scope)
            response = await self.endpoint(DirectRequest(scope, receive), **self._arguments(scope))
        except Exception as error:  # noqa: BLE001 - raised again if it is unexpected
            response = await problem_handlers.respond(Request(scope, receive), error)
        await response(scope, receive, send)

    def _arguments(self, scope: Scope) -> dict[str, Any]:
        """Return the validated parameters of the path and the query.

        Raises:
            RequestValidationError: a parameter is invalid.
        """
        arguments: dict[str, Any] = {}
        errors: list[Any] = []
        for name, field in self._path_fields:
            arguments[name], wrong = field.validate(scope["path_params"][name], loc=("path", name))
            errors += wrong
        if query := scope["query_string"]:
            given = QueryParams(query)
            for name, field in self._query_fields:
                if name in given:
                    arguments[field.name], wrong = field.validate(given[name], loc=("query", name))
                    errors += wrong
        if errors:
            raise RequestValidationError(errors)
        return arguments


def direct_post(router: APIRouter, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
    """Register a function as the direct route of a path; otherwise as ``router.post`` does."""

    def register(endpoint: Endpoint) -> Endpoint:
        router.add_api_route(path, endpoint, methods=["POST"], route_class_override=DirectRoute, **options)
        return endpoint

    return register


class DirectRoutes:
    """Middleware that passes requests to the direct routes without the router of FastAPI.

    It is one of the innermost middleware, so that the checks of all requests apply to direct routes too.

    Args:
        app: the wrapped application, which handles all other requests.
        routers: the routers that can contain direct routes.
    """

    def __init__(self, app: ASGIApp, routers: Iterable[APIRouter]) -> None:
        self._app = app
        self._routes = [
            route for router in routers for route in router.routes if isinstance(route, DirectRoute)
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process one request."""
        if scope["type"] == "http" and scope["method"] == "POST":
            path = scope["path"]
            for route in self._routes:
                if (match := route.path_regex.match(path)) is not None:
                    scope["route"], scope["path_params"] = route, match.groupdict()
                    await route.handle(scope, receive, send)
                    return
        await self._app(scope, receive, send)
