"""Check whether the service is ready: database, storage, and progress of the job queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from app.context import AppContext
from app.db import tables
from app.db.failures import DatabaseStateError
from app.db.locks import lock_reason
from app.db.session import database_now
from app.errors import NotReady

HEARTBEAT_SECONDS = 15.0
"""A worker whose last heartbeat is older does not count."""


FILE_CHECK_SECONDS = 0.25
"""Time limit for a check of a SQLite file, during which a request waits."""

FILE_CHECK_INTERVAL = 60.0
"""Time between two such checks, in seconds."""


@dataclass(frozen=True)
class Readiness:
    """The result of a readiness check.

    Attributes:
        ready: whether the service is ready.
        database: whether the database is available.
        workers: number of workers with a recent heartbeat.
        queue_seconds: waiting time of the oldest job that is due, in seconds; 0 if no job waits.
        broker_seconds: time since a worker has found the broker unavailable, in seconds; 0 if it has not.
        reasons: why the service is not ready.
    """

    ready: bool
    database: bool
    workers: int
    queue_seconds: float
    broker_seconds: float
    reasons: list[str]


def _database_reason(error: SQLAlchemyError) -> str:
    if isinstance(error, DatabaseStateError):
        return f"the database is {error.state}"
    return f"the database is unavailable ({type(error).__name__})"


def check_readiness(ctx: AppContext) -> Readiness:
    """Check whether the service is ready.

    The check reads the database, in which workers record whether they reach the broker. Without it, jobs
    wait, and everything else works.
    """
    try:
        ctx.db.check_file(FILE_CHECK_SECONDS, every=FILE_CHECK_INTERVAL)
        with ctx.db.read() as session:
            now = database_now(session)
            workers, capacity, away_since = session.execute(
                select(
                    func.count(),
                    func.coalesce(func.sum(tables.Worker.concurrency), 0),
                    func.min(tables.Worker.broker_away_since),
                ).where(
                    tables.Worker.last_seen_at > now - timedelta(seconds=HEARTBEAT_SECONDS),
                    tables.Worker.stopping.is_(False),
                )
            ).one()
            running = session.scalar(select(func.count()).where(tables.Job.state == "running")) or 0
            oldest = session.scalar(select(func.min(tables.Job.due_at)).where(tables.Job.state == "queued"))
        # A lock stops the heartbeats of workers, too.
        locked = lock_reason(ctx.db) if workers == 0 else None
    except SQLAlchemyError as error:
        return Readiness(False, False, 0, 0.0, 0.0, [_database_reason(error)])
    away = max((now - away_since).total_seconds(), 0.0) if away_since is not None else 0.0
    waited = max((now - oldest).total_seconds(), 0.0) if oldest is not None else 0.0
    reasons = []
    if locked is not None:
        reasons.append(locked)
    elif workers == 0:
        reasons.append("no worker has sent a heartbeat in the last 15 s")
    elif waited > ctx.settings.ready_queue_seconds and running < capacity:
        because = " because the broker is unavailable" if away else ""
        reasons.append(f"a job has waited {waited:.0f} s although a worker has capacity{because}")
    if (reason := ctx.storage_probe.reason()) is not None:
        reasons.append(reason)
    return Readiness(not reasons, True, workers, waited, away, reasons)


def require_ready(ctx: AppContext, *, draining: bool) -> Readiness:
    """Return the result of the check.

    Args:
        ctx: the application context.
        draining: whether this process is shutting down.

    Raises:
        NotReady: the service is not ready; the detail has the reasons.
    """
    if draining:
        raise NotReady("this process is shutting down", retry_after=5)
    state = check_readiness(ctx)
    if not state.ready:
        raise NotReady("; ".join(state.reasons), retry_after=5)
    return state
