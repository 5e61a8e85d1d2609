"""Where transactions begin and end.

``Database.write`` is the one place in Covey that commits, and the one place that rings the bell for jobs,
always after the commit: a worker can never meet a job id whose row it cannot see.
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

log = structlog.get_logger()

DATABASE_AWAY = (errors.OperationalError, errors.InterfaceError, errors.TimeoutError)
"""What is raised while the database does not answer, or not in time."""


def away(error: Exception) -> str:
    """In a line, why the database cannot be used now; without the statement, in which a text might stand."""
    return f"the database does not answer: {' '.join(str(getattr(error, 'orig', error)).split())}"


BUSY_SECONDS = 30
"""How long a SQLite writer waits for another one."""


class Transaction:
    """One writing transaction; jobs named by ``ring`` are rung once it is committed."""

    def __init__(self, session: Session) -> None:
        self.session = session
        session.connection()  # begins: on SQLite the clock is read when the wait for other writers is over
        self.now = database_now(session)
        """The moment of this transaction by the database's clock, the same for every row it writes."""
        self.bells: list[str] = []

    def ring(self, job_id: str) -> None:
        """Ring for a job after the commit."""
        self.bells.append(job_id)


class Database:
    """An engine with the rules of this service.

    Args:
        url: SQLAlchemy URL.
        ring: called with each job id after a commit; must not raise.
        guard: entered around every transaction; for a process that forks, see ``workers.supervisor``.

    Make one per process, after any fork: connections must not be inherited.
    """

    def __init__(
        self, url: str, ring: Callable[[str], None], guard: AbstractContextManager[Any] | None = None
    ) -> None:
        self.engine = make_engine(url)
        self._ring = ring
        self._guard = guard or nullcontext()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session that only reads."""
        with self._guard, Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A transaction that commits when the block ends, and changes nothing when it raises."""
        with self._guard, self.engine.connect() as raw:
            connection = raw.execution_options(covey_write=True)
            with Session(connection, expire_on_commit=False) as session, session.begin():
                transaction = Transaction(session)
                yield transaction
        for job_id in transaction.bells:
            self._ring(job_id)

    def empty_journal(self) -> None:
        """Write SQLite's journal into its file and empty it; nothing to do for other databases."""
        if self.engine.dialect.name != "sqlite":
            return
        connection = self.engine.raw_connection()
        try:
            # Not inside a transaction, where it would be refused.
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def make_engine(url: str) -> Engine:
    """An engine for SQLite or PostgreSQL (``postgresql://`` means psycopg 3)."""
    if url.startswith("postgresql://"):
        url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    # Errors end up in logs; what was to be written, mail among it, must not.
    engine = create_engine(url, pool_pre_ping=True, hide_parameters=True, connect_args=_connecting(url))
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _connecting(url: str) -> dict[str, Any]:
    """A server that is there and does not answer counts as away, too, after a while."""
    if not url.startswith("postgresql+psycopg:"):
        return {}
    return {"connect_timeout": 5, "tcp_user_timeout": 15_000}


def database_now(session: Session) -> datetime:
    """Now, by the clock that all workers share: the database's, or this machine's for SQLite."""
    if session.get_bind().dialect.name == "sqlite":
        return datetime.now(UTC)
    moment: datetime = session.execute(select(func.clock_timestamp())).scalar_one()
    return moment.astimezone(UTC)


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver's own idea of transactions loses updates silently; BEGIN is said explicitly below.
    connection.isolation_level = None
    for pragma in (
        "journal_mode = WAL",
        f"busy_timeout = {BUSY_SECONDS * 1000}",
        "synchronous = FULL",
        "foreign_keys = ON",
        # What was deleted is overwritten: words of mails are among it.
        "secure_delete = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later cannot wait for its turn; one that will write says so.
    write = connection.get_execution_options().get("covey_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
