"""The guard before every route: a key with the right scope, unless the service is open.

It is open only on loopback, and only while no key has been made.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

from anyio import to_thread
from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.errors import Forbidden, Unauthorized
from app.keys import service
from app.keys.schemas import Scope

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="ApiKey",
    description="An API key, `cov_…`. Needed once a key has been made.",
)


def require(scope: Scope) -> Callable[..., None]:
    """A dependency that lets a request pass if its key has the scope, or ``admin``."""

    def guard(
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)],
    ) -> None:
        if getattr(request.state, "admitted", None) == scope:
            return
        env = request.app.state.environment
        # No key, and one that opens nothing, take the same steps.
        secret = "" if credentials is None else credentials.credentials
        key = service.opened_by(env.db, secret, datetime.now(UTC))
        if key is None:
            is_open = is_loopback(env.settings.host) and not service.any_exist(env.db)
            if credentials is None and is_open:
                request.state.admitted = scope
                return
            detail = (
                "this service needs an API key; send it as Authorization: Bearer cov_…"
                if credentials is None
                else "this API key is unknown or has expired"
            )
            raise Unauthorized(detail, headers={"WWW-Authenticate": "Bearer"})
        if scope not in key.scopes and "admin" not in key.scopes:
            raise Forbidden(f"this API key lacks the scope {scope}; it has {', '.join(key.scopes)}")
        request.state.answered = request.app.state.rates.enter(key.id)
        request.state.key_id = key.id
        request.state.scopes = key.scopes
        request.state.admitted = scope

    return guard


def has_scope(request: Request, scope: Scope) -> bool:
    """Whether the request, which a guard has let pass, could also pass the guard of another scope."""
    scopes = getattr(request.state, "scopes", None)  # None: the service is open
    return scopes is None or scope in scopes or "admin" in scopes


async def admit(request: Request, guard: Callable[..., None]) -> None:
    """Ask a guard now, before the request's body is read; asked again, it lets the request pass.

    Raises:
        Unauthorized: no key, or one that opens nothing.
        Forbidden: the key lacks the scope.
    """
    await to_thread.run_sync(guard, request, await bearer(request))


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
