"""What happens to API keys."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from sqlalchemy import or_, select, update

from app.db import tables
from app.db.session import Database, Transaction
from app.errors import Invalid, NotFound
from app.idempotency import ASKED_ONCE, Once
from app.ids import new_id
from app.keys.schemas import ApiKey, ApiKeyCreate, ApiKeyCreated, ApiKeyPage, ApiKeyRotate
from app.paging import Page, newest_first

USE_NOTED_EVERY = timedelta(minutes=1)


def create(db: Database, body: ApiKeyCreate, once: Once = ASKED_ONCE) -> ApiKeyCreated:
    """Make a key of 256 random bits; only its digest is kept."""
    secret = _new_secret()

    def work(tx: Transaction) -> ApiKeyCreated:
        if body.expires_at is not None and body.expires_at <= tx.now:
            message = "lies in the past"
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
        return ApiKeyCreated(**_shown(row).model_dump(), secret=secret)

    return once.run(db, ApiKeyCreated, work, shown_once="secret")


def page(db: Database, page: Page) -> ApiKeyPage:
    """A page of keys, the newest first."""
    with db.read() as session:
        rows, cursor = newest_first(session, select(tables.ApiKey), tables.ApiKey.id, page)
        return ApiKeyPage(items=[_shown(row) for row in rows], next_cursor=cursor)


def rotate(db: Database, key_id: str, body: ApiKeyRotate, once: Once = ASKED_ONCE) -> ApiKeyCreated:
    """Give a key a new secret; the one until now opens as well for a while, an earlier one no more."""
    secret = _new_secret()

    def work(tx: Transaction) -> ApiKeyCreated:
        row = tx.session.get(tables.ApiKey, key_id, with_for_update=True)
        if row is None:
            raise NotFound(f"there is no key {key_id}")
        row.previous_sha256 = row.secret_sha256 if body.grace_seconds else None
        row.previous_until = tx.now + timedelta(seconds=body.grace_seconds) if body.grace_seconds else None
        row.secret_sha256 = _digest(secret)
        tx.session.flush()
        return ApiKeyCreated(**_shown(row).model_dump(), secret=secret)

    return once.run(db, ApiKeyCreated, work, shown_once="secret")


def delete(db: Database, key_id: str) -> None:
    """Delete a key; it opens nothing from now on."""
    with db.write() as tx:
        row = tx.session.get(tables.ApiKey, key_id, with_for_update=True)
        if row is None:
            raise NotFound(f"there is no key {key_id}")
        tx.session.delete(row)


def any_exist(db: Database) -> bool:
    """Whether any key has been made: from then on every request needs one."""
    with db.read() as session:
        return session.scalars(select(tables.ApiKey.id).limit(1)).first() is not None


def opened_by(db: Database, secret: str, now: datetime) -> tables.ApiKey | None:
    """The valid key with this secret.

    A wrong secret costs what a right one costs: one digest and one look at indexes of digests, so that no
    comparison of secrets can be timed.
    """
    digest = _digest(secret)
    with db.read() as session:
        row = session.scalars(
            select(tables.ApiKey).where(
                or_(tables.ApiKey.secret_sha256 == digest, tables.ApiKey.previous_sha256 == digest)
            )
        ).one_or_none()
    if row is None or (row.expires_at is not None and row.expires_at <= now):
        return None
    if row.secret_sha256 != digest and (row.previous_until is None or row.previous_until <= now):
        return None
    if row.last_used_at is None or now - row.last_used_at > USE_NOTED_EVERY:
        with db.write() as tx:
            tx.session.execute(
                update(tables.ApiKey).where(tables.ApiKey.id == row.id).values(last_used_at=tx.now)
            )
    return row


def _new_secret() -> str:
    return f"cov_{secrets.token_urlsafe(32)}"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _shown(row: tables.ApiKey) -> ApiKey:
    return ApiKey(
        id=row.id,
        name=row.name,
        scopes=row.scopes,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        previous_until=row.previous_until,
    )
