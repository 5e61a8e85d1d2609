"""API keys: create, list, rotate, delete and authenticate."""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime, timedelta

from sqlalchemy import or_, select, update

from app.db import tables
from app.db.session import Database, Transaction
from app.http.errors import Invalid, NotFound
from app.http.guards import Caller
from app.http.idempotency import NOT_IDEMPOTENT, Idempotency
from app.http.paging import Page, newest_first
from app.ids import new_id
from app.keys.schemas import ApiKey, ApiKeyCreate, ApiKeyCreated, ApiKeyPage, ApiKeyRotate
from app.settings import Settings

LAST_USED_RESOLUTION = timedelta(minutes=1)
"""A key's ``last_used_at`` is written at most this often."""


class AuthenticationRequiredError(RuntimeError):
    """Other machines can reach the service, and it has no API key."""


def create(db: Database, body: ApiKeyCreate, idempotency: Idempotency = NOT_IDEMPOTENT) -> ApiKeyCreated:
    """Create a key of 256 random bits. The database keeps only its digest."""
    idempotency.first_response(db, ApiKeyCreated, one_time_field="secret")
    secret = _new_secret()

    def work(tx: Transaction) -> ApiKeyCreated:
        if body.expires_at is not None and body.expires_at <= tx.now:
            message = "is in the past"
            raise Invalid(f"expires_at {message}", errors=[("/expires_at", message)])
        row = tables.ApiKey(
            id=new_id("key"),
            name=body.name,
            secret_sha256=_digest(secret),
            scopes=sorted(set(body.scopes)),
            created_at=tx.now,
            expires_at=body.expires_at,
        )
        tx.session.add(row)
        tx.session.flush()
        return ApiKeyCreated(**_to_response(row).model_dump(), secret=secret)

    return idempotency.run(db, ApiKeyCreated, work, one_time_field="secret")


def page(db: Database, page: Page) -> ApiKeyPage:
    """Return a page of keys, newest first."""
    with db.read() as session:
        rows, cursor = newest_first(session, select(tables.ApiKey), tables.ApiKey.id, page)
        return ApiKeyPage(items=[_to_response(row) for row in rows], next_cursor=cursor)


def rotate(
    db: Database, key_id: str, body: ApiKeyRotate, idempotency: Idempotency = NOT_IDEMPOTENT
) -> ApiKeyCreated:
    """Give a key a new secret; the old secret keeps working for the grace period."""
    idempotency.first_response(db, ApiKeyCreated, one_time_field="secret")
    secret = _new_secret()

    def work(tx: Transaction) -> ApiKeyCreated:
        row = tx.session.get(tables.ApiKey, key_id, with_for_update=True)
        if row is None:
            raise NotFound(f"there is no key {key_id}")
        row.previous_secret_sha256 = row.secret_sha256 if body.grace_seconds else None
        row.previous_secret_expires_at = (
            tx.now + timedelta(seconds=body.grace_seconds) if body.grace_seconds else None
        )
        row.secret_sha256 = _digest(secret)
        tx.session.flush()
        return ApiKeyCreated(**_to_response(row).model_dump(), secret=secret)

    return idempotency.run(db, ApiKeyCreated, work, one_time_field="secret")


def delete(db: Database, key_id: str) -> None:
    """Delete a key. Requests with it are rejected from now on."""
    with db.write() as tx:
        row = tx.session.get(tables.ApiKey, key_id, with_for_update=True)
        if row is None:
            raise NotFound(f"there is no key {key_id}")
        tx.session.delete(row)


def any_exist(db: Database) -> bool:
    """Return whether the service has any key. As soon as it has one, every request requires a key."""
    with db.read() as session:
        return session.scalars(select(tables.ApiKey.id).limit(1)).first() is not None


def require_keys(settings: Settings, db: Database) -> None:
    """Check that a service that other machines can reach has API keys.

    Raises:
        AuthenticationRequiredError: it listens on another address than loopback and has no key.
    """
    if not settings.listens_on_loopback and not any_exist(db):
        raise AuthenticationRequiredError(
            f"refusing to listen on {settings.host} without API keys: create one with `covey keys create`, "
            "or listen on 127.0.0.1"
        )


class KeyAuthenticator:
    """Authenticates requests by the API keys in the database.

    Args:
        db: the database.
        settings: decide whether anonymous requests are accepted before the first key exists.
    """

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        self._settings = settings

    def authenticate(self, secret: str) -> Caller | None:
        """Return the caller with this secret, or None if the secret is unknown or expired."""
        row = authenticate(self._db, secret, datetime.now(UTC))
        return None if row is None else Caller(row.id, row.scopes)

    def allows_anonymous(self) -> bool:
        """Return whether the service listens on loopback and has no key yet."""
        return self._settings.listens_on_loopback and not any_exist(self._db)


def authenticate(db: Database, secret: str, now: datetime) -> tables.ApiKey | None:
    """Return the valid key with this secret, or None.

    A wrong secret costs the same as a right one: one digest and one lookup in indexes of digests. Response
    times therefore reveal nothing about secrets.
    """
    digest = _digest(secret)
    with db.read() as session:
        row = session.scalars(
            select(tables.ApiKey).where(
                or_(tables.ApiKey.secret_sha256 == digest, tables.ApiKey.previous_secret_sha256 == digest)
            )
        ).one_or_none()
    if row is None or (row.expires_at is not None and row.expires_at <= now):
        return None
    if row.secret_sha256 != digest and (
        row.previous_secret_expires_at is None or row.previous_secret_expires_at <= now
    ):
        return None
    if row.last_used_at is None or now - row.last_used_at > LAST_USED_RESOLUTION:
        with db.write() as tx:
            tx.session.execute(
                update(tables.ApiKey).where(tables.ApiKey.id == row.id).values(last_used_at=tx.now)
            )
    return row


def _new_secret() -> str:
    return f"cov_{secrets.token_urlsafe(32)}"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _to_response(row: tables.ApiKey) -> ApiKey:
    return ApiKey(
        id=row.id,
        name=row.name,
        scopes=row.scopes,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        previous_secret_expires_at=row.previous_secret_expires_at,
    )
