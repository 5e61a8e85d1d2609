"""Transactions commit or roll back completely, and notify the workers only after the commit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone

import pytest
import rows
from racing_processes import race
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from app.db import tables
from app.db.session import Database, database_now
from app.jobs import queue

only_on_sqlite = pytest.mark.parametrize("kind_of_database", ["sqlite"], indirect=True)
only_on_postgresql = pytest.mark.parametrize("kind_of_database", ["postgresql"], indirect=True)


@pytest.fixture
def counter(database: Database) -> tables.Model:
    """A row to count in."""
    with database.write() as tx:
        row = tables.Model(name="counter", last_version=0, created_at=tx.now)
        tx.session.add(row)
    return row


def count_of(database: Database) -> int:
    with database.read() as session:
        return session.get_one(tables.Model, "counter").last_version


def test_no_update_is_lost_between_processes(
    database: Database, database_url: str, counter: tables.Model
) -> None:
    # The driver's default lost most of these silently, and a deferred BEGIN refused a quarter of them.
    times = 300 if database.engine.dialect.name == "sqlite" else 100
    assert race(4, "count", database_url, str(times)) == [times] * 4
    assert count_of(database) == 4 * times


def test_no_update_is_lost_between_threads(database: Database, counter: tables.Model) -> None:
    def count(_: int) -> None:
        with database.write() as tx:
            row = tx.session.get_one(tables.Model, "counter", with_for_update=True)
            row.last_version = row.last_version + 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(100)))
    assert count_of(database) == 100


def test_a_block_that_raises_changes_nothing_and_notifies_nobody(
    database: Database, notified: list[str]
) -> None:
    before = rows.all_rows(database)

    def fail() -> None:
        with database.write() as tx:
            queue.enqueue(tx, "train", {})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert rows.all_rows(database) == before
    assert notified == []


def test_a_failed_commit_notifies_nobody(database: Database, notified: list[str]) -> None:
    first = rows.queued(database)
    notified.clear()

    def fail() -> None:
        with database.write() as tx:
            queue.enqueue(tx, "train", {})
            # The commit inserts this row and fails, because the event already exists.
            tx.session.add(tables.JobEvent(job_id=first, seq=1, at=tx.now, type="twice", detail={}))

    with pytest.raises(IntegrityError):
        fail()
    assert notified == []
    assert rows.events(database, first) == ["queued"]


def test_workers_are_notified_when_other_connections_can_see_the_row(database_url: str) -> None:
    states: list[str | None] = []

    def read_state(job_id: str) -> None:
        with other.read() as session:
            row = session.get(tables.Job, job_id)
            states.append(row.state if row is not None else None)

    other = Database(database_url)
    with closing(Database(database_url, notify=read_state)) as database, closing(other):
        with database.write() as tx:
            queue.enqueue(tx, "train", {})
            assert states == []
            queue.enqueue(tx, "train", {})
        assert states == ["queued"], "one notification is enough, because a worker claims all due jobs"


def test_all_rows_of_a_transaction_have_the_same_time(database: Database) -> None:
    with database.write() as tx:
        job = queue.enqueue(tx, "train", {})
        times = {job.created_at, job.due_at, tx.now}
    assert len(times) == 1
    assert tx.now.tzinfo is UTC


@only_on_sqlite
def test_the_time_of_a_transaction_is_read_after_it_has_waited_for_other_writers(database: Database) -> None:
    """Otherwise a lease could expire before it begins, if the database is busy for a long time."""
    started = threading.Event()

    def write() -> datetime:
        started.set()
        with database.write() as tx:
            return tx.now

    with ThreadPoolExecutor(1) as pool:
        with database.write() as tx:
            second = pool.submit(write)
            started.wait()
            threading.Event().wait(0.2)
            released = database_now(tx.session)
        assert second.result() >= released


def test_readers_do_not_wait_for_a_writer(database: Database, counter: tables.Model) -> None:
    with database.write() as tx:
        tx.session.get_one(tables.Model, "counter", with_for_update=True).last_version = 7
        tx.session.flush()
        assert count_of(database) == 0
    assert count_of(database) == 7


@only_on_sqlite
def test_a_reader_sees_a_snapshot(database: Database, counter: tables.Model) -> None:
    with database.read() as session:
        query = select(tables.Model.last_version)
        assert session.scalar(query) == 0
        with database.write() as tx:
            tx.session.get_one(tables.Model, "counter").last_version = 1
        assert session.scalar(query) == 0


def test_foreign_keys_are_enforced(database: Database) -> None:
    with pytest.raises(IntegrityError), database.write() as tx:
        queue.enqueue(tx, "ingest", {}, dataset_id="ds_missing")


@only_on_sqlite
def test_sqlite_is_configured_for_several_processes(database: Database) -> None:
    with database.read() as session:
        settings = {
            name: session.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    full = 2
    assert settings == {"journal_mode": "wal", "synchronous": full, "foreign_keys": 1, "busy_timeout": 30_000}


TIMES = [
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 6, 30, 23, 59, 59, 999_999, tzinfo=timezone(timedelta(hours=-11))),
    datetime(2026, 10, 25, 1, 30, tzinfo=UTC),  # this local hour occurs twice in Europe
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 0, tzinfo=timezone(timedelta(hours=5, minutes=45))),
]


@pytest.mark.parametrize("time", TIMES)
def test_times_are_stored_exactly_and_returned_in_utc(database: Database, time: datetime) -> None:
    with database.write() as tx:
        tx.session.add(tables.Model(name="m", last_version=0, created_at=time))
    with database.read() as session:
        stored = session.get_one(tables.Model, "m").created_at
        name = session.scalar(select(tables.Model.name).where(tables.Model.created_at == time))
    assert stored == time
    assert stored.utcoffset() == timedelta(0)
    assert name == "m"


@pytest.fixture
def newfoundland_time_zone(database: Database) -> Iterator[None]:
    """Sets the time zone of the database to that of Newfoundland."""
    for statement in ("SET timezone = 'America/St_Johns'", "RESET timezone"):
        with database.engine.begin() as connection:
            name = connection.execute(text("SELECT current_database()")).scalar_one()
            connection.execute(text(f"ALTER DATABASE {name} {statement}"))
        database.engine.dispose()
        if statement.startswith("SET"):
            yield


@only_on_postgresql
@pytest.mark.usefixtures("newfoundland_time_zone")
def test_the_time_zone_of_the_database_does_not_change_times(database: Database) -> None:
    job_id = rows.queued(database)
    rows.claimed(database, job_id)
    job = rows.job(database, job_id)
    assert job.started_at is not None
    assert job.lease_expires_at is not None
    assert job.lease_expires_at - job.started_at == timedelta(seconds=10)
    assert abs(job.started_at - datetime.now(UTC)) < timedelta(minutes=10)


def test_a_postgresql_url_uses_the_installed_driver() -> None:
    database = Database("postgresql://user@localhost/covey")
    assert database.engine.dialect.driver == "psycopg"
