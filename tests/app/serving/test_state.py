"""The snapshot of a process: what requests see after a change, what they cost, and what an outage does."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from captured_logs import captured_logs
from catalogs import running_catalog, snapshot_with
from fault_proxy import FaultProxy, proxy
from sqlalchemy import delete, event, make_url, update
from waiting import LIMIT_SECONDS, wait_for

from app.db import tables
from app.db.session import Database
from app.errors import NotFound, NotReady
from app.keys import service as keys
from app.keys.authenticator import KeyAuthenticator
from app.keys.last_used import LastUsed
from app.keys.schemas import ApiKeyCreate, ApiKeyCreated, ApiKeyRotate
from app.registry import aliases, queries
from app.registry.schemas import AliasPut
from app.routing import service as routing
from app.routing.schemas import RouterPut
from app.serving import state as module
from app.serving.queries import read_snapshot
from app.serving.state import Catalog, Snapshot
from app.settings import Settings

SELDOM = 3600.0
"""No check without a request, in seconds."""

only_postgresql = pytest.mark.parametrize("kind_of_database", ["postgresql"], indirect=True)


@pytest.fixture
def other(database_url: str) -> Iterator[Database]:
    """The database as another process uses it."""
    db = Database(database_url)
    yield db
    db.close()


@pytest.fixture
def with_models(database: Database) -> Database:
    """A database with a model ``m`` of two versions, of which 1 is ``live``, and a router ``desk``."""
    with database.write() as tx:
        tx.session.add(tables.Model(name="m", last_version=2, created_at=tx.now))
        tx.session.flush()
        for version in (1, 2):
            tx.session.add(
                tables.ModelVersion(
                    model="m",
                    version=version,
                    artifact_key=f"artifacts/{version}.covey",
                    artifact_sha256="0" * 64,
                    artifact_bytes=1,
                    description={"features": {"kind": "text"}, "labels": ["a"]},
                    created_at=tx.now,
                )
            )
        tx.session.flush()
        tx.session.add(tables.ModelAlias(model="m", alias="live", version=1, updated_at=tx.now))
    put_router(database)
    return database


def put_router(db: Database, **fields: Any) -> None:
    routing.put(db, "desk", RouterPut.model_validate({"model": "m", "fallback": "f@example.org", **fields}))


def create_key(db: Database, **fields: Any) -> ApiKeyCreated:
    return keys.create(db, ApiKeyCreate.model_validate({"name": "test", "scopes": ["read"], **fields}))


def knows(snapshot: Snapshot, key: ApiKeyCreated) -> bool:
    return snapshot.caller(keys.digest(key.secret), time.time()) is not None


def run(
    db: Database,
    test: Callable[[Catalog], Awaitable[None]],
    *,
    poll_seconds: float = SELDOM,
    offline_seconds: float = 3600.0,
) -> None:
    """Run a test with a catalog."""
    settings = Settings(offline_seconds=offline_seconds)

    async def main() -> None:
        async with asyncio.timeout(LIMIT_SECONDS), running_catalog(db, settings) as catalog:
            await test(catalog)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "POLL_SECONDS", poll_seconds)
        asyncio.run(main())
    wait_for_readers()


def wait_for_readers() -> None:
    """Wait until no thread reads, so that the fixture closes every connection of the database."""
    wait_for(
        lambda: all(thread.name != "catalog-reader" for thread in threading.enumerate()), what="the readers"
    )


def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Record the checks."""
    recorded: list[object] = []

    def read(*arguments: Any) -> Snapshot:
        recorded.append(arguments)
        return read_snapshot(*arguments)

    monkeypatch.setattr(module, "read_snapshot", read)
    return recorded


# What a request sees


def test_a_request_sees_every_change_that_its_process_has_committed(with_models: Database) -> None:
    async def test(catalog: Catalog) -> None:
        async def seen_after(change: Callable[[], object]) -> Snapshot:
            await asyncio.to_thread(change)
            return catalog.current or await catalog.fresh()

        created: list[ApiKeyCreated] = []
        first = await seen_after(lambda: created.append(create_key(with_models)))
        assert knows(first, created[0])
        assert first.requires_keys
        second = await seen_after(lambda: aliases.put(with_models, "m", "live", AliasPut(version=2), None))
        live = second.version("m", "live")
        assert live is not None
        assert (live.version, live.artifact_key) == (2, "artifacts/2.covey")
        third = await seen_after(lambda: put_router(with_models, version=2))
        router = third.router("desk")
        assert router is not None
        assert router.config["version"] == 2
        rotation = ApiKeyRotate(grace_seconds=0)
        fourth = await seen_after(lambda: keys.rotate(with_models, created[0].id, rotation))
        assert not knows(fourth, created[0])
        assert knows(first, created[0]), "snapshots are immutable"

    run(with_models, test)


def test_a_change_of_another_process_is_seen_without_a_request(database: Database, other: Database) -> None:
    async def test(catalog: Catalog) -> None:
        key = await asyncio.to_thread(create_key, other)
        await snapshot_with(catalog, lambda snapshot: knows(snapshot, key))
        await asyncio.to_thread(keys.delete, other, key.id)
        await snapshot_with(catalog, lambda snapshot: not knows(snapshot, key))

    run(database, test, poll_seconds=0.01)


def test_after_another_response_a_request_sees_what_that_response_has_shown(
    database: Database, other: Database
) -> None:
    async def test(catalog: Catalog) -> None:
        old = await catalog.fresh()
        key = await asyncio.to_thread(create_key, other)
        assert not knows(old, key)
        assert catalog.current is old
        catalog.expire()
        assert knows(await catalog.fresh(), key)

    run(database, test)


def test_a_check_that_began_before_a_commit_is_not_enough(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_read, released = threading.Event(), threading.Event()

    def read(*arguments: Any) -> Snapshot:
        snapshot = read_snapshot(*arguments)
        has_read.set()
        assert released.wait(LIMIT_SECONDS)
        return snapshot

    async def test(catalog: Catalog) -> None:
        monkeypatch.setattr(module, "read_snapshot", read)
        catalog.expire()
        early = asyncio.create_task(catalog.fresh())
        await asyncio.to_thread(has_read.wait, LIMIT_SECONDS)
        key = await asyncio.to_thread(create_key, database)
        late = asyncio.create_task(catalog.fresh())
        await asyncio.sleep(0)
        released.set()
        assert not knows(await early, key)
        assert knows(await late, key)

    monkeypatch.setattr(module, "CHECK_SECONDS", LIMIT_SECONDS)
    run(database, test)


def test_a_snapshot_shows_one_moment(with_models: Database, other: Database) -> None:
    """A change that commits while the parts are read is in none of them."""
    create_key(with_models)
    before = read_snapshot(with_models)
    changed: list[ApiKeyCreated] = []

    def change(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "FROM catalog_revisions" in statement and not changed:
            changed.append(create_key(other))
            put_router(other, version=2)

    event.listen(with_models.engine, "after_cursor_execute", change)
    snapshot = read_snapshot(with_models)
    assert changed
    assert not knows(snapshot, changed[0])
    assert snapshot.revisions == before.revisions
    router = snapshot.router("desk")
    assert router is not None
    assert router.config["version"] == "live"
    after = read_snapshot(with_models, snapshot)
    assert knows(after, changed[0])
    assert after.routers["desk"].config["version"] == 2


def test_only_the_parts_that_have_changed_are_read_again(with_models: Database) -> None:
    first = read_snapshot(with_models)
    assert read_snapshot(with_models, first) is first
    create_key(with_models)
    second = read_snapshot(with_models, first)
    assert second.keys is not first.keys
    assert (second.aliases, second.routers) == (first.aliases, first.routers)
    assert second.aliases is first.aliases
    assert second.routers is first.routers
    put_router(with_models, version=2)
    third = read_snapshot(with_models, second)
    assert third.keys is second.keys
    assert third.routers is not second.routers


def test_a_router_that_was_deleted_and_created_again_has_another_id(with_models: Database) -> None:
    async def test(catalog: Catalog) -> None:
        first = (await catalog.fresh()).router("desk")
        await asyncio.to_thread(routing.delete, with_models, "desk")
        assert (await catalog.fresh()).router("desk") is None
        await asyncio.to_thread(put_router, with_models)
        second = (await catalog.fresh()).router("desk")
        assert first is not None
        assert second is not None
        assert first.id != second.id
        await asyncio.to_thread(put_router, with_models, version=2)
        third = (await catalog.fresh()).router("desk")
        assert third is not None
        assert third.id == second.id

    run(with_models, test)


# Keys


def test_a_secret_expires_at_its_time_without_a_check(database: Database) -> None:
    now = datetime.now(UTC)
    key = create_key(database, expires_at=now + timedelta(hours=1))
    fresh = keys.rotate(database, key.id, ApiKeyRotate(grace_seconds=60))
    snapshot = read_snapshot(database)

    def valid(secret: str, seconds: float) -> bool:
        return snapshot.caller(keys.digest(secret), now.timestamp() + seconds) is not None

    assert [valid(key.secret, seconds) for seconds in (0, 50, 120)] == [True, True, False]
    assert [valid(fresh.secret, seconds) for seconds in (0, 120, 3599, 3601)] == [True, True, True, False]


def test_many_requests_with_unknown_keys_share_a_few_checks(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_key(database)

    async def test(catalog: Catalog) -> None:
        authenticator = KeyAuthenticator(catalog, LastUsed(database))
        checks = reads(monkeypatch)
        started = time.monotonic()
        found = await asyncio.gather(*(authenticator.authenticate(f"cov_{n}") for n in range(500)))
        for n in range(20):
            found.append(await authenticator.authenticate(f"cov_{n}"))
        elapsed = time.monotonic() - started
        assert found == [None] * 520
        assert 1 <= len(checks) <= elapsed / module.MISS_SECONDS + 1

    run(database, test)


def test_a_key_that_another_process_has_just_created_is_accepted(database: Database, other: Database) -> None:
    async def test(catalog: Catalog) -> None:
        key = await asyncio.to_thread(create_key, other)
        caller = await KeyAuthenticator(catalog, LastUsed(database)).authenticate(key.secret)
        assert caller is not None
        assert caller.id == key.id

    run(database, test)


# Versions


def test_a_version_is_read_by_its_number_once_and_again_after_a_change(with_models: Database) -> None:
    statements: list[str] = []
    event.listen(
        with_models.engine,
        "before_cursor_execute",
        lambda *a: statements.append(a[2]) if "FROM model_versions" in a[2] else None,
    )

    async def test(catalog: Catalog) -> None:
        for _ in range(3):
            found = await catalog.resolve("m", 2)
            assert (found.model, found.version, found.artifact_key) == ("m", 2, "artifacts/2.covey")
        assert len(statements) == 1
        snapshot = catalog.current
        assert snapshot is not None
        assert snapshot.version("m", 2) is found
        # Its artifact is another one after the version was deleted and published again.
        with with_models.write() as tx:
            tx.session.execute(
                update(tables.ModelVersion).where(tables.ModelVersion.version == 2).values(artifact_key="new")
            )
        assert (await catalog.resolve("m", 2)).artifact_key == "new"
        await asyncio.to_thread(delete_version, with_models, 2)
        with pytest.raises(NotFound):
            await catalog.resolve("m", 2)

    run(with_models, test)


def test_a_snapshot_has_the_versions_that_routers_name_by_their_numbers(with_models: Database) -> None:
    put_router(with_models, version=2, shadow=1)
    first = read_snapshot(with_models)
    assert first.numbers.keys() == {("m", 1), ("m", 2)}
    put_router(with_models, version=1)
    second = read_snapshot(with_models, first)
    assert second.numbers.keys() == {("m", 1)}
    assert read_snapshot(with_models, second, frozenset({("m", 2)})).numbers.keys() == {("m", 1), ("m", 2)}


def test_a_new_snapshot_is_used_after_its_preparation(
    with_models: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", SELDOM)
    prepared: list[tuple[Snapshot | None, Snapshot]] = []
    used: list[Snapshot | None] = []

    async def prepare(old: Snapshot | None, new: Snapshot) -> None:
        prepared.append((old, new))
        used.append(catalog.current)

    catalog = Catalog(with_models, Settings(), queries.resolve, prepare)

    async def test() -> None:
        await catalog.start()
        try:
            first = await catalog.fresh()
            await asyncio.to_thread(put_router, with_models, version=2)
            second = await catalog.fresh()
        finally:
            await catalog.stop()
        assert prepared == [(None, first), (first, second)]
        assert second.routers["desk"].config["version"] == 2
        assert used == [None, None]

    asyncio.run(test())


def delete_version(db: Database, version: int) -> None:
    with db.write() as tx:
        tx.session.execute(delete(tables.ModelVersion).where(tables.ModelVersion.version == version))


def test_the_snapshot_remembers_a_limited_number_of_versions(
    with_models: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_NUMBERS", 1)

    async def test(catalog: Catalog) -> None:
        for version in (1, 2, 1, 2):
            assert (await catalog.resolve("m", version)).version == version
            assert catalog.current is not None
            assert len(catalog.current.numbers) == 1

    run(with_models, test)


@pytest.mark.parametrize(
    ("model", "ref"), [("none", "live"), ("none", 1), ("m", "none"), ("m", 3), ("m", -1), ("m", 2**31 - 1)]
)
def test_a_version_that_does_not_exist_has_the_error_of_the_registry(
    with_models: Database, model: str, ref: int | str
) -> None:
    with with_models.read() as session, pytest.raises(NotFound) as expected:
        queries.resolve(session, model, ref, pointer="/shadow")

    async def test(catalog: Catalog) -> None:
        with pytest.raises(NotFound) as refused:
            await catalog.resolve(model, ref, pointer="/shadow")
        assert refused.value.detail == expected.value.detail
        assert refused.value.errors == expected.value.errors

    run(with_models, test)


@only_postgresql
def test_a_name_that_the_database_cannot_compare_does_not_stop_the_checks(
    with_models: Database, other: Database
) -> None:
    async def test(catalog: Catalog) -> None:
        with pytest.raises(NotReady):
            await catalog.resolve("m\0", 1)
        key = await asyncio.to_thread(create_key, other)
        await snapshot_with(catalog, lambda snapshot: knows(snapshot, key))
        assert (await catalog.resolve("m", 2)).version == 2

    run(with_models, test, poll_seconds=0.01)


def test_an_alias_that_another_process_has_just_set_is_found(with_models: Database, other: Database) -> None:
    async def test(catalog: Catalog) -> None:
        await asyncio.to_thread(aliases.put, other, "m", "spare", AliasPut(version=2), None)
        assert (await catalog.resolve("m", "spare")).version == 2

    run(with_models, test)


# Outages


@pytest.fixture
def behind_proxy(database_url: str) -> Iterator[tuple[Database, FaultProxy]]:
    """The database behind a proxy."""
    url = make_url(database_url)
    target: Any = (url.host, url.port or 5432)
    if "host" in url.query:
        target = Path(str(url.query["host"])) / f".s.PGSQL.{url.port or 5432}"
    with proxy(target) as fault:
        reached = url.difference_update_query(["host"]).set(host="127.0.0.1", port=fault.port)
        db = Database(reached.render_as_string(hide_password=False))
        yield db, fault
        fault.heal()
        db.close()


@only_postgresql
def test_without_database_requests_continue_until_a_limit_and_after_it_is_back(
    database: Database, behind_proxy: tuple[Database, FaultProxy]
) -> None:
    db, fault = behind_proxy
    key = create_key(database)

    async def test(catalog: Catalog) -> None:
        authenticator = KeyAuthenticator(catalog, LastUsed(db))
        await asyncio.to_thread(fault.refuse)
        catalog.expire()
        assert await authenticator.authenticate(key.secret) is not None
        with pytest.raises(NotReady) as refused:
            await authenticator.authenticate("cov_unknown")
        assert refused.value.code == "database_unavailable"
        late = await asyncio.to_thread(create_key, database)
        catalog._expires_at = time.monotonic()  # the limit has passed
        assert catalog.current is None
        with pytest.raises(NotReady) as refused:
            await authenticator.authenticate(key.secret)
        assert refused.value.code == "database_unavailable"
        await asyncio.to_thread(fault.heal)
        await snapshot_with(catalog, lambda snapshot: knows(snapshot, late))
        assert await authenticator.authenticate(key.secret) is not None

    with captured_logs(module) as logs:
        run(db, test, poll_seconds=0.05)
    events = [entry["event"] for entry in logs if entry["event"].startswith("catalog.")]
    assert events == ["catalog.not_refreshed", "catalog.refreshed"]


@only_postgresql
def test_the_limit_begins_with_the_last_check_that_succeeded(
    database: Database, behind_proxy: tuple[Database, FaultProxy]
) -> None:
    db, fault = behind_proxy
    create_key(database)

    async def test(catalog: Catalog) -> None:
        await asyncio.to_thread(fault.refuse)

        async def fresh_for_ever() -> None:
            while True:
                await catalog.fresh()
                await asyncio.sleep(0.01)

        with pytest.raises(NotReady):
            await fresh_for_ever()
        await asyncio.to_thread(fault.heal)
        await snapshot_with(catalog, lambda _: True)

    run(db, test, poll_seconds=0.05, offline_seconds=0.5)


@only_postgresql
def test_a_database_that_does_not_respond_delays_requests_once_and_for_a_limited_time(
    database: Database, behind_proxy: tuple[Database, FaultProxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    db, fault = behind_proxy
    key = create_key(database)

    async def test(catalog: Catalog) -> None:
        await asyncio.to_thread(fault.mute)
        monkeypatch.setattr(module, "CHECK_SECONDS", 0.05)
        catalog.expire()
        snapshot = await catalog.fresh()
        assert knows(snapshot, key)
        monkeypatch.setattr(module, "CHECK_SECONDS", 3600.0)
        for _ in range(100):  # none of them waits for the check that runs now
            catalog.expire()
            assert await catalog.fresh() is snapshot
        await asyncio.to_thread(fault.heal)
        late = await asyncio.to_thread(create_key, database)
        await snapshot_with(catalog, lambda snapshot: knows(snapshot, late))

    with captured_logs(module) as logs:
        run(db, test, poll_seconds=0.05)
    assert [entry for entry in logs if entry["event"] == "catalog.not_refreshed"] == [
        {
            "event": "catalog.not_refreshed",
            "log_level": "warning",
            "reason": "the database does not respond",
        }
    ]


def test_a_check_that_never_ends_does_not_prevent_the_next_one(
    database: Database, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection can hang although new ones work."""
    released = threading.Event()
    calls: list[int] = []

    def read(*arguments: Any) -> Snapshot:
        calls.append(1)
        if len(calls) <= module.MAX_STUCK:
            released.wait(LIMIT_SECONDS)
        return read_snapshot(*arguments)

    async def test(catalog: Catalog) -> None:
        monkeypatch.setattr(module, "CHECK_SECONDS", 0.05)
        monkeypatch.setattr(module, "read_snapshot", read)
        key = await asyncio.to_thread(create_key, other)
        while len(calls) < module.MAX_STUCK:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        assert len(calls) == module.MAX_STUCK, "each check that hangs holds a connection"
        assert catalog.current is not None
        released.set()
        monkeypatch.setattr(module, "CHECK_SECONDS", LIMIT_SECONDS)
        await snapshot_with(catalog, lambda snapshot: knows(snapshot, key))

    run(database, test, poll_seconds=0.01)


def test_requests_that_wait_are_released_when_the_process_stops(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    def read(*arguments: Any) -> Snapshot:
        released.wait(LIMIT_SECONDS)
        return read_snapshot(*arguments)

    monkeypatch.setattr(module, "POLL_SECONDS", SELDOM)

    async def main() -> None:
        async with running_catalog(database) as catalog:
            monkeypatch.setattr(module, "read_snapshot", read)
            catalog.expire()
            waiting = [asyncio.create_task(catalog.fresh()) for _ in range(2)]
            await asyncio.sleep(0)
        released.set()
        await asyncio.gather(*waiting)

    asyncio.run(main())
    wait_for_readers()


def test_an_unexpected_error_does_not_end_the_checks(
    database: Database, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_arguments: Any) -> Snapshot:
        raise ZeroDivisionError

    async def test(catalog: Catalog) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(module, "read_snapshot", read)
            with pytest.raises(NotReady):
                await catalog.after_miss()
        key = await asyncio.to_thread(create_key, other)
        await snapshot_with(catalog, lambda snapshot: knows(snapshot, key))

    run(database, test, poll_seconds=0.01)
