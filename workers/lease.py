"""Renew the lease of one job in a thread, so that a slow database delays neither limits nor a stop."""

from __future__ import annotations

from collections.abc import Callable

from structlog.contextvars import bind_contextvars

from app.background import PeriodicTask
from app.db.session import Database
from app.jobs import queue
from app.jobs.queue import Claim, LostClaimError
from app.settings import Settings

_JOIN_SECONDS = 0.05


class LeaseRenewal:
    """Renew the lease of a claimed job with every heartbeat, over a connection of its own.

    If the database is unavailable, the job process continues; if this takes too long, the lease decides.

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
        self._lease_seconds = settings.lease_seconds
        self._claim = claim
        self._db = Database(settings.resolved_database_url())
        self._task = PeriodicTask(
            "lease", self._renew, every=settings.heartbeat_seconds, finish=self._db.close
        )

    def start(self) -> None:
        """Start the thread. This process must not fork until ``stop`` returns true."""
        self._task.start()

    def stop(self, *, give_up: Callable[[], bool]) -> bool:
        """Stop renewing, and wait for the thread.

        Args:
            give_up: checked while the thread waits for the database.

        Returns:
            whether the thread has ended.
        """
        has_ended = self._task.stop(_JOIN_SECONDS)
        while not has_ended and not give_up():
            has_ended = self._task.stop(_JOIN_SECONDS)
        return has_ended

    def _renew(self) -> None:
        bind_contextvars(job_id=self._claim.job_id)  # threads do not inherit the context of the log
        if self.lost:
            return
        try:
            if queue.renew_lease(self._db, self._claim, lease_seconds=self._lease_seconds):
                self.cancel_requested = True
        except LostClaimError:
            self.lost = True
