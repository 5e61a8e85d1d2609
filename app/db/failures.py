"""Failures of a database that responds: it is full, read-only or damaged.

The drivers report them under several classes. They are converted to subclasses of ``OperationalError``, so
that everything that handles an unavailable database handles them too: requests return 503, and jobs wait.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from typing import Any

import structlog
from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import InternalError, OperationalError

log = structlog.get_logger()


class DatabaseStateError(OperationalError):
    """Base of the failures. ``hint`` states what to do."""

    state: str
    hint: str


class DatabaseFullError(DatabaseStateError):
    """The disk of the database is full."""

    state = "full"
    hint = "free space on its disk"


class DatabaseReadOnlyError(DatabaseStateError):
    """The database refuses to write."""

    state = "read-only"
    hint = "make its file or server writable"


class DatabaseDamagedError(DatabaseStateError):
    """The database cannot read its own data."""

    state = "damaged"
    hint = "stop the service, move the database away and restore a backup"


_SQLITE = {
    sqlite3.SQLITE_FULL: DatabaseFullError,
    sqlite3.SQLITE_READONLY: DatabaseReadOnlyError,
    sqlite3.SQLITE_CORRUPT: DatabaseDamagedError,
    sqlite3.SQLITE_NOTADB: DatabaseDamagedError,
}
"""Failures by the result code of SQLite."""

_POSTGRESQL = {
    "53100": DatabaseFullError,  # disk_full
    "25006": DatabaseReadOnlyError,  # read_only_sql_transaction
    "58P01": DatabaseDamagedError,  # undefined_file
    "XX001": DatabaseDamagedError,  # data_corrupted
    "XX002": DatabaseDamagedError,  # index_corrupted
}
"""Failures by SQLSTATE; see appendix A of the documentation of PostgreSQL."""


def failure_type(error: BaseException | None) -> type[DatabaseStateError] | None:
    """Return the kind of failure that a driver's error means; None for any other error."""
    if isinstance(error, sqlite3.Error):
        # An extended result code has the basic one in its lowest byte. Some errors of the driver have none.
        return _SQLITE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    return _POSTGRESQL.get(getattr(error, "sqlstate", None) or "")


def convert_failures(engine: Engine) -> None:
    """Let an engine raise the errors of this module instead of the driver's."""
    event.listen(engine, "handle_error", _converted)


def _converted(context: ExceptionContext) -> OperationalError | None:
    kind: type[OperationalError] | None = failure_type(context.original_exception)
    if kind is None and context.is_disconnect and isinstance(context.sqlalchemy_exception, InternalError):
        kind = OperationalError  # PostgreSQL has ended the idle transaction of a process that was frozen
    if kind is None:
        return None
    return kind(
        context.statement,
        None,
        context.original_exception,
        hide_parameters=True,
        connection_invalidated=context.is_disconnect,
    )


class DamageDetector:
    """Remember if a SQLite file is damaged, and look for damage.

    Args:
        engine: the engine.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._is_file = engine.dialect.name == "sqlite"
        self._damage: BaseException | None = None
        self._lock = threading.Lock()
        self._checked_at = float("-inf")
        event.listen(engine, "handle_error", self._notice)

    def require_undamaged(self) -> None:
        """Check that no damage of the file was found before.

        A damaged file can get worse with every write, so nothing uses it until the process is restarted with
        another one. PostgreSQL knows better itself which of its tables it can use.

        Raises:
            DatabaseDamagedError: the file is damaged.
        """
        if self._damage is not None:
            raise DatabaseDamagedError(None, None, self._damage, hide_parameters=True)

    def check_file(self, seconds: float, *, every: float) -> None:
        """Look for damage; see ``Database.check_file``."""
        self.require_undamaged()
        with self._lock:
            if not self._is_file or time.monotonic() - self._checked_at < every:
                return
            self._checked_at = time.monotonic()
        with self._engine.connect() as connection:
            raw: Any = connection.connection.dbapi_connection
            # Pages that the connection has read before do not show what the file contains now.
            connection.exec_driver_sql("PRAGMA shrink_memory")
            timer = threading.Timer(seconds, raw.interrupt)
            timer.start()
            try:
                found = [row[0] for row in raw.execute("PRAGMA quick_check(1)")]
            except sqlite3.Error as error:
                if failure_type(error) is DatabaseDamagedError:
                    self._remember(error)
                found = []
            finally:
                timer.cancel()
        if found not in ([], ["ok"]):
            self._remember(sqlite3.DatabaseError(found[0]))
        self.require_undamaged()

    def _notice(self, context: ExceptionContext) -> None:
        if failure_type(context.original_exception) is DatabaseDamagedError:
            self._remember(context.original_exception)

    def _remember(self, error: BaseException) -> None:
        if self._damage is None:
            log.error("database.damaged", reason=" ".join(str(error).split()))
        if self._is_file:
            self._damage = error
