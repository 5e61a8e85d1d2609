"""Sessions of the console: a browser that has signed in, as an API key or as a user, has a cookie.

A session of a key stores the digest of the secret that signed in, and counts as a request with this secret.
So it ends when the key is deleted, expires, or gets a new secret, and its scopes are those of the key. A
session of a user ends when the user is disabled or deleted, and its scopes are those of the user's role.

Browsers send the cookie with requests of any page. Requests that change something must therefore also have
the session's token in the header ``X-CSRF-Token``, which only pages of the console know.
"""

from __future__ import annotations

import hmac
import secrets
from datetime import timedelta

from sqlalchemy import delete, select

from app.api.errors import Unauthorized
from app.api.guards import Caller
from app.api.request_head import RequestHead
from app.db import tables
from app.db.session import Database, database_now
from app.errors import Forbidden
from app.keys.authenticator import KeyAuthenticator
from app.keys.service import digest
from app.threads import REQUESTS
from app.users.roles import caller_of_user

COOKIE = "covey_session"
"""Name of the cookie with the token of the session."""

CSRF_HEADER = b"x-csrf-token"

LIFETIME = timedelta(hours=12)
"""A session ends after this time, even if it is used."""

COOKIE_LIFETIME = LIFETIME + timedelta(days=1)
"""The browser keeps the cookie longer, so that the service can say why the session has ended."""


class ConsoleSessions:
    """Open, find and close sessions.

    Args:
        db: the database.
        authenticator: finds the keys of sessions.
    """

    def __init__(self, db: Database, authenticator: KeyAuthenticator) -> None:
        self._db = db
        self._authenticator = authenticator

    async def open(self, secret: str) -> str | None:
        """Open a session for the secret of an API key and return its token; None if the secret is invalid."""
        if await self._authenticator.authenticate(secret) is None:
            return None
        return await self._open(secret_sha256=digest(secret))

    async def open_for_user(self, user_id: str) -> str:
        """Open a session for a user and return its token."""
        return await self._open(user_id=user_id)

    async def _open(self, *, secret_sha256: str | None = None, user_id: str | None = None) -> str:
        token = secrets.token_urlsafe(32)

        def write() -> None:
            with self._db.write() as tx:
                tx.session.add(
                    tables.ConsoleSession(
                        token_sha256=digest(token),
                        secret_sha256=secret_sha256,
                        user_id=user_id,
                        created_at=tx.now,
                        expires_at=tx.now + LIFETIME,
                    )
                )

        await REQUESTS.run(write)
        return token

    async def close(self, token: str) -> None:
        """End a session. Do nothing if there is none with this token."""

        def write() -> None:
            sessions = tables.ConsoleSession
            with self._db.write() as tx:
                tx.session.execute(delete(sessions).where(sessions.token_sha256 == digest(token)))

        await REQUESTS.run(write)

    async def caller(self, head: RequestHead, *, changes_state: bool) -> Caller | None:
        """Return the caller with the session of a request; None if the request names no session.

        Raises:
            Unauthorized: the session has ended.
            Forbidden: the request changes state and does not prove that the console sends it.
        """
        token = head.cookie(COOKIE)
        if not token:
            return None
        caller = await self._find(token)
        if changes_state:
            require_csrf_token(token, head.get(CSRF_HEADER))
        return caller

    async def _find(self, token: str) -> Caller:
        def read() -> tuple[str | None, Caller | None]:
            sessions, users = tables.ConsoleSession, tables.User
            with self._db.read() as session:
                row = session.execute(
                    select(sessions, users)
                    .outerjoin(users, users.id == sessions.user_id)
                    .where(sessions.token_sha256 == digest(token))
                ).first()
                if row is None:
                    raise _ended("you have signed out, or an administrator has ended it")
                found: tables.ConsoleSession = row[0]
                user: tables.User | None = row[1]
                if found.expires_at <= database_now(session):
                    raise _ended(f"it was open for {LIFETIME // timedelta(hours=1)} hours")
                if user is None:
                    return found.secret_sha256, None
                if user.disabled_at is not None:
                    raise _ended("an administrator has disabled your account")
                return None, caller_of_user(user)

        secret_digest, caller = await REQUESTS.run(read)
        if secret_digest is not None:
            caller = await self._authenticator.find(secret_digest)
        if caller is None:
            raise _ended("its API key was deleted, has expired, or has a new secret")
        return caller


def _ended(reason: str) -> Unauthorized:
    return Unauthorized(
        f"your session has ended: {reason}", code="session_ended", headers={"WWW-Authenticate": "Bearer"}
    )


def csrf_token(token: str) -> str:
    """Return what the pages of a session know of its token. It does not reveal the token."""
    return digest(f"csrf {token}")


def require_csrf_token(token: str, sent: str | None) -> None:
    """Check that a page of the console has sent a request.

    Args:
        token: the token of the session.
        sent: what the request contains as proof; None if it contains nothing.

    Raises:
        Forbidden: the proof is missing or wrong.
    """
    if sent is None or not hmac.compare_digest(sent.encode(), csrf_token(token).encode()):
        raise Forbidden(
            "the session of the console permits changes only with its token in the header X-CSRF-Token; "
            "reload the page, or send an API key as Authorization: Bearer cov_…",
            code="csrf_token_invalid",
        )
