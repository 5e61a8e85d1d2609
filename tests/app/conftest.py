"""Both databases for the tests of what is written to them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import postgres
import pytest
from sqlalchemy import delete, text

from app.context import AppContext
from app.db import schema, tables
from app.db.session import Database, make_engine
from app.jobs.broker import broker_url
from app.jobs.notifier import Notifier
from app.settings import Settings
from app.storage import LocalStorage


def _migrate(url: str) -> str:
    db = Database(url)
    schema.migrate(db.engine)
    db.close()
    return url


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.PostgresServer]:
    """A PostgreSQL for the whole session; tests on it are skipped where there is none."""
    try:
        with postgres.server() as server:
            yield server
    except postgres.UnavailableError as error:
        pytest.skip(f"no PostgreSQL: {error}")


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: postgres.PostgresServer) -> Iterator[str]:
    """A migrated PostgreSQL database; every test that uses it leaves it empty."""
    url = _migrate(postgres_server.create())
    yield url
    postgres_server.drop(url)


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file, to be copied and never written to."""
    path = tmp_path_factory.mktemp("migrated") / "covey.db"
    _migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def kind_of_database(request: pytest.FixtureRequest) -> str:
    """Which database the test runs on; every test that uses one runs on both."""
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
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(text("SET lock_timeout = '20s'"))
        for table in reversed(tables.Base.metadata.sorted_tables):
            connection.execute(delete(table))
    engine.dispose()


@pytest.fixture
def notified() -> list[str]:
    """The jobs that the notifier was notified for, in order."""
    return []


@pytest.fixture
def database(database_url: str, notified: list[str]) -> Iterator[Database]:
    """A fresh database at the newest schema."""
    db = Database(database_url, notify=notified.append)
    yield db
    db.close()


@pytest.fixture
def ctx(database: Database, database_url: str, tmp_path: Path) -> Iterator[AppContext]:
    """What a process of the service works with, on a fresh database; its broker is away."""
    made = Settings(data_dir=tmp_path, database_url=database_url, lease_seconds=10)
    notifier = Notifier(broker_url(made))
    yield AppContext(made, database, LocalStorage(tmp_path / "storage"), notifier)
    notifier.close()


class Clock:
    """The database's clock, in the test's hands."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time that passes only when the test says so."""
    clock = Clock()
    monkeypatch.setattr("app.db.session.database_now", lambda _: clock.now)
    return clock
