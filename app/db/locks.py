"""Find out whether another program holds a lock for which every write has to wait."""

from __future__ import annotations

import sqlite3

from sqlalchemy import text

from app.db.session import BUSY_SECONDS, Database

TRY_SECONDS = 1.0
"""How long to try to write to SQLite. Covey's own transactions are shorter."""

WAIT_SECONDS = 5.0
"""Time after which a statement of PostgreSQL that waits for a lock is reported."""

_WAITING = text(
    """
    SELECT extract(epoch FROM clock_timestamp() - query_start), pg_blocking_pids(pid)
    FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
    ORDER BY query_start LIMIT 1
    """
)


def lock_reason(db: Database) -> str | None:
    """Return who prevents writing to the database, or None if everything can write.

    Raises:
        SQLAlchemyError: the database is unavailable.
    """
    return _sqlite_reason(db) if db.engine.dialect.name == "sqlite" else _postgresql_reason(db)


def _sqlite_reason(db: Database) -> str | None:
    connection = db.engine.raw_connection()
    try:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {TRY_SECONDS * 1000:.0f}")
        try:
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return "another program has locked the database, so nothing can be written; close it"
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    finally:
        connection.close()
    return None


def _postgresql_reason(db: Database) -> str | None:
    with db.read() as session:
        row = session.execute(_WAITING).one_or_none()
    if row is None or float(row[0]) < WAIT_SECONDS:
        return None
    holders = ", ".join(map(str, row[1]))
    return (
        f"statements have waited {float(row[0]):.0f} s for a lock that process {holders} of the database "
        "holds; end its transaction"
    )
