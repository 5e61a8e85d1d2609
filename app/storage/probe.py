"""Whether the storage takes files and gives them back, found out without ever keeping anybody waiting."""

from __future__ import annotations

import threading
import time

import structlog

from app.storage.interface import Storage, StorageUnavailableError

log = structlog.get_logger()

TIMEOUT_SECONDS = 2.0
"""Storage that has not answered for so long does not answer."""


class StorageProbe:
    """Tries the storage in a thread of its own, since a disk of the network may never answer.

    Args:
        storage: what to try.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._trial: threading.Thread | None = None
        self._begun = float("-inf")
        self._ended = float("-inf")
        self._reason: str | None = None

    def reason(self) -> str | None:
        """Why the storage cannot be used now; None when it can."""
        with self._lock:
            trial = self._trial
            if trial is None or not trial.is_alive():
                if time.monotonic() - self._ended < self._storage.check_seconds:
                    return self._reason
                self._begun = time.monotonic()
                trial = self._trial = threading.Thread(target=self._try, name="storage-probe", daemon=True)
                trial.start()
            patience = self._begun + TIMEOUT_SECONDS - time.monotonic()
        trial.join(max(patience, 0.0))
        if trial.is_alive():
            return "the storage does not answer"
        return self._reason

    def _try(self) -> None:
        before, self._reason = self._reason, self._found()
        self._ended = time.monotonic()
        if before and not self._reason:
            log.info("storage.available")

    def _found(self) -> str | None:
        try:
            self._storage.check()
        except OSError as error:
            log.error("storage.unavailable", reason=error.strerror)  # noqa: TRY400 - where it happens tells nothing
            # Everybody may ask whether the service is ready; where its bucket is is nobody's business.
            cause = "it does not answer" if isinstance(error, StorageUnavailableError) else error.strerror
            return f"the storage cannot be used ({cause})"
        return None
