"""Count the jobs that workers have run to their end, by duration."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from app.db import counters, tables
from app.db.counters import CounterValue
from app.db.session import DATABASE_UNAVAILABLE, Database

log = structlog.get_logger()

DURATIONS = ("1.0", "3.0", "10.0", "30.0", "100.0", "300.0", "1000.0", "3000.0", "10000.0", "30000.0", "+Inf")
"""The upper bounds of the buckets, in seconds, as Prometheus writes them."""


def count_run(db: Database, job: tables.Job) -> None:
    """Count a job that has ended. If the database is unavailable, the job is not counted."""
    if job.started_at is None or job.finished_at is None:
        return
    seconds = max((job.finished_at - job.started_at).total_seconds(), 0.0)
    bucket = next(bound for bound in DURATIONS if seconds <= float(bound))
    try:
        with db.write() as tx:
            counters.count(tx, "job", f"{job.kind}/{job.state}/{bucket}", total=seconds)
    except DATABASE_UNAVAILABLE as error:
        log.warning("job.not_counted", reason=type(error).__name__)


def durations_of(
    counted: Mapping[str, CounterValue],
) -> dict[tuple[str, str], dict[str, CounterValue]]:
    """Return the numbers of jobs and the sums of their seconds, by kind and final state, and by bucket."""
    durations: dict[tuple[str, str], dict[str, CounterValue]] = {}
    for label, value in counted.items():
        kind, state, bucket = label.split("/")
        durations.setdefault((kind, state), {})[bucket] = value
    return durations
