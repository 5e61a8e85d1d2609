"""Several processes may open a new SQLite file at the same moment."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from app.db import session
from app.db.session import Database


@pytest.fixture
def new_file(tmp_path: Path) -> Path:
    """A database that no connection has switched to write-ahead logging yet."""
    path = tmp_path / "new.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE counters (value INTEGER)")
    return path


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite fails at once where it would wait for other connections."""
    monkeypatch.setattr(session, "BUSY_SECONDS", 0)


def test_a_connection_waits_until_nobody_else_reads_the_new_file(
    new_file: Path, no_waiting: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(new_file, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM counters").fetchall()
        attempts: list[None] = []

        def end_reading_after_two_attempts(_seconds: float) -> None:
            attempts.append(None)
            if len(attempts) == 2:
                other.execute("COMMIT")

        monkeypatch.setattr("app.db.session.time.monotonic", lambda: 0)
        monkeypatch.setattr("app.db.session.time.sleep", end_reading_after_two_attempts)
        with closing(Database(f"sqlite:///{new_file}")) as database, database.engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert len(attempts) == 2


def test_a_connection_gives_up_in_the_end(new_file: Path, no_waiting: None) -> None:
    with closing(sqlite3.connect(new_file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with (
            closing(Database(f"sqlite:///{new_file}")) as database,
            pytest.raises(OperationalError, match="database is locked"),
        ):
            database.engine.connect()
