"""What a proxy in front of the service says about a request: the scheme, the client, and the path prefix.

Pages, redirects and cookies contain the prefix, ``root_path`` in ASGI. All that comes before the router sees
paths without it.
"""

from __future__ import annotations

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.api.request_head import RequestHead
from app.settings.checks import ROOT_PATH


class ProxyHeaders(ProxyHeadersMiddleware):
    """The innermost middleware: it reads the headers of trusted proxies.

    Args:
        app: the wrapped application.
        trusted_proxies: addresses and networks of proxies; ``*`` for every client.
        root_path: the path prefix without such a header.
    """

    def __init__(self, app: ASGIApp, trusted_proxies: list[str], root_path: str) -> None:
        super().__init__(app, trusted_proxies)  # type: ignore[arg-type]
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # type: ignore[override]
        """Process one request."""
        if scope["type"] == "http" and (prefix := self._prefix(scope)):
            scope["root_path"] = prefix
            scope["path"] = prefix + scope["path"]
        await super().__call__(scope, receive, send)  # type: ignore[arg-type]

    def _prefix(self, scope: Scope) -> str:
        head: RequestHead = scope["state"]["head"]
        given = head.get(b"x-forwarded-prefix")
        if given is None or (scope.get("client") or ("",))[0] not in self.trusted_hosts:
            return self._root_path
        prefix = given.strip().rstrip("/")
        return prefix if ROOT_PATH.fullmatch(prefix) else self._root_path


def root_path(request: Request) -> str:
    """Return the path prefix of the service for a request; empty without one."""
    prefix: str = request.scope.get("root_path", "")
    return prefix


def own_path(request: Request) -> str:
    """Return the path of a request without the path prefix."""
    path: str = request.scope["path"]
    return path.removeprefix(root_path(request))


def path_without(root_path: str, path: str) -> str:
    """Return a path without the prefix that a proxy can leave, and without a slash at the end.

    >>> path_without("/covey", "/covey/v1/models/"), path_without("/covey", "/v1/models")
    ('/v1/models', '/v1/models')
    >>> path_without("/covey", "/covey"), path_without("", "/"), path_without("/covey", "/coveys")
    ('/', '/', '/coveys')
    """
    if root_path and path.startswith(root_path) and path[len(root_path) :][:1] in ("", "/"):
        path = path[len(root_path) :]
    return path.removesuffix("/") or "/"
