"""Deletes files that no row references any more, after the transaction that removed the references."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

import structlog

from app.db import open_sessions
from app.storage.interface import Storage

log = structlog.get_logger()

WAIT_SECONDS = 5.0
"""How long a caller waits for the deletion of its files, so that they are usually gone when it responds."""

MAX_PENDING = 1000
"""Number of deletions that can wait for a slow storage. Further files are left to retention."""


class FileDeletion:
    """Deletes files in a thread. Whatever happens to the storage, it neither fails nor delays a response.

    Retention deletes the files that remain.

    Args:
        storage: the storage of the files.
        are_files_held: returns whether a backup needs the files; see ``app.db.file_holds``.
    """

    def __init__(self, storage: Storage, are_files_held: Callable[[], bool]) -> None:
        self._storage = storage
        self._are_files_held = are_files_held
        self._pending: queue.Queue[tuple[Sequence[str], threading.Event]] = queue.Queue(MAX_PENDING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._slow = False

    def delete(self, keys: Sequence[str]) -> None:
        """Delete files. Wait a moment for it, unless the storage is slow. Never raises an error."""
        open_sessions.refuse_if_any("a deletion of files")
        if not keys:
            return
        done = threading.Event()
        try:
            self._pending.put_nowait((keys, done))
        except queue.Full:
            log.warning("storage.files_not_deleted", keys=list(keys), reason="the storage is too slow")
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="file-deletion", daemon=True)
                self._thread.start()
        if not self._slow and not done.wait(WAIT_SECONDS):
            self._slow = True

    def _run(self) -> None:
        while True:
            keys, done = self._pending.get()
            try:
                if self._are_files_held():
                    log.info("storage.files_held", keys=list(keys))
                    keys = ()
            except Exception as error:  # noqa: BLE001 - the thread must outlive every error
                log.warning("storage.files_not_deleted", keys=list(keys), reason=type(error).__name__)
                keys = ()
            for key in keys:
                try:
                    self._storage.delete(key)
                except Exception as error:  # noqa: BLE001 - the thread must outlive every error
                    log.warning("storage.files_not_deleted", keys=[key], reason=str(error))
            self._slow = False
            done.set()
