"""Transactions.

``Database.write`` is the only place in Covey that commits. It is also the only place that notifies the
workers about queued jobs, always after the commit: a worker never receives the id of a row that it cannot
see yet.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any

import structlog
from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy import exc as errors
from sqlalchemy.orm import Session

from app.db import open_sessions

log = structlog.get_logger()

DATABASE_UNAVAILABLE = (errors.OperationalError, errors.InterfaceError, errors.TimeoutError)
"""Exceptions that mean that the database does not respond, or not in time."""


def unavailable_reason(error: Exception) -> str:
    """Return in one line why the database is unavailable, without the SQL, which may quote a message."""
    return f"the database is unavailable: {' '.join(str(getattr(error, 'orig', error)).split())}"


BUSY_SECONDS = 30
"""How long a SQLite writer waits for another writer."""


class Transaction:
    """One writing transaction. After the commit, workers are notified about the jobs that it queued."""

    def __init__(self, session: Session) -> None:
        self.session = session
        session.connection()  # begins: SQLite waits for other writers here, before the clock is read
        self.now = database_now(session)
        """The time of this transaction by the database's clock, the same for every row that it writes."""
        self.queued_job_ids: list[str] = []

    def notify(self, job_id: str) -> None:
        """Notify the workers about a job after the commit."""
        self.queued_job_ids.append(job_id)


class Database:
    """An engine with Covey's transaction rules.

    Args:
        url: SQLAlchemy URL.
        notify: called with the id of each queued job after the commit; must not raise.
        guard: entered around every transaction; for a process that forks, see ``workers.maintenance``.

    Create one per process, after any fork: connections must not be inherited.
    """

    def __init__(
        self,
        url: str,
        notify: Callable[[str], None] = lambda _: None,
        guard: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.engine = make_engine(url)
        self._notify = notify
        self._guard = guard or nullcontext()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session that only reads."""
        with self._guard, open_sessions.counted(), Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction. It commits when the block ends, and rolls back if the block raises."""
        with self._guard, open_sessions.counted(), self.engine.connect() as raw:
            connection = raw.execution_options(covey_write=True)
            with Session(connection, expire_on_commit=False) as session, session.begin():
                transaction = Transaction(session)
                yield transaction
        for job_id in transaction.queued_job_ids:
            self._notify(job_id)

    def truncate_wal(self) -> None:
        """Move SQLite's write-ahead log into the database file. Do nothing for other databases."""
        if self.engine.dialect.name != "sqlite":
            return
        connection = self.engine.raw_connection()
        try:
            # SQLite refuses this pragma inside a transaction.
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def make_engine(url: str) -> Engine:
    """Create an engine for SQLite or PostgreSQL (``postgresql://`` means psycopg 3)."""
    if url.startswith("postgresql://"):
        url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    # Errors are logged, and parameters may contain text of messages, which must not be logged.
    engine = create_engine(url, pool_pre_ping=True, hide_parameters=True, connect_args=_connect_args(url))
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _connect_args(url: str) -> dict[str, Any]:
    """Return time limits, so that a server that does not respond counts as unavailable."""
    if not url.startswith("postgresql+psycopg:"):
        return {}
    return {"connect_timeout": 5, "tcp_user_timeout": 15_000}


def database_now(session: Session) -> datetime:
    """Return the time by the clock that all workers share: the database's, or this machine's for SQLite."""
    if session.get_bind().dialect.name == "sqlite":
        return datetime.now(UTC)
    moment: datetime = session.execute(select(func.clock_timestamp())).scalar_one()
    return moment.astimezone(UTC)


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver's own transaction handling loses updates silently, so ``_begin_sqlite`` issues BEGIN itself.
    connection.isolation_level = None
    for pragma in (
        "journal_mode = WAL",
        f"busy_timeout = {BUSY_SECONDS * 1000}",
        "synchronous = FULL",
        "foreign_keys = ON",
        # Deleted rows may contain text of messages, so SQLite overwrites them.
        "secure_delete = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # SQLite fails a transaction that reads first and writes later, instead of letting it wait for other
    # writers. A transaction that will write therefore begins with IMMEDIATE.
    write = connection.get_execution_options().get("covey_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
