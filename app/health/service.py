"""What readiness is judged by: the database, the storage, and whether waiting jobs get done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from app.context import AppContext
from app.db import tables
from app.db.session import database_now

ALIVE_SECONDS = 15.0
"""A worker that has not been heard of for longer is not counted."""


@dataclass(frozen=True)
class Readiness:
    """What is ready and what is not.

    Attributes:
        ready: whether all of it is.
        database: whether the database answers.
        workers: how many workers were heard of lately.
        queue_seconds: how long the oldest due job has been waiting; 0 without one.
        reasons: why it is not ready.
    """

    ready: bool
    database: bool
    workers: int
    queue_seconds: float
    reasons: list[str]


def readiness(ctx: AppContext) -> Readiness:
    """Look at the rows, never at the broker: a worker that hears no bell shows by what it leaves undone."""
    try:
        with ctx.db.read() as session:
            now = database_now(session)
            workers, room = session.execute(
                select(func.count(), func.coalesce(func.sum(tables.Worker.concurrency), 0)).where(
                    tables.Worker.last_seen_at > now - timedelta(seconds=ALIVE_SECONDS),
                    tables.Worker.stopping.is_(False),
                )
            ).one()
            running = session.scalar(select(func.count()).where(tables.Job.state == "running")) or 0
            oldest = session.scalar(select(func.min(tables.Job.due_at)).where(tables.Job.state == "queued"))
    except SQLAlchemyError as error:
        return Readiness(False, False, 0, 0.0, [f"the database does not answer ({type(error).__name__})"])
    waited = max((now - oldest).total_seconds(), 0.0) if oldest is not None else 0.0
    reasons = []
    if workers == 0:
        reasons.append("no worker has been heard of lately")
    elif waited > ctx.settings.ready_queue_seconds and running < room:
        reasons.append(f"a job has waited {waited:.0f} s although a worker has room")
    if (reason := ctx.storage_probe.reason()) is not None:
        reasons.append(reason)
    return Readiness(not reasons, True, workers, waited, reasons)
