"""Secrets: replaced without a gap, and nothing is learned from what a wrong one costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.security import HTTPAuthorizationCredentials
from sqlalchemy import event, select

from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.http.errors import Conflict, NotFound, Unauthorized
from app.http.guards import require
from app.http.idempotency import Idempotency
from app.keys import service
from app.keys.schemas import ApiKeyCreate, ApiKeyCreated, ApiKeyRotate
from app.keys.service import KeyAuthenticator

NOW = datetime.now(UTC)


def made(db: Database, **fields: Any) -> ApiKeyCreated:
    return service.create(db, ApiKeyCreate.model_validate({"name": "test", "scopes": ["read"], **fields}))


def opens(db: Database, secret: str, at: datetime) -> bool:
    return service.authenticate(db, secret, at) is not None


def test_both_secrets_open_until_the_time_of_grace_is_over(database: Database) -> None:
    key = made(database)
    fresh = service.rotate(database, key.id, ApiKeyRotate(grace_seconds=3600))
    assert fresh.id == key.id
    assert fresh.scopes == key.scopes
    assert fresh.secret != key.secret
    now = datetime.now(UTC)
    soon, late = now + timedelta(minutes=50), now + timedelta(minutes=70)
    assert [opens(database, key.secret, at) for at in (now, soon, late)] == [True, True, False]
    assert [opens(database, fresh.secret, at) for at in (now, soon, late)] == [True, True, True]


def test_a_second_rotation_ends_the_first_secret(database: Database) -> None:
    key = made(database)
    second = service.rotate(database, key.id, ApiKeyRotate())
    third = service.rotate(database, key.id, ApiKeyRotate())
    assert [opens(database, each.secret, NOW) for each in (key, second, third)] == [False, True, True]


def test_a_secret_that_others_have_seen_ends_at_once(database: Database) -> None:
    key = made(database)
    fresh = service.rotate(database, key.id, ApiKeyRotate(grace_seconds=0))
    assert not opens(database, key.secret, NOW)
    assert opens(database, fresh.secret, NOW)


def test_an_expired_key_is_not_revived_by_a_rotation(database: Database) -> None:
    key = made(database, expires_at=NOW + timedelta(hours=1))
    fresh = service.rotate(database, key.id, ApiKeyRotate(grace_seconds=86_400))
    late = NOW + timedelta(hours=2)
    assert not opens(database, fresh.secret, late)
    assert not opens(database, key.secret, late)


def test_an_unknown_key_is_not_rotated(database: Database) -> None:
    with pytest.raises(NotFound):
        service.rotate(database, "key_nope", ApiKeyRotate())


def test_only_digests_are_kept(database: Database) -> None:
    key = made(database)
    fresh = service.rotate(database, key.id, ApiKeyRotate())
    assert len({key.secret, fresh.secret}) == 2
    with database.read() as session:
        kept = repr(session.get_one(tables.ApiKey, key.id).__dict__)
    for each in (key, fresh):
        assert each.secret not in kept
        assert each.secret.removeprefix("cov_") not in kept


def test_a_repeated_request_makes_no_second_key_and_shows_no_secret(database: Database) -> None:
    def ask(fingerprint: str = "body") -> ApiKeyCreated:
        body = ApiKeyCreate(name="test", scopes=["read"])
        return service.create(database, body, Idempotency("key_admin", "k", fingerprint))

    key = ask()
    with pytest.raises(Conflict, match=f"created {key.id}.* rotate that key") as refused:
        ask()
    assert refused.value.code == "secret_already_shown"
    assert key.secret not in refused.value.detail
    with pytest.raises(Conflict) as refused:
        ask("another body")
    assert refused.value.code == "idempotency_key_reused"
    with database.read() as session:
        assert session.scalars(select(tables.ApiKey.id)).all() == [key.id]
        (record,) = session.scalars(select(tables.IdempotencyRecord)).all()
    assert record.response["id"] == key.id
    assert key.secret not in repr(record.__dict__)


def test_a_repeated_rotation_leaves_the_secrets_as_they_are(database: Database) -> None:
    key = made(database)

    def rotate(idempotency_key: str) -> ApiKeyCreated:
        return service.rotate(
            database, key.id, ApiKeyRotate(), Idempotency("key_admin", idempotency_key, "body")
        )

    fresh = rotate("k")
    with pytest.raises(Conflict, match=key.id) as refused:
        rotate("k")
    assert refused.value.code == "secret_already_shown"
    assert [opens(database, each.secret, NOW) for each in (key, fresh)] == [True, True]
    assert opens(database, rotate("another").secret, NOW)


@contextmanager
def statements(db: Database) -> Iterator[list[str]]:
    seen: list[str] = []

    def see(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement != "BEGIN":
            seen.append(statement)

    event.listen(db.engine, "before_cursor_execute", see)
    yield seen
    event.remove(db.engine, "before_cursor_execute", see)


def test_no_key_and_any_that_opens_nothing_take_the_same_steps(ctx: AppContext) -> None:
    """Steps are counted, since times prove nothing on a busy machine."""
    key = made(ctx.db)
    ended = made(ctx.db, expires_at=NOW + timedelta(hours=1))
    with ctx.db.write() as tx:
        tx.session.get_one(tables.ApiKey, ended.id).expires_at = NOW - timedelta(hours=1)
    guard: Callable[..., None] = require("read")

    def asked(secret: str | None) -> list[str]:
        state = SimpleNamespace(
            authenticator=KeyAuthenticator(ctx.db, ctx.settings), rates=SimpleNamespace(enter=lambda _: None)
        )
        request: Any = SimpleNamespace(app=SimpleNamespace(state=state), state=SimpleNamespace())
        given = None if secret is None else HTTPAuthorizationCredentials(scheme="Bearer", credentials=secret)
        with statements(ctx.db) as seen:
            try:
                guard(request, given)
            except Unauthorized:
                seen.append("refused")
        return seen

    nothing = asked(None)
    assert nothing[-1] == "refused"
    assert len(nothing) == 3
    for secret in ("", "x", "cov_" + "A" * 43, key.secret[:-1], ended.secret, "x" * 100_000):
        assert asked(secret) == nothing
    asked(key.secret)  # notes the use
    assert asked(key.secret) == nothing[:1]
