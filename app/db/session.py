"""Transactions.

``Database.write`` is the only place in Covey that commits, except for ``Database.autocommit``, on whose
connections the database commits each statement itself. ``Database.write`` is also the only place that
notifies the workers about queued jobs, always after the commit: a worker that looks for the job can see its
row.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import structlog
from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy import exc as errors
from sqlalchemy.orm import Session

from app.db import open_sessions, revisions
from app.db.failures import DamageDetector, DatabaseStateError, convert_failures

log = structlog.get_logger()

DATABASE_UNAVAILABLE = (errors.OperationalError, errors.InterfaceError, errors.TimeoutError)
"""Exceptions that mean that the database does not respond, or not in time."""


def unavailable_reason(error: Exception) -> str:
    """Return in one line why the database is unavailable, without the SQL, which may quote a message."""
    if isinstance(error, DatabaseStateError):
        return f"the database is {error.state} ({' '.join(str(error.orig).split())}); {error.hint}"
    return f"the database is unavailable: {' '.join(str(getattr(error, 'orig', error)).split())}"


BUSY_SECONDS = 30
"""How long a SQLite writer waits for another writer."""

TRUNCATE_SECONDS = 1
"""How long the deletion of the write-ahead log waits for its readers."""

MAX_CONNECTIONS = 15
"""Maximum number of connections of an engine for a few threads."""

_KEPT_CONNECTIONS = 5
"""Number of connections that stay open when no thread uses them."""


class Transaction:
    """One writing transaction. After the commit, the workers are notified once if it queued jobs."""

    def __init__(self, session: Session) -> None:
        self.session = session
        session.connection()  # begins: SQLite waits for other writers here, before the clock is read
        self.now = database_now(session)
        """The time of this transaction by the database's clock, the same for every row that it writes."""
        self.queued_job_id: str | None = None
        """A job to notify the workers about. One is enough, because a worker then claims all due jobs."""

    def notify(self, job_id: str) -> None:
        """Notify the workers about a job after the commit."""
        self.queued_job_id = job_id


class Database:
    """An engine with Covey's transaction rules.

    Args:
        url: SQLAlchemy URL.
        notify: called after the commit with the id of a job that it queued; must neither raise nor wait.
        max_connections: maximum number of connections. Further threads wait for one.

    Attributes:
        catalog_changed: called after each transaction that may have changed keys, aliases or routers; must
            neither raise nor wait.

    Create one per process, after any fork: connections must not be inherited.
    """

    def __init__(
        self,
        url: str,
        notify: Callable[[str], None] = lambda _: None,
        *,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        self.engine = make_engine(url, max_connections=max_connections)
        revisions.record_changes(self.engine)
        self.catalog_changed: Callable[[], None] = lambda: None
        self._damage = DamageDetector(self.engine)
        self._notify = notify

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session that only reads."""
        self._damage.require_undamaged()
        with open_sessions.counted(), Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction. It commits when the block ends, and rolls back if the block raises."""
        self._damage.require_undamaged()
        changes: set[revisions.Part] = set()
        try:
            with open_sessions.counted(), self.engine.connect() as raw:
                options = {"covey_write": True, revisions.CHANGES: changes}
                connection = raw.execution_options(**options)
                with Session(connection, expire_on_commit=False) as session, session.begin():
                    transaction = Transaction(session)
                    yield transaction
                    session.flush()
                    if changes:
                        revisions.increment(session, changes)
        finally:
            # Also after an error: if the connection breaks, the database may have committed nevertheless.
            if changes:
                self.catalog_changed()
        if transaction.queued_job_id is not None:
            self._notify(transaction.queued_job_id)

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """Open a connection on which each statement is a transaction of its own."""
        self._damage.require_undamaged()
        with open_sessions.counted(), self.engine.connect() as connection:
            if self.engine.dialect.name == "sqlite":
                yield connection.execution_options(covey_autocommit=True)
            else:
                yield connection.execution_options(isolation_level="AUTOCOMMIT")

    def require_undamaged(self) -> None:
        """Check that no damage of a SQLite file was found before.

        Raises:
            DatabaseDamagedError: the file is damaged.
        """
        self._damage.require_undamaged()

    def check_file(self, seconds: float, *, every: float = 0.0) -> None:
        """Look for damage in a SQLite file. Do nothing for other databases.

        Args:
            seconds: time limit. A larger file is checked in part.
            every: if the last check began less than this number of seconds ago, its result is used again.

        Raises:
            DatabaseDamagedError: the file is damaged.
            OperationalError: the file cannot be opened.
        """
        self._damage.check_file(seconds, every=every)

    def truncate_wal(self) -> None:
        """Move SQLite's write-ahead log, which contains deleted texts, into the database file.

        Do nothing for other databases, or if a reader needs the log for longer than ``TRUNCATE_SECONDS``.
        """
        if self.engine.dialect.name != "sqlite":
            return
        try:
            # SQLite refuses to do this inside a transaction.
            with self.autocommit() as connection:
                connection.exec_driver_sql(f"PRAGMA busy_timeout = {TRUNCATE_SECONDS * 1000}")
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.exec_driver_sql(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        except DATABASE_UNAVAILABLE as error:
            log.warning("database.wal_not_truncated", reason=unavailable_reason(error))

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def make_engine(url: str, *, max_connections: int = MAX_CONNECTIONS) -> Engine:
    """Create an engine for SQLite or PostgreSQL (``postgresql://`` means psycopg 3)."""
    if url.startswith("postgresql://"):
        url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    # Errors are logged, and parameters may contain text of messages, which must not be logged.
    kept = min(_KEPT_CONNECTIONS, max_connections)
    engine = create_engine(
        url,
        pool_pre_ping=True,
        pool_size=kept,
        max_overflow=max_connections - kept,
        hide_parameters=True,
        connect_args=_connect_args(url),
    )
    convert_failures(engine)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "do_connect", lambda *_: _create_private_file(engine.url.database))
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _connect_args(url: str) -> dict[str, Any]:
    """Return time limits, so that a server that does not respond counts as unavailable."""
    if not url.startswith("postgresql+psycopg:"):
        return {}
    return {
        "connect_timeout": 5,
        "tcp_user_timeout": 15_000,
        # Without probes, a connection whose server has vanished would wait for a response for hours.
        "keepalives_idle": 5,
        "keepalives_interval": 5,
        "keepalives_count": 3,
    }


def database_now(session: Session) -> datetime:
    """Return the time by the clock that all workers share: the database's, or this machine's for SQLite."""
    if session.get_bind().dialect.name == "sqlite":
        return datetime.now(UTC)
    moment: datetime = session.execute(select(func.clock_timestamp())).scalar_one()
    return moment.astimezone(UTC)


def _create_private_file(path: str | None) -> None:
    """Create the file of a SQLite database if there is none, so that only its owner can read it.

    SQLite itself would let others read it, unless its folder is private, and gives the other files of the
    database the mode of this one. A file that exists must not be opened here: closing it would release the
    locks of all connections of this process.
    """
    if not path or path == ":memory:" or path.startswith("file:"):
        return
    with suppress(OSError):  # it exists, or SQLite reports the error
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver's own transaction handling loses updates silently, so ``_begin_sqlite`` issues BEGIN itself.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    _turn_on_write_ahead_log(connection)
    for pragma in (
        "synchronous = FULL",
        "foreign_keys = ON",
        # Deleted rows may contain text of messages, so SQLite overwrites them.
        "secure_delete = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _turn_on_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Turn on write-ahead logging, which the file of the database remembers.

    Only the first connection to a new file changes the mode. If another process reads the file at that
    moment, for example to change the mode as well, SQLite fails at once instead of waiting.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    # SQLite fails a transaction that reads first and writes later, instead of letting it wait for other
    # writers. A transaction that will write therefore begins with IMMEDIATE.
    options = connection.get_execution_options()
    if options.get("covey_autocommit", False):
        return
    write = options.get("covey_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
