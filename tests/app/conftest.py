"""Fixtures: databases of both kinds, an application context, and a clock that tests control."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import in_process
import postgres
import psycopg
import pytest
from in_process_api import InProcessApi, api
from sqlalchemy import QueuePool
from waiting import wait_for

from app.context import AppContext
from app.db import schema, tables
from app.db.session import Database

_TABLES = [table.name for table in reversed(tables.Base.metadata.sorted_tables)]
EMPTY = "; ".join(["SET lock_timeout = '20s'", *map("DELETE FROM {}".format, _TABLES)]).encode()
"""Deletes all rows: in one request, because a thousand tests send it."""


def _migrate(url: str) -> str:
    db = Database(url)
    schema.migrate(db.engine)
    db.close()
    return url


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: postgres.PostgresServer) -> Iterator[str]:
    """A migrated PostgreSQL database. Every test that uses it empties it afterwards."""
    url = _migrate(postgres_server.create())
    yield url
    postgres_server.drop(url)


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file, which tests copy and never change."""
    path = tmp_path_factory.mktemp("migrated") / "covey.db"
    _migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def kind_of_database(request: pytest.FixtureRequest) -> str:
    """The kind of database of the test. Every test that uses a database runs on both kinds."""
    kind: str = request.param
    return kind


@pytest.fixture
def empty_url(kind_of_database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without tables."""
    if kind_of_database == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
    url = server.create()
    yield url
    server.drop(url)


@pytest.fixture
def database_url(kind_of_database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database at the newest schema."""
    if kind_of_database == "sqlite":
        path = tmp_path / "covey.db"
        shutil.copyfile(request.getfixturevalue("migrated_sqlite"), path)
        yield f"sqlite:///{path}"
        return
    url: str = request.getfixturevalue("migrated_postgres")
    yield url
    with psycopg.connect(url) as connection:
        connection.execute(EMPTY)


@pytest.fixture
def notified() -> list[str]:
    """The ids of the jobs about which workers were notified, in order."""
    return []


@pytest.fixture
def database(database_url: str, notified: list[str]) -> Iterator[Database]:
    """A fresh database at the newest schema."""
    db = Database(database_url, notify=notified.append)
    yield db
    # A thread of the test may still read. The pool cannot close its connection, which would be a warning.
    wait_for(lambda: _is_idle(db) or None, what="the threads that use the database")
    db.close()


def _is_idle(db: Database) -> bool:
    pool = db.engine.pool
    return not isinstance(pool, QueuePool) or pool.checkedout() == 0


@pytest.fixture
def ctx(database: Database, database_url: str, tmp_path: Path) -> Iterator[AppContext]:
    """The context of a process of the service, with a fresh database and an unavailable broker."""
    with in_process.context(database, database_url, tmp_path) as ctx:
        yield ctx


@pytest.fixture
def service(tmp_path: Path, migrated_sqlite: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessApi]:
    """The API in this process, with a storage that the test controls."""
    with api(tmp_path, migrated_sqlite, monkeypatch) as service:
        yield service


class Clock:
    """A clock that advances only if the test requests it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Replaces the clock of the database."""
    clock = Clock()
    for module in ("app.db.session", "app.jobs.handing_out"):
        monkeypatch.setattr(f"{module}.database_now", lambda _: clock.now)
    return clock
