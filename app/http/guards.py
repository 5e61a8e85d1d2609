"""The guard in front of every route: it requires an API key with the right scope.

If the service listens on loopback and has never had a key, it accepts anonymous requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from anyio import to_thread
from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import Field
from typing_extensions import TypeAliasType

from app.http.errors import Forbidden, Unauthorized

Scope = TypeAliasType(
    "Scope",
    Annotated[
        Literal["read", "predict", "train", "admin"],
        Field(description="What a key permits; `admin` permits everything."),
    ],
)

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="ApiKey",
    description="An API key, `cov_…`. Required as soon as the service has a key.",
)


@dataclass(frozen=True)
class Caller:
    """The API key of a request.

    Attributes:
        key_id: id of the key.
        scopes: what the key permits.
    """

    key_id: str
    scopes: Sequence[str]


class Authenticator(Protocol):
    """Finds out who sends a request.

    Attributes:
        requires_keys: whether the service is known to require keys; if not, ``allows_anonymous`` asks.
    """

    requires_keys: bool

    def authenticate(self, secret: str) -> Caller | None:
        """Return the caller with this secret, or None if the secret is unknown or expired."""
        ...

    def allows_anonymous(self) -> bool:
        """Return whether requests without a key are accepted."""
        ...


def require(scope: Scope) -> Callable[..., None]:
    """Return a dependency that accepts a request if its key has the scope, or ``admin``."""

    def guard(
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)],
    ) -> None:
        if getattr(request.state, "authorized_scope", None) == scope:
            return
        authenticator: Authenticator = request.app.state.authenticator
        if credentials is None:
            if authenticator.allows_anonymous():
                request.state.authorized_scope = scope
                return
            raise _unauthorized("this service requires an API key; send it as Authorization: Bearer cov_…")
        caller = authenticator.authenticate(credentials.credentials)
        if caller is None:
            raise _unauthorized("this API key is unknown or has expired")
        if scope not in caller.scopes and "admin" not in caller.scopes:
            raise Forbidden(f"this API key lacks the scope {scope}; it has {', '.join(caller.scopes)}")
        request.state.release_rate_limit = request.app.state.rates.acquire(caller.key_id)
        request.state.key_id = caller.key_id
        request.state.scopes = caller.scopes
        request.state.authorized_scope = scope

    return guard


def _unauthorized(detail: str) -> Unauthorized:
    return Unauthorized(detail, headers={"WWW-Authenticate": "Bearer"})


def has_scope(request: Request, scope: Scope) -> bool:
    """Return whether a request that one guard has accepted also has another scope."""
    scopes = getattr(request.state, "scopes", None)  # None: the request is anonymous
    return scopes is None or scope in scopes or "admin" in scopes


async def check_before_body(request: Request, guard: Callable[..., None]) -> None:
    """Run a guard before the request's body is read; when FastAPI calls it again, it accepts the request.

    Raises:
        Unauthorized: the key is missing, unknown or expired.
        Forbidden: the key lacks the scope.
    """
    await to_thread.run_sync(guard, request, await bearer(request))
