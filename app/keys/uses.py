"""Records when API keys were last used, without a write in any request.

Requests note the use of a key in memory. A thread writes the notes to the database every few seconds. If the
database is read-only or its disk is full, requests do not fail: the notes stay in memory, at most one per
key, and the thread tries again.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import structlog
from sqlalchemy import or_, update
from sqlalchemy.exc import SQLAlchemyError

from app.db import tables
from app.db.revisions import UNCHANGED
from app.db.session import Database

log = structlog.get_logger()

RESOLUTION = timedelta(minutes=1)
"""``last_used_at`` is written at most this often, however many processes note the use of a key."""

WRITE_SECONDS = 5.0
"""Time between two attempts to write the notes."""


class KeyUses:
    """Notes the use of keys and writes the notes behind the requests.

    Args:
        db: the database.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._noted: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._stopping = threading.Event()
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="key-uses", daemon=True)

    def start(self) -> None:
        """Start the thread that writes the notes."""
        self._thread.start()

    def stop(self) -> None:
        """Write the last notes and stop the thread."""
        self._stopping.set()
        self._thread.join()

    def note(self, key_id: str, now: float) -> None:
        """Note that a key is used now, unless this process has noted it recently.

        Args:
            key_id: id of the key.
            now: the time in seconds since the epoch.
        """
        if now - self._last.get(key_id, float("-inf")) <= RESOLUTION.total_seconds():
            return
        with self._lock:
            self._last[key_id] = self._noted[key_id] = now

    def write(self) -> None:
        """Write the notes to the database. Keep them if the database cannot be written."""
        with self._lock:
            noted, self._noted = self._noted, {}
        if not noted:
            return
        try:
            with self._db.write() as tx:
                # In the order of ids, so that several processes lock the rows in the same order.
                for key_id, seconds in sorted(noted.items()):
                    moment = datetime.fromtimestamp(seconds, UTC)
                    last_used_at = tables.ApiKey.last_used_at
                    is_due = or_(last_used_at.is_(None), last_used_at < moment - RESOLUTION)
                    tx.session.execute(
                        update(tables.ApiKey)
                        .where(tables.ApiKey.id == key_id, is_due)
                        .values(last_used_at=moment)
                        .execution_options(**{UNCHANGED: True})
                    )
        except SQLAlchemyError as error:
            if not self._failing:
                self._failing = True
                log.warning("keys.use_not_recorded", reason=type(error).__name__)
            with self._lock:
                self._noted = noted | self._noted
        else:
            self._failing = False

    def _run(self) -> None:
        while not self._stopping.wait(WRITE_SECONDS):
            self.write()
        self.write()
