"""The activity of the workers: workers, numbers of jobs, and the jobs that run or failed last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.db import tables
from app.db.session import Database, database_now
from app.health.service import HEARTBEAT_SECONDS

MAX_JOBS = 20
"""Maximum number of jobs in each list."""


@dataclass(frozen=True)
class WorkerSummary:
    """A worker that has sent a heartbeat recently.

    Attributes:
        id: id of the worker.
        host: name of its machine.
        pid: id of its process.
        concurrency: number of jobs that it can run at once.
        started_at: time of its start.
        stopping: whether it starts no more jobs.
    """

    id: str
    host: str
    pid: int
    concurrency: int
    started_at: datetime
    stopping: bool


@dataclass(frozen=True)
class JobSummary:
    """A job of any kind.

    Attributes:
        id: id of the job.
        kind: its kind, such as ``training``.
        state: its state.
        model: name of the model that it makes or uses; None if there is none.
        dataset_id: id of the data set that it makes or reads; None if there is none.
        attempt: number of started attempts.
        created_at: time of the request.
        started_at: time of the first start.
        finished_at: time of the end.
        error: why it failed, in one sentence.
    """

    id: str
    kind: str
    state: str
    model: str | None
    dataset_id: str | None
    attempt: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None


@dataclass(frozen=True)
class Overview:
    """The activity of the workers.

    Attributes:
        workers: workers with a recent heartbeat.
        queued: number of jobs that wait, by kind.
        running: the jobs that run, oldest first, at most ``MAX_JOBS``.
        waiting: the jobs that wait, oldest first, at most ``MAX_JOBS``.
        failed: the jobs that failed last, newest first, at most ``MAX_JOBS``.
    """

    workers: list[WorkerSummary]
    queued: dict[str, int]
    running: list[JobSummary]
    waiting: list[JobSummary]
    failed: list[JobSummary]


def get(db: Database) -> Overview:
    """Return what the workers do now."""
    job, worker = tables.Job, tables.Worker
    with db.read() as session:
        recent = database_now(session) - timedelta(seconds=HEARTBEAT_SECONDS)
        workers = session.scalars(
            select(worker).where(worker.last_seen_at > recent).order_by(worker.host, worker.id)
        )
        queued = session.execute(
            select(job.kind, func.count()).where(job.state == "queued").group_by(job.kind)
        )
        return Overview(
            workers=[
                WorkerSummary(row.id, row.host, row.pid, row.concurrency, row.started_at, row.stopping)
                for row in workers
            ],
            queued=dict(sorted((kind, count) for kind, count in queued)),
            running=_jobs(session, "running"),
            waiting=_jobs(session, "queued"),
            failed=_last_failed(session),
        )


def _jobs(session: Session, state: str) -> list[JobSummary]:
    job = tables.Job
    rows = session.scalars(select(job).where(job.state == state).order_by(job.due_at, job.id).limit(MAX_JOBS))
    return [_summary(row) for row in rows]


def _last_failed(session: Session) -> list[JobSummary]:
    job = tables.Job
    rows = session.scalars(
        select(job)
        .where(job.state == "failed", job.finished_at.is_not(None))
        .order_by(job.finished_at.desc())
        .limit(MAX_JOBS)
    )
    return [_summary(row) for row in rows]


def _summary(row: tables.Job) -> JobSummary:
    return JobSummary(
        id=row.id,
        kind=row.kind,
        state=row.state,
        model=row.model,
        dataset_id=row.dataset_id,
        attempt=row.attempt,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        error=None if row.error is None else str(row.error.get("detail", row.error.get("title", ""))),
    )
