"""A slot: a process of a worker that runs one job at a time.

A slot polls the job queue in the database. It needs no broker: a notification only makes it look earlier.
"""

from __future__ import annotations

import random

import structlog

from app.context import AppContext
from app.db.session import DATABASE_UNAVAILABLE
from app.jobs import queue
from app.jobs.queue import Claim
from app.settings import Settings
from workers import attempt, stopping
from workers.wakeups import Wakeups

log = structlog.get_logger()

FIRST_DELAY_SECONDS = 0.2
"""Delay before a slot looks into the queue again after it found no job; it doubles with each look."""


def run(settings: Settings, worker_id: str, wakeups: Wakeups) -> None:
    """Run jobs until the worker stops."""
    ctx = AppContext.open(settings, wakeups)
    delay = FIRST_DELAY_SECONDS
    while not stopping.requested():
        claim = _claim_next(ctx, worker_id)
        if claim is not None:
            wakeups.wake()  # another slot looks whether there are more jobs
            attempt.run(ctx, claim, worker_id)
            delay = FIRST_DELAY_SECONDS
            continue
        # The jitter keeps the slots of all workers from looking at the same moments.
        delay = min(delay, settings.poll_seconds)
        woken = wakeups.wait(delay * random.uniform(0.5, 1.0))  # noqa: S311
        delay = FIRST_DELAY_SECONDS if woken else 2 * delay


def _claim_next(ctx: AppContext, worker_id: str) -> Claim | None:
    try:
        return queue.claim_next(ctx.db, worker_id, lease_seconds=ctx.settings.lease_seconds)
    except DATABASE_UNAVAILABLE as error:
        log.warning("job.claim_failed", reason=type(error).__name__)
        return None
