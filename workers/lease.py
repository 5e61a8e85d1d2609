"""Renews the lease of one job in a thread, so that a slow database delays neither limits nor a stop."""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from app.db.session import DATABASE_UNAVAILABLE, Database
from app.jobs import queue
from app.jobs.queue import Claim, LostClaimError
from app.settings import Settings

log = structlog.get_logger()

_JOIN_SECONDS = 0.05


class LeaseRenewal:
    """Renews the lease of a claimed job with every heartbeat, over a connection of its own.

    Args:
        settings: settings of the service.
        claim: the claim on the job.

    Attributes:
        cancel_requested: whether cancellation of the job was requested.
        lost: whether the claim is no longer valid.
    """

    def __init__(self, settings: Settings, claim: Claim) -> None:
        self.cancel_requested = False
        self.lost = False
        self._settings = settings
        self._claim = claim
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_ended, name="lease", daemon=True)

    def start(self) -> None:
        """Start the thread. This process must not fork until ``stop`` returns true."""
        self._thread.start()

    def stop(self, *, give_up: Callable[[], bool]) -> bool:
        """Stop renewing, and wait for the thread.

        Args:
            give_up: checked while the thread waits for the database.

        Returns:
            whether the thread has ended.
        """
        self._ended.set()
        while self._thread.is_alive() and not give_up():
            self._thread.join(_JOIN_SECONDS)
        return not self._thread.is_alive()

    def _renew_until_ended(self) -> None:
        db = Database(self._settings.resolved_database_url())
        try:
            while not self._ended.wait(self._settings.heartbeat_seconds):
                self._renew(db)
        except LostClaimError:
            self.lost = True
        finally:
            db.close()

    def _renew(self, db: Database) -> None:
        try:
            if queue.renew_lease(db, self._claim, lease_seconds=self._settings.lease_seconds):
                self.cancel_requested = True
        except DATABASE_UNAVAILABLE as error:
            # The job process continues; if the database stays unavailable for too long, the lease decides.
            log.warning("job.lease_not_renewed", job_id=self._claim.job_id, reason=type(error).__name__)
