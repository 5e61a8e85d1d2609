"""``last_used_at`` is written behind the requests, so that no request needs a writable database."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from catalogs import running_catalog
from sqlalchemy import event, exc

from app.api.guards import Caller
from app.db import tables
from app.db.session import Database
from app.keys import service
from app.keys.authenticator import KeyAuthenticator
from app.keys.last_used import LastUsed
from app.keys.schemas import ApiKeyCreate


def last_used_at(db: Database, key_id: str) -> datetime | None:
    with db.read() as session:
        return session.get_one(tables.ApiKey, key_id).last_used_at


def refuse_writes(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
    if statement.split(maxsplit=1)[0] not in {"SELECT", "BEGIN"}:
        raise exc.OperationalError(statement, {}, Exception("database or disk is full"))


def test_a_key_works_while_the_database_cannot_be_written(database: Database) -> None:
    key = service.create(database, ApiKeyCreate(name="test", scopes=["read"]))
    last_used = LastUsed(database)

    async def authenticate() -> Caller | None:
        async with running_catalog(database) as catalog:
            return await KeyAuthenticator(catalog, last_used).authenticate(key.secret)

    event.listen(database.engine, "before_cursor_execute", refuse_writes)
    try:
        assert asyncio.run(authenticate()) == Caller(key.id, "test", ("read",))
        for _ in range(2):
            with pytest.raises(exc.OperationalError):
                last_used.flush()
    finally:
        event.remove(database.engine, "before_cursor_execute", refuse_writes)
    assert last_used_at(database, key.id) is None
    last_used.flush()
    assert last_used_at(database, key.id) is not None, "the record was lost"


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_one_use_is_written_per_key_and_an_older_one_does_not_replace_it(database: Database) -> None:
    keys = [service.create(database, ApiKeyCreate(name="test", scopes=["read"])) for _ in range(2)]
    last_used = LastUsed(database)
    updates: list[str] = []
    event.listen(
        database.engine,
        "before_cursor_execute",
        lambda *a: updates.append(a[2]) if "UPDATE" in a[2] else None,
    )
    for seconds in range(10):
        for key in keys:
            last_used.record(key.id, NOW.timestamp() + seconds)
    last_used.flush()
    last_used.flush()
    assert len(updates) == 2
    another_process = LastUsed(database)
    another_process.record(keys[0].id, NOW.timestamp() - 3600)
    another_process.flush()
    assert last_used_at(database, keys[0].id) == NOW


@pytest.mark.parametrize("same_process", [True, False])
@pytest.mark.parametrize(("age", "written"), [(59, False), (61, True)])
def test_a_recent_use_is_not_written_again(
    database: Database, age: int, written: bool, same_process: bool
) -> None:
    key = service.create(database, ApiKeyCreate(name="test", scopes=["read"]))
    first = LastUsed(database)
    first.record(key.id, NOW.timestamp() - age)
    first.flush()
    second = first if same_process else LastUsed(database)
    second.record(key.id, NOW.timestamp())
    second.flush()
    assert (last_used_at(database, key.id) == NOW) == written


def test_stopping_writes_the_last_records(database: Database) -> None:
    key = service.create(database, ApiKeyCreate(name="test", scopes=["read"]))
    last_used = LastUsed(database)
    last_used.start()
    last_used.record(key.id, NOW.timestamp())
    last_used.stop()
    assert last_used_at(database, key.id) is not None


def test_keys_that_are_not_used_any_more_take_no_memory(database: Database) -> None:
    last_used = LastUsed(database)
    for second in range(1000):
        last_used.record(f"key_{second}", NOW.timestamp() + 3600 * second)
        last_used.flush()
    assert len(last_used._last) < 10
