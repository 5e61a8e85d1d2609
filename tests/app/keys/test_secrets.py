"""Secrets of API keys: rotation without a gap, and no information from the cost of a wrong secret."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from app.api.guards import Caller
from app.api.idempotency import Idempotency
from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.errors import Conflict, NotFound
from app.keys import service
from app.keys.authenticator import KeyAuthenticator
from app.keys.last_used import LastUsed
from app.keys.schemas import ApiKeyCreate, ApiKeyCreated, ApiKeyRotate
from app.serving.queries import read_snapshot

NOW = datetime.now(UTC)


def create_key(db: Database, **fields: Any) -> ApiKeyCreated:
    return service.create(db, ApiKeyCreate.model_validate({"name": "test", "scopes": ["read"], **fields}))


def is_valid(db: Database, secret: str, at: datetime) -> bool:
    return read_snapshot(db).caller(service.digest(secret), at.timestamp()) is not None


def test_both_secrets_are_valid_until_the_grace_period_ends(database: Database) -> None:
    key = create_key(database)
    fresh = service.rotate(database, key.id, ApiKeyRotate(grace_seconds=3600))
    assert fresh.id == key.id
    assert fresh.scopes == key.scopes
    assert fresh.secret != key.secret
    now = datetime.now(UTC)
    soon, late = now + timedelta(minutes=50), now + timedelta(minutes=70)
    assert [is_valid(database, key.secret, at) for at in (now, soon, late)] == [True, True, False]
    assert [is_valid(database, fresh.secret, at) for at in (now, soon, late)] == [True, True, True]


def test_a_second_rotation_invalidates_the_first_secret(database: Database) -> None:
    key = create_key(database)
    second = service.rotate(database, key.id, ApiKeyRotate())
    third = service.rotate(database, key.id, ApiKeyRotate())
    assert [is_valid(database, each.secret, NOW) for each in (key, second, third)] == [False, True, True]


def test_without_grace_the_old_secret_is_invalid_immediately(database: Database) -> None:
    key = create_key(database)
    fresh = service.rotate(database, key.id, ApiKeyRotate(grace_seconds=0))
    assert not is_valid(database, key.secret, NOW)
    assert is_valid(database, fresh.secret, NOW)


def test_a_rotation_does_not_extend_the_life_of_a_key(database: Database) -> None:
    key = create_key(database, expires_at=NOW + timedelta(hours=1))
    fresh = service.rotate(database, key.id, ApiKeyRotate(grace_seconds=86_400))
    late = NOW + timedelta(hours=2)
    assert not is_valid(database, fresh.secret, late)
    assert not is_valid(database, key.secret, late)


def test_rotating_an_unknown_key_is_an_error(database: Database) -> None:
    with pytest.raises(NotFound):
        service.rotate(database, "key_nope", ApiKeyRotate())


def test_the_database_only_has_digests(database: Database) -> None:
    key = create_key(database)
    fresh = service.rotate(database, key.id, ApiKeyRotate())
    assert len({key.secret, fresh.secret}) == 2
    with database.read() as session:
        stored = repr(session.get_one(tables.ApiKey, key.id).__dict__)
    for each in (key, fresh):
        assert each.secret not in stored
        assert each.secret.removeprefix("cov_") not in stored


def test_a_repeated_request_creates_no_second_key_and_returns_no_secret(database: Database) -> None:
    def send(fingerprint: str = "body") -> ApiKeyCreated:
        body = ApiKeyCreate(name="test", scopes=["read"])
        return service.create(database, body, Idempotency("key_admin", "k", fingerprint))

    key = send()
    with pytest.raises(Conflict, match=f"created {key.id}.* rotate it") as refused:
        send()
    assert refused.value.code == "secret_already_shown"
    assert key.secret not in refused.value.detail
    with pytest.raises(Conflict) as refused:
        send("another body")
    assert refused.value.code == "idempotency_key_reused"
    with database.read() as session:
        assert session.scalars(select(tables.ApiKey.id)).all() == [key.id]
        (record,) = session.scalars(select(tables.IdempotencyRecord)).all()
    assert record.response["id"] == key.id
    assert key.secret not in repr(record.__dict__)


def test_a_repeated_rotation_does_not_change_the_secrets(database: Database) -> None:
    key = create_key(database)

    def rotate(idempotency_key: str) -> ApiKeyCreated:
        return service.rotate(
            database, key.id, ApiKeyRotate(), Idempotency("key_admin", idempotency_key, "body")
        )

    fresh = rotate("k")
    with pytest.raises(Conflict, match=key.id) as refused:
        rotate("k")
    assert refused.value.code == "secret_already_shown"
    assert [is_valid(database, each.secret, NOW) for each in (key, fresh)] == [True, True]
    assert is_valid(database, rotate("another").secret, NOW)


def test_every_invalid_secret_takes_the_same_steps(ctx: AppContext) -> None:
    """The test counts digests, looks and checks, because times prove nothing on a busy machine."""
    key = create_key(ctx.db)
    expired = create_key(ctx.db, expires_at=NOW + timedelta(hours=1))
    with ctx.db.write() as tx:
        tx.session.get_one(tables.ApiKey, expired.id).expires_at = NOW - timedelta(hours=1)
    taken: list[str] = []

    class RecordedSnapshot:
        def caller(self, digest: str, now: float) -> Caller | None:
            taken.append(f"looked up {len(digest)} digits")
            return snapshot.caller(digest, now)

    class RecordedCatalog:
        current = RecordedSnapshot()

        async def after_miss(self) -> RecordedSnapshot:
            taken.append("checked for new keys")
            return self.current

    snapshot = read_snapshot(ctx.db)
    catalog: Any = RecordedCatalog()
    authenticator = KeyAuthenticator(catalog, LastUsed(ctx.db))

    def steps(secret: str) -> list[str]:
        taken.clear()
        caller = asyncio.run(authenticator.authenticate(secret))
        return [*taken, "rejected" if caller is None else caller.id]

    look = "looked up 64 digits"
    for secret in ("", "x", "cov_" + "A" * 43, key.secret[:-1], expired.secret, "x" * 100_000):
        assert steps(secret) == [look, "checked for new keys", look, "rejected"]
    assert steps(key.secret) == [look, key.id]
