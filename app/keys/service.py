"""API keys: create, list, rotate, delete and authenticate."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from app.api.idempotency import NOT_IDEMPOTENT, Idempotency
from app.api.paging import Page, newest_first
from app.db import tables
from app.db.session import Database, Transaction
from app.errors import Conflict, Invalid, NotFound
from app.ids import new_id
from app.keys.schemas import ApiKey, ApiKeyCreate, ApiKeyCreated, ApiKeyPage, ApiKeyRotate
from app.settings import Settings


class AuthenticationRequiredError(RuntimeError):
    """Other machines can reach the service, and it has no API key."""


def create(db: Database, body: ApiKeyCreate, idempotency: Idempotency = NOT_IDEMPOTENT) -> ApiKeyCreated:
    """Create a key of 256 random bits. The database keeps only its digest.

    From now on every request needs a key.
    """
    idempotency.first_response(db, ApiKeyCreated, one_time_field="secret")
    secret = _new_secret()

    def work(tx: Transaction) -> ApiKeyCreated:
        if body.expires_at is not None and body.expires_at <= tx.now:
            message = "is in the past"
            raise Invalid(f"expires_at {message}", errors=[("/expires_at", message)])
        row = tables.ApiKey(
            id=new_id("key"),
            name=body.name,
            secret_sha256=digest(secret),
            scopes=sorted(set(body.scopes)),
            created_at=tx.now,
            expires_at=body.expires_at,
        )
        tx.session.add(row)
        tx.session.flush()
        _require_authentication(tx)
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
        row.secret_sha256 = digest(secret)
        tx.session.flush()
        return ApiKeyCreated(**_to_response(row).model_dump(), secret=secret)

    return idempotency.run(db, ApiKeyCreated, work, one_time_field="secret")


def delete(db: Database, key_id: str) -> None:
    """Delete a key. Requests with it are rejected from now on.

    Raises:
        NotFound: the key does not exist.
        Conflict: while requests need a key, the last valid key with the scope ``admin`` cannot be deleted.
    """
    with db.write() as tx:
        # The lock makes concurrent deletions wait, so that two administrators cannot delete each other.
        state = _authentication_state(tx, lock=True)
        row = tx.session.get(tables.ApiKey, key_id, with_for_update=True)
        if row is None:
            raise NotFound(f"there is no key {key_id}")
        if state is not None and state.required and _is_last_admin(tx, row):
            raise Conflict(
                f"{key_id} is the last valid key with the scope admin; create another one first. "
                "To accept requests without a key again, run `covey keys allow-anonymous`",
                code="last_admin_key",
            )
        tx.session.delete(row)


def _is_last_admin(tx: Transaction, key: tables.ApiKey) -> bool:
    def is_valid_admin(row: tables.ApiKey) -> bool:
        return "admin" in row.scopes and (row.expires_at is None or row.expires_at > tx.now)

    if not is_valid_admin(key):
        return False
    others = tx.session.scalars(select(tables.ApiKey).where(tables.ApiKey.id != key.id))
    return not any(map(is_valid_admin, others))


_STATE_ID = 1  # the table has at most one row


def _authentication_state(tx: Transaction, *, lock: bool = False) -> tables.AuthenticationState | None:
    return tx.session.get(tables.AuthenticationState, _STATE_ID, with_for_update=lock)


def _require_authentication(tx: Transaction) -> None:
    """Make every request need a key from the commit on. Only :func:`allow_anonymous` reverses it."""
    state = _authentication_state(tx, lock=True)
    if state is None:
        try:
            with tx.session.begin_nested():
                tx.session.add(tables.AuthenticationState(id=_STATE_ID, required=True))
        except IntegrityError:  # another transaction has created the first key at the same time
            return
    elif not state.required:
        state.required = True


def allow_anonymous(db: Database) -> None:
    """Accept requests without a key on loopback again, until the next key is created.

    API processes that have seen that requests need a key continue to require one until they restart.
    """
    with db.write() as tx:
        if (state := _authentication_state(tx, lock=True)) is not None:
            state.required = False


def authentication_required(db: Database) -> bool:
    """Return whether every request needs a key: the service has had one, even if all were deleted."""
    with db.read() as session:
        required = session.scalar(
            select(tables.AuthenticationState.required).where(tables.AuthenticationState.id == _STATE_ID)
        )
    return bool(required)


def require_keys(settings: Settings, db: Database) -> None:
    """Check that a service that other machines can reach requires API keys.

    Raises:
        AuthenticationRequiredError: it listens on another address than loopback and accepts anonymous
            requests.
    """
    if not (settings.listens_on_loopback or settings.oidc_issuer or authentication_required(db)):
        raise AuthenticationRequiredError(
            f"refusing to listen on {settings.host} without API keys: create one with `covey keys create`, "
            "or listen on 127.0.0.1"
        )


def digest(secret: str) -> str:
    """Return what the database and the snapshot contain of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _new_secret() -> str:
    return f"cov_{secrets.token_urlsafe(32)}"


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
