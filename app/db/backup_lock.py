"""Holds: while one exists, files of the storage are not deleted. A backup holds the files that it copies.

The rows in a backup are those of one moment, and their files are copied afterwards. The hold is committed
before that moment. Whoever deletes a file first commits that no row references it, and then asks for holds.
If it sees none, the hold was committed later, and so the backup does not contain the row either. If it sees
one, it leaves the file to retention, which deletes it after the backup.
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

HOLD_SECONDS = 300.0
"""Time after which the hold of a process that died has no effect. A living process renews it before."""


@contextmanager
def hold_files(db: Database) -> Iterator[None]:
    """Prevent the deletion of files until the block ends.

    If nothing can be written to the database, there is no hold: then no client can delete a row either.
    """
    try:
        with db.write() as tx:
            tx.session.execute(delete(tables.FileHold).where(tables.FileHold.expires_at <= tx.now))
            hold_id = new_id("req")
            tx.session.add(tables.FileHold(id=hold_id, expires_at=_expiry(tx.now)))
    except (DatabaseReadOnlyError, DatabaseFullError) as error:
        log.warning("backup.files_not_held", reason=error.state)
        yield
        return
    renewal = PeriodicTask("backup-lock", lambda: _renew(db, hold_id), every=HOLD_SECONDS / 10)
    renewal.start()
    try:
        yield
    finally:
        renewal.stop()
        try:
            with db.write() as tx:
                tx.session.execute(delete(tables.FileHold).where(tables.FileHold.id == hold_id))
        except DATABASE_UNAVAILABLE:
            log.warning("backup.hold_not_removed", expires_in=HOLD_SECONDS)


def are_files_held(session: Session) -> bool:
    """Return whether files must not be deleted now. Ask after the query or commit that shows them unused."""
    held = select(tables.FileHold.id).where(tables.FileHold.expires_at > database_now(session)).limit(1)
    return session.scalar(held) is not None


def _renew(db: Database, hold_id: str) -> None:
    with db.write() as tx:
        tx.session.execute(
            update(tables.FileHold).where(tables.FileHold.id == hold_id).values(expires_at=_expiry(tx.now))
        )


def _expiry(now: datetime) -> datetime:
    return now + timedelta(seconds=HOLD_SECONDS)
