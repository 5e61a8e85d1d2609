"""Record when API keys were last used, without a write in any request.

Requests record the use of a key in memory. A thread writes these records to the database every few seconds.
If the database is read-only or its disk is full, requests do not fail: the records stay in memory, at most
one per key, and the thread tries again.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

from sqlalchemy import or_, update
from sqlalchemy.exc import SQLAlchemyError

from app.background import PeriodicTask
from app.db import tables
from app.db.revisions import UNCHANGED
from app.db.session import Database

RESOLUTION = timedelta(minutes=1)
"""``last_used_at`` is written at most this often, however many processes record the use of a key."""

FLUSH_SECONDS = 5.0
"""Time between two attempts to write the records."""


class LastUsed:
    """Record the use of keys, and write the records in a thread.

    Args:
        db: the database.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._unwritten: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._task = PeriodicTask("keys last used", self.flush, every=FLUSH_SECONDS, finish=self.flush)

    def start(self) -> None:
        """Start the thread that writes the records."""
        self._task.start()

    def stop(self) -> None:
        """Write the last records and stop the thread."""
        self._task.stop()

    def record(self, key_id: str, now: float) -> None:
        """Record that a key is used now, unless this process has recorded it recently.

        Args:
            key_id: id of the key.
            now: the time in seconds since the epoch.
        """
        if now - self._last.get(key_id, float("-inf")) <= RESOLUTION.total_seconds():
            return
        with self._lock:
            self._last[key_id] = self._unwritten[key_id] = now

    def flush(self) -> None:
        """Write the records to the database.

        Raises:
            SQLAlchemyError: the database cannot be written. The records are kept.
        """
        with self._lock:
            records, self._unwritten = self._unwritten, {}
            # Keys that were deleted are never used again.
            oldest = time.time() - RESOLUTION.total_seconds()
            self._last = {key_id: seconds for key_id, seconds in self._last.items() if seconds >= oldest}
        if not records:
            return
        try:
            with self._db.write() as tx:
                # In the order of ids, so that several processes lock the rows in the same order.
                for key_id, seconds in sorted(records.items()):
                    moment = datetime.fromtimestamp(seconds, UTC)
                    last_used_at = tables.ApiKey.last_used_at
                    is_due = or_(last_used_at.is_(None), last_used_at < moment - RESOLUTION)
                    tx.session.execute(
                        update(tables.ApiKey)
                        .where(tables.ApiKey.id == key_id, is_due)
                        .values(last_used_at=moment)
                        .execution_options(**{UNCHANGED: True})
                    )
        except SQLAlchemyError:
            with self._lock:
                self._unwritten = records | self._unwritten
            raise
