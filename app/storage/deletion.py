"""Delete files that no row references any more, after the transaction that removed the references."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

import structlog

from app.background import UNAVAILABLE, PeriodicTask
from app.db import open_sessions
from app.storage.interface import Storage

log = structlog.get_logger()

WAIT_SECONDS = 5.0
"""How long a caller waits for the deletion of its files, so that they are usually gone when it responds."""

MAX_PENDING = 1000
"""Number of deletions that can wait for a slow storage. Further files are left to retention."""


class FileDeletion:
    """Delete files in a thread. Whatever happens to the storage, this neither fails nor delays a response.

    Retention deletes the files that remain.

    Args:
        storage: the storage of the files.
        are_files_locked: returns whether a backup needs the files; see ``app.db.backup_lock``.
    """

    def __init__(self, storage: Storage, are_files_locked: Callable[[], bool]) -> None:
        self._storage = storage
        self._are_files_locked = are_files_locked
        self._pending: deque[tuple[Sequence[str], threading.Event]] = deque()
        self._task = PeriodicTask("file-deletion", self._delete_pending, every=None)
        self._slow = False

    def delete(self, keys: Sequence[str]) -> None:
        """Delete files. Wait a moment for it, unless the storage is slow. Never raises an error."""
        open_sessions.refuse_if_any("a deletion of files")
        if not keys:
            return
        if len(self._pending) >= MAX_PENDING:
            log.warning("storage.files_not_deleted", keys=list(keys), reason="the storage is too slow")
            return
        done = threading.Event()
        self._pending.append((keys, done))
        self._task.wake()
        if not self._slow and not done.wait(WAIT_SECONDS):
            self._slow = True

    def close(self) -> None:
        """End the thread, without waiting for a storage that does not answer."""
        self._task.stop(0.0)

    def _delete_pending(self) -> None:
        while self._pending:
            keys, done = self._pending.popleft()
            try:
                self._delete(keys)
            finally:
                self._slow = False
                done.set()

    def _delete(self, keys: Sequence[str]) -> None:
        try:
            if self._are_files_locked():
                log.info("storage.files_locked", keys=list(keys))
                return
            for key in keys:
                self._storage.delete(key)
        except UNAVAILABLE as error:
            log.warning("storage.files_not_deleted", keys=list(keys), reason=type(error).__name__)
