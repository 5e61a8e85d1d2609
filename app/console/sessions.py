"""Sessions of the console: a browser signs in with an API key and gets a cookie.

A session stores the digest of the secret that signed in, and counts as a request with this secret. So it ends
when the key is deleted, expires, or gets a new secret, and its scopes are those of the key.

Browsers send the cookie with requests of any page. Requests that change something must therefore also have
the session's token in the header ``X-CSRF-Token``, which only pages of the console know.
"""

from __future__ import annotations

import hmac
import secrets
from datetime import timedelta

from sqlalchemy import delete

from app.api.guards import Caller
from app.api.request_head import RequestHead
from app.db import tables
from app.db.session import Database, database_now
from app.errors import Forbidden
from app.keys.authenticator import KeyAuthenticator
from app.keys.service import digest
from app.threads import REQUESTS

COOKIE = "covey_session"
"""Name of the cookie with the token of the session."""

CSRF_HEADER = b"x-csrf-token"

LIFETIME = timedelta(hours=12)
"""A session ends after this time, even if it is used."""


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
        token = secrets.token_urlsafe(32)

        def write() -> None:
            with self._db.write() as tx:
                tx.session.add(
                    tables.ConsoleSession(
                        token_sha256=digest(token),
                        secret_sha256=digest(secret),
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
        """Return the caller with the session of a request; None if it has no valid session.

        Raises:
            Forbidden: the request changes state and does not prove that the console sends it.
        """
        token = head.cookie(COOKIE)
        if not token:
            return None
        caller = await self._find(token)
        if caller is not None and changes_state:
            require_csrf_token(token, head.get(CSRF_HEADER))
        return caller

    async def _find(self, token: str) -> Caller | None:
        def read() -> str | None:
            with self._db.read() as session:
                row = session.get(tables.ConsoleSession, digest(token))
                is_valid = row is not None and row.expires_at > database_now(session)
                return row.secret_sha256 if row is not None and is_valid else None

        secret_digest = await REQUESTS.run(read)
        return None if secret_digest is None else await self._authenticator.find(secret_digest)


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
