"""Progress reports of a running job; each report also checks for cancellation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import isfinite
from typing import Any

import structlog

from app.db.session import DATABASE_UNAVAILABLE, Database
from app.jobs import events, queue
from app.jobs.queue import Claim

log = structlog.get_logger()

REPORT_SECONDS = 0.25
"""How often a job writes its progress and checks for cancellation."""


class CancelledError(Exception):
    """Cancellation of the job was requested."""


class ProgressReporter:
    """Write progress at most every ``REPORT_SECONDS``, and immediately when a phase begins.

    Args:
        db: the database.
        claim: the claim on the job.
    """

    def __init__(self, db: Database, claim: Claim) -> None:
        self._db = db
        self._claim = claim
        self._curve: dict[int, dict[str, float]] = {}
        self._progress: dict[str, Any] = {}
        self._phase: str | None = None
        self._last = float("-inf")
        self._weights: Mapping[str, float] = {}
        self._fraction = 0.0

    def plan(self, weights: Mapping[str, float]) -> None:
        """Set the phases of the whole job, so that each report has the fraction of the job that is done.

        The fraction never decreases, also not if an earlier attempt was further.

        Args:
            weights: about how long each phase takes, in relation to the others, by its name in their order. A
                phase whose parts have different units has names such as ``features/examples``.
        """
        self._weights = weights
        earlier = events.progress_of(self._db, [self._claim.job_id]).get(self._claim.job_id, {})
        self._fraction = earlier.get("fraction", 0.0)

    def __call__(
        self,
        phase: str,
        completed: int,
        total: int | None,
        unit: str,
        measures: dict[str, float] | None = None,
    ) -> None:
        """Report progress.

        Args:
            phase: what the job does, such as ``training``.
            completed: completed units of the phase.
            total: all units of the phase, if known.
            unit: unit of both numbers, such as ``rounds``.
            measures: measures of this step, for the curve.

        Raises:
            CancelledError: cancellation was requested.
            LostClaimError: the claim is no longer valid.
        """
        if measures:
            # NaN and infinities are not valid JSON; a measure without a value is left out.
            self._curve[completed] = {name: value for name, value in measures.items() if isfinite(value)}
        progress: dict[str, Any] = {"phase": phase, "completed": completed, "unit": unit}
        if total is not None:
            progress["total"] = total
        if self._weights:
            progress["fraction"] = self._advance(phase, completed, total, unit)
        self._progress = progress
        new_phase = phase != self._phase
        now = time.monotonic()
        if not new_phase and now - self._last < REPORT_SECONDS and completed != total:
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
            # A short outage of the database must not cost hours of training; the lease decides.
            log.warning("job.report_failed", job_id=self._claim.job_id, reason=type(error).__name__)
            return
        self._phase = phase
        self._curve = {}
        if stop:
            raise CancelledError(self._claim.job_id)

    def _advance(self, phase: str, completed: int, total: int | None, unit: str) -> float:
        """Return the fraction of the job that is done."""
        names = list(self._weights)
        name = next((name for name in (f"{phase}/{unit}", phase) if name in self._weights), None)
        if name is not None:
            before = sum(self._weights[earlier] for earlier in names[: names.index(name)])
            done = before + self._weights[name] * (min(completed / total, 1.0) if total else 0.0)
            self._fraction = max(self._fraction, round(done / sum(self._weights.values()), 4))
        return self._fraction

    @property
    def unwritten_curve(self) -> dict[int, dict[str, float]]:
        """Measures by step that no report has written yet.

        After the last step, only an outage of the database leaves such points. The transaction that finishes
        the job then writes them.
        """
        return self._curve

    def checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Record a checkpoint of the latest progress, with the curve up to there.

        Raises:
            LostClaimError: the claim is no longer valid.
        """
        queue.report_progress(self._db, self._claim, self._progress, curve=self._curve, checkpoint=checkpoint)
        self._curve = {}
