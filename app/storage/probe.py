"""Check in a background thread whether the storage is readable and writable."""

from __future__ import annotations

import threading
import time

import structlog

from app.background import PeriodicTask
from app.storage.interface import Storage, StorageUnavailableError

log = structlog.get_logger()

TIMEOUT_SECONDS = 2.0
"""Time after which a check that has not finished counts as failed."""


class StorageProbe:
    """Check the storage in a thread, because a call to a network disk can block for any length of time.

    Args:
        storage: the storage to check.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._task = PeriodicTask("storage-probe", self._check, every=None)
        self._finished = threading.Event()
        self._finished.set()
        self._started_at = float("-inf")
        self._finished_at = float("-inf")
        self._reason: str | None = None
        self.free_bytes: int | None = None
        """Space for new files, as of the last check; None if the storage does not say it."""

    def reason(self) -> str | None:
        """Return why the storage cannot be used now, or None if it can."""
        with self._lock:
            if self._finished.is_set():
                if time.monotonic() - self._finished_at < self._storage.check_seconds:
                    return self._reason
                self._finished.clear()
                self._started_at = time.monotonic()
                self._task.wake()
            remaining = self._started_at + TIMEOUT_SECONDS - time.monotonic()
        if not self._finished.wait(max(remaining, 0.0)):
            return "the storage does not answer"
        return self._reason

    def close(self) -> None:
        """End the thread, without waiting for a storage that does not answer."""
        self._task.stop(0.0)

    def _check(self) -> None:
        try:
            previous, self._reason = self._reason, self._problem()
        finally:
            self._finished_at = time.monotonic()
            self._finished.set()
        if previous and not self._reason:
            log.info("storage.available")

    def _problem(self) -> str | None:
        try:
            self.free_bytes = self._storage.check().free_bytes
        except OSError as error:
            log.error("storage.unavailable", reason=error.strerror)  # noqa: TRY400 - a traceback adds nothing
            # Readiness is public, so the reason must not reveal the address of the storage.
            cause = error.public_reason if isinstance(error, StorageUnavailableError) else error.strerror
            return f"the storage cannot be used ({cause})"
        return None
