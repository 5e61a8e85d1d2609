"""A running job's line to its row: how far it is, and whether it should stop."""

from __future__ import annotations

import time
from math import isfinite
from typing import Any

import structlog

from app.db.session import DATABASE_UNAVAILABLE, Database
from app.jobs import queue
from app.jobs.queue import Claim

log = structlog.get_logger()

EVERY_SECONDS = 0.25
"""How often a job writes its progress and looks whether it was cancelled."""


class CancelledError(Exception):
    """The job was asked to stop."""


class ProgressReporter:
    """Reports progress, not more often than ``EVERY_SECONDS``, and at once when a phase begins.

    Args:
        db: the ledger.
        claim: the right to write.
    """

    def __init__(self, db: Database, claim: Claim) -> None:
        self._db = db
        self._claim = claim
        self._curve: dict[int, dict[str, float]] = {}
        self._progress: dict[str, Any] = {}
        self._phase: str | None = None
        self._last = float("-inf")

    def __call__(
        self,
        phase: str,
        completed: int,
        total: int | None,
        unit: str,
        measures: dict[str, float] | None = None,
    ) -> None:
        """Tell how far the job is.

        Raises:
            CancelledError: it was asked to stop.
            LostClaimError: it is somebody else's now.
        """
        if measures:
            # A measure that is no number has no value, and what has no value is left out.
            self._curve[completed] = {name: value for name, value in measures.items() if isfinite(value)}
        progress: dict[str, Any] = {"phase": phase, "completed": completed, "unit": unit}
        if total is not None:
            progress["total"] = total
        self._progress = progress
        new_phase = phase != self._phase
        now = time.monotonic()
        if not new_phase and now - self._last < EVERY_SECONDS and completed != total:
            return
        self._last = now
        try:
            stop = queue.report_progress(
                self._db,
                self._claim,
                progress,
                curve=self._curve,
                event="phase" if new_phase else None,
            )
        except DATABASE_UNAVAILABLE as error:
            # A database that is away for a moment must not cost hours of training; the lease decides.
            log.warning("job.report_failed", job_id=self._claim.job_id, reason=type(error).__name__)
            return
        self._phase = phase
        self._curve = {}
        if stop:
            raise CancelledError(self._claim.job_id)

    def checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Name a checkpoint of what was told last, with the whole curve up to there.

        Raises:
            LostClaimError: the job is somebody else's now.
        """
        queue.report_progress(self._db, self._claim, self._progress, curve=self._curve, checkpoint=checkpoint)
        self._curve = {}
