"""The guard in front of every route: it requires an API key with the right scope.

If the service listens on loopback and has never had a key, it accepts anonymous requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

from anyio import CancelScope
from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import Field
from starlette.types import Scope as AsgiScope
from typing_extensions import TypeAliasType

from app.api.errors import Unauthorized
from app.api.request_head import RequestHead
from app.errors import Forbidden

SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
"""Methods of requests that change nothing."""

Scope = TypeAliasType(
    "Scope",
    Annotated[
        Literal["read", "predict", "review", "train", "admin"],
        Field(description="What a key permits; `admin` permits everything."),
    ],
)

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="ApiKey",
    description="An API key, `cov_…`. Required as soon as the service has a key.",
)


@dataclass(frozen=True)
class Actor:
    """Who does something, as records of it say.

    Attributes:
        id: id of the API key or of the user.
        name: name of the API key or of the user.
    """

    id: str
    name: str


@dataclass(frozen=True)
class Caller(Actor):
    """Who sends a request.

    Attributes:
        scopes: what the caller may do.
    """

    scopes: Sequence[str]

    def may(self, *scopes: Scope) -> bool:
        """Return whether the caller has one of the scopes, or ``admin``."""
        return "admin" in self.scopes or any(scope in self.scopes for scope in scopes)


class Authenticator(Protocol):
    """Find out who sends a request."""

    async def authenticate(self, secret: str) -> Caller | None:
        """Return the caller with this secret, or None if the secret is unknown or expired."""
        ...

    async def allows_anonymous(self) -> bool:
        """Return whether requests without a key are accepted."""
        ...


class Sessions(Protocol):
    """Find out who is signed in to the console."""

    async def caller(self, head: RequestHead, *, changes_state: bool) -> Caller | None:
        """Return the caller with the session of a request; None if the request names no session.

        Raises:
            Unauthorized: the session has ended.
            Forbidden: the request changes state and does not prove that the console sends it.
        """
        ...


def require(*scopes: Scope) -> Callable[..., Awaitable[None]]:
    """Return a dependency that accepts a request if its key has one of the scopes, or ``admin``."""

    async def guard(
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)],
    ) -> None:
        await authorize(request.scope, credentials.credentials if credentials else None, scopes)

    return guard


async def authorize(scope: AsgiScope, secret: str | None, required: tuple[Scope, ...]) -> None:
    """Accept a request if its key has one of the scopes, or ``admin``. A guard then accepts the request too.

    Args:
        scope: the ASGI scope of the request.
        secret: the API key of the request; None if it has none.
        required: the scopes, of which one suffices.

    Raises:
        Unauthorized: the key is missing, unknown or expired, or the session of the console has ended.
        Forbidden: the key has none of the scopes.
        TooMany: the key exceeds a rate limit.
        NotReady: the service cannot check the key, because the database is unavailable.
    """
    state: dict[str, Any] = scope["state"]
    if state.get("authorized_scopes") == required:
        return
    app_state = scope["app"].state
    authenticator: Authenticator = app_state.authenticator
    if secret is None:
        if await authenticator.allows_anonymous():
            state["authorized_scopes"] = required
            return
        sessions: Sessions = app_state.console_sessions
        caller = await sessions.caller(state["head"], changes_state=scope["method"] not in SAFE_METHODS)
        if caller is None:
            raise _unauthorized("this service requires an API key; send it as Authorization: Bearer cov_…")
    else:
        caller = await authenticator.authenticate(secret)
        if caller is None:
            raise _unauthorized("this API key is unknown or has expired")
    if not caller.may(*required):
        raise Forbidden(
            f"this API key lacks the scope {' or '.join(required)}; it has {', '.join(caller.scopes)}"
        )
    if app_state.rates.counts:
        with CancelScope(shield=True):  # what is counted is released, also if the client disconnects now
            state["release_rate_limit"] = await app_state.rates.acquire(caller.id)
    state["caller"] = caller
    state["authorized_scopes"] = required


def _unauthorized(detail: str) -> Unauthorized:
    return Unauthorized(detail, headers={"WWW-Authenticate": "Bearer"})


def has_scope(request: Request, *scopes: Scope) -> bool:
    """Return whether a request that one guard has accepted also has one of other scopes."""
    caller = caller_of(request.scope)
    return caller is None or caller.may(*scopes)


def actor_of(request: Request) -> Actor | None:
    """Return who sends a request that a guard has accepted; None if the request is anonymous."""
    return caller_of(request.scope)


def caller_of(scope: AsgiScope) -> Caller | None:
    """Return the caller of a request; None if it is anonymous, or no guard has accepted it."""
    caller: Caller | None = scope["state"].get("caller")
    return caller
