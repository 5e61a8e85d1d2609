"""Several processes may open a new SQLite file at the same moment."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from sqlalchemy import QueuePool
from sqlalchemy.exc import OperationalError, TimeoutError  # noqa: A004 - the one of the pool

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


def test_only_the_owner_can_read_a_new_database(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with closing(Database(f"sqlite:///{tmp_path / 'new.db'}")) as database, database.write() as tx:
        tx.session.connection().exec_driver_sql("CREATE TABLE counters (value INTEGER)")
        files = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert files == dict.fromkeys(("new.db", "new.db-wal", "new.db-shm"), 0o600)


def test_a_new_connection_leaves_the_locks_of_others(new_file: Path) -> None:
    """The system releases all locks of a process on a file as soon as the process closes one file handle.

    Another process would then take itself for the last user of the database, and delete its log.
    """
    program = (
        "import sqlite3, sys; other = sqlite3.connect(sys.argv[1]); "
        "other.execute('SELECT * FROM counters').fetchall(); other.close()"
    )
    with closing(Database(f"sqlite:///{new_file}")) as database, database.engine.connect() as first:
        first.exec_driver_sql("SELECT * FROM counters").all()
        with database.engine.connect():
            subprocess.run([sys.executable, "-c", program, str(new_file)], check=True)
        assert new_file.with_name("new.db-wal").exists()


def test_more_threads_than_connections_wait_for_one(tmp_path: Path) -> None:
    with closing(Database(f"sqlite:///{tmp_path / 'new.db'}", max_connections=2)) as database:
        pool = database.engine.pool
        assert isinstance(pool, QueuePool)
        pool._timeout = 0.05
        with ExitStack() as opened:
            for _ in range(2):
                opened.enter_context(database.engine.connect())
            with pytest.raises(TimeoutError):
                database.engine.connect()
