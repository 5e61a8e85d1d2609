"""The lock of a backup: a row that says until when no file of the storage is deleted.

The rows in a backup are those of one moment, and their files are copied afterwards. The lock is committed
before that moment. A process that deletes a file first commits that no row references it, and then looks for
locks. If there is none, the lock was committed later, and so the backup does not contain the row either. If
there is one, the file is left to retention, which deletes it after the backup.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import structlog
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.background import PeriodicTask
from app.db import tables
from app.db.failures import DatabaseFullError, DatabaseReadOnlyError
from app.db.session import DATABASE_UNAVAILABLE, Database, database_now
from app.ids import new_id

log = structlog.get_logger()

LOCK_SECONDS = 300.0
"""Time after which the lock of a process that died has no effect. A living process renews it before."""


@contextmanager
def lock_files(db: Database) -> Iterator[None]:
    """Prevent the deletion of files until the block ends.

    If nothing can be written to the database, there is no lock: then no client can delete a row either.
    """
    try:
        with db.write() as tx:
            tx.session.execute(delete(tables.BackupLock).where(tables.BackupLock.expires_at <= tx.now))
            lock_id = new_id("req")
            tx.session.add(tables.BackupLock(id=lock_id, expires_at=_expiry(tx.now)))
    except (DatabaseReadOnlyError, DatabaseFullError) as error:
        log.warning("backup.files_not_locked", reason=error.state)
        yield
        return
    renewal = PeriodicTask("backup-lock", lambda: _renew(db, lock_id), every=LOCK_SECONDS / 10)
    renewal.start()
    try:
        yield
    finally:
        renewal.stop()
        try:
            with db.write() as tx:
                tx.session.execute(delete(tables.BackupLock).where(tables.BackupLock.id == lock_id))
        except DATABASE_UNAVAILABLE:
            log.warning("backup.lock_not_removed", expires_in=LOCK_SECONDS)


def are_files_locked(session: Session) -> bool:
    """Return whether files must not be deleted now. Ask after the query or commit that shows them unused."""
    lock = select(tables.BackupLock.id).where(tables.BackupLock.expires_at > database_now(session)).limit(1)
    return session.scalar(lock) is not None


def _renew(db: Database, lock_id: str) -> None:
    with db.write() as tx:
        tx.session.execute(
            update(tables.BackupLock)
            .where(tables.BackupLock.id == lock_id)
            .values(expires_at=_expiry(tx.now))
        )


def _expiry(now: datetime) -> datetime:
    return now + timedelta(seconds=LOCK_SECONDS)
