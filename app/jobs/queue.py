"""The job queue: rows of the database that workers claim.

A job's row is the only truth about the job. Its state goes ``queued -> running -> succeeded | failed |
cancelled``, and back to ``queued`` if a worker is lost or releases the job. A worker owns a job by a claim:
one conditional UPDATE that sets a lease and increments the fencing token. Every later write of that worker
carries the token, so a worker that was wrongly taken for dead can change nothing any more.

Functions that take a ``Transaction`` are part of a larger one; the caller commits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import Session

from app.db.session import Database, Transaction
from app.db.tables import CurvePoint, Job, JobEvent
from app.ids import new_id

Kind: TypeAlias = Literal["ingest", "train", "evaluate", "experiment", "cell"]
FinalState: TypeAlias = Literal["succeeded", "failed", "cancelled"]

FINISHED = ("succeeded", "failed", "cancelled")
NOTIFY_AGAIN_SECONDS = 3.0
"""A worker with free capacity notifies again about queued jobs whose notification is older than this."""

MAX_DELAY_SECONDS = 30.0
"""Longest delay before a job that was lost several times in a row is started again."""


class LostClaimError(Exception):
    """The claim is no longer valid: another worker has claimed the job, or the job has finished."""


@dataclass(frozen=True)
class Claim:
    """A worker's right to a job.

    Attributes:
        job_id: id of the job.
        fence: the fencing token that every later write carries.
        kind: kind of the job.
        spec: the request that created the job.
        dataset_id: data set of the job.
        attempt: number of starts of the job, including this one.
        checkpoint: the checkpoint of an earlier attempt to resume from.
    """

    job_id: str
    fence: int
    kind: str
    spec: dict[str, Any]
    dataset_id: str | None
    attempt: int
    checkpoint: dict[str, Any] | None = None


def enqueue(
    tx: Transaction,
    kind: Kind,
    spec: dict[str, Any],
    *,
    dataset_id: str | None = None,
    model: str | None = None,
) -> Job:
    """Insert a queued job; the workers are notified after the commit."""
    job = Job(
        id=new_id("job"),
        kind=kind,
        state="queued",
        spec=spec,
        dataset_id=dataset_id,
        model=model,
        attempt=0,
        failures=0,
        consecutive_losses=0,
        fence=0,
        due_at=tx.now,
        notified_at=tx.now,
        created_at=tx.now,
    )
    tx.session.add(job)
    tx.session.flush()
    append_event(tx, job.id, "queued")
    tx.notify(job.id)
    return job


def append_event(tx: Transaction, job_id: str, type_: str, **detail: Any) -> None:
    """Append an event. The caller holds the lock on the job's row, so the numbers cannot collide."""
    last = tx.session.scalar(select(func.max(JobEvent.seq)).where(JobEvent.job_id == job_id)) or 0
    tx.session.add(JobEvent(job_id=job_id, seq=last + 1, at=tx.now, type=type_, detail=detail))
    tx.session.flush()


def claim(db: Database, job_id: str, owner: str, *, lease_seconds: float) -> Claim | None:
    """Claim a queued job that is due; return None if the job cannot be claimed."""
    with db.write() as tx:
        row = tx.session.execute(
            update(Job)
            .where(Job.id == job_id, Job.state == "queued", Job.due_at <= tx.now)
            .values(
                state="running",
                lease_owner=owner,
                lease_expires_at=tx.now + timedelta(seconds=lease_seconds),
                fence=Job.fence + 1,
                attempt=Job.attempt + 1,
                started_at=func.coalesce(Job.started_at, tx.now),
            )
            .returning(Job.fence, Job.kind, Job.spec, Job.dataset_id, Job.attempt, Job.checkpoint)
        ).one_or_none()
        if row is None:
            return None
        append_event(tx, job_id, "started", attempt=row.attempt)
        return Claim(job_id, row.fence, row.kind, row.spec, row.dataset_id, row.attempt, row.checkpoint)


def load_claim(db: Database, job_id: str, fence: int) -> Claim:
    """Load, in the job process, the claim that its parent process made.

    Raises:
        LostClaimError: the claim is no longer valid.
    """
    with db.read() as session:
        job = session.get(Job, job_id)
        if job is None or job.fence != fence or job.state != "running":
            raise LostClaimError(job_id)
        return Claim(job.id, job.fence, job.kind, job.spec, job.dataset_id, job.attempt, job.checkpoint)


def renew_lease(db: Database, claim: Claim, *, lease_seconds: float) -> bool:
    """Renew a lease.

    Returns:
        whether cancellation was requested.

    Raises:
        LostClaimError: the claim is no longer valid.
    """
    with db.write() as tx:
        _update_fenced(tx, claim, lease_expires_at=tx.now + timedelta(seconds=lease_seconds))
        return _cancel_requested(tx.session, claim.job_id)


def report_progress(
    db: Database,
    claim: Claim,
    progress: dict[str, Any],
    *,
    curve: Mapping[int, dict[str, float]],
    event: str | None = None,
    checkpoint: dict[str, Any] | None = None,
) -> bool:
    """Write the progress of a job, with the points of its curve since the last report.

    Args:
        db: the database.
        claim: the worker's claim.
        progress: the progress as the API returns it.
        curve: measures by step.
        event: type of an event to append.
        checkpoint: a new checkpoint that a later attempt can resume from. It proves that the job made
            progress, so the count of consecutive losses returns to zero.

    Returns:
        whether cancellation was requested.

    Raises:
        LostClaimError: the claim is no longer valid.
    """
    with db.write() as tx:
        values = {} if checkpoint is None else {"checkpoint": checkpoint, "consecutive_losses": 0}
        _update_fenced(tx, claim, progress=progress, **values)
        if curve:
            tx.session.execute(
                delete(CurvePoint).where(CurvePoint.job_id == claim.job_id, CurvePoint.step >= min(curve))
            )
            tx.session.add_all(
                CurvePoint(job_id=claim.job_id, step=step, measures=measures)
                for step, measures in curve.items()
            )
        if event is not None:
            append_event(tx, claim.job_id, event, **progress)
        return _cancel_requested(tx.session, claim.job_id)


def add_event(db: Database, claim: Claim, type_: str, **detail: Any) -> None:
    """Append an event to a claimed job, in a transaction of its own.

    Raises:
        LostClaimError: the claim is no longer valid.
    """
    with db.write() as tx:
        _update_fenced(tx, claim, fence=claim.fence)
        append_event(tx, claim.job_id, type_, **detail)


def finish(
    tx: Transaction,
    claim: Claim,
    state: FinalState,
    *,
    result: dict[str, Any] | None = None,
    error: dict[str, Any] | None = None,
) -> None:
    """Finish a job, in the transaction that also writes its result.

    Raises:
        LostClaimError: the claim is no longer valid; the whole transaction is rolled back.
    """
    _update_fenced(tx, claim, **_final_values(tx, state, result, error))
    append_event(tx, claim.job_id, state, **({"code": error["code"]} if error else {}))


def release(tx: Transaction, claim: Claim, *, reason: str) -> None:
    """Put a job back into the queue without counting it as lost, because its worker is stopping."""
    _update_fenced(
        tx,
        claim,
        state="queued",
        lease_owner=None,
        lease_expires_at=None,
        due_at=tx.now,
        notified_at=tx.now,
    )
    append_event(tx, claim.job_id, "released", reason=reason)
    tx.notify(claim.job_id)


def made_progress(job: Job) -> bool:
    """Whether the latest attempt of the job has written a checkpoint."""
    return job.checkpoint is not None and job.checkpoint["fence"] == job.fence


def requeue_lost(tx: Transaction, job: Job, *, reason: str) -> None:
    """Queue a job again after its process or worker died; each consecutive loss doubles the delay."""
    job.consecutive_losses += 1
    delay = min(2.0 ** (job.consecutive_losses - 1), MAX_DELAY_SECONDS) if job.consecutive_losses > 1 else 0.0
    job.state = "queued"
    job.lease_owner = None
    job.lease_expires_at = None
    job.due_at = tx.now + timedelta(seconds=delay)
    job.notified_at = tx.now
    job.fence += 1
    tx.session.flush()
    append_event(tx, job.id, "lost", attempt=job.attempt, reason=reason)
    if delay == 0:
        tx.notify(job.id)


def finish_unclaimed(
    tx: Transaction, job: Job, state: Literal["failed", "cancelled"], error: dict[str, Any] | None = None
) -> None:
    """Finish a job that no worker holds. The caller holds the lock on its row."""
    for name, value in _final_values(tx, state, None, error).items():
        setattr(job, name, value)
    job.fence += 1
    tx.session.flush()
    append_event(tx, job.id, state, **({"code": error["code"]} if error else {}))


def request_cancel(tx: Transaction, job: Job) -> None:
    """Request cancellation: a queued job never starts, a running one stops soon, a finished one stays."""
    if job.state == "queued":
        job.cancel_requested_at = tx.now
        finish_unclaimed(tx, job, "cancelled")
    elif job.state == "running" and job.cancel_requested_at is None:
        job.cancel_requested_at = tx.now
        tx.session.flush()
        append_event(tx, job.id, "cancel_requested")


def lock(tx: Transaction, job_id: str) -> Job | None:
    """Reload and lock the job's row until the end of the transaction."""
    return tx.session.get(Job, job_id, with_for_update=True, populate_existing=True)


def lost(
    tx: Transaction, *, dead_workers: Collection[str] = (), include_expired: bool = True, limit: int = 50
) -> list[Job]:
    """Select and lock running jobs whose worker is lost.

    Args:
        tx: the transaction.
        dead_workers: ids of workers that are known to be dead; their leases count as expired.
        include_expired: whether to select expired leases too; otherwise only those of dead workers.
        limit: most jobs to select.
    """
    owner_is_dead = Job.lease_owner.in_(dead_workers)
    is_lost = or_(owner_is_dead, Job.lease_expires_at < tx.now) if include_expired else owner_is_dead
    return list(
        tx.session.scalars(
            select(Job)
            .where(Job.state == "running", is_lost)
            .order_by(Job.lease_expires_at, Job.created_at, Job.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
    )


def undelivered(session: Session, now: datetime, *, limit: int) -> list[str]:
    """Ids of queued jobs that are due and without a recent notification, oldest first."""
    return list(
        session.scalars(
            select(Job.id)
            .where(
                Job.state == "queued",
                Job.due_at <= now,
                Job.notified_at < now - timedelta(seconds=NOTIFY_AGAIN_SECONDS),
            )
            .order_by(Job.created_at, Job.id)
            .limit(limit)
        )
    )


def count_running(session: Session, owner: str) -> int:
    """Count the jobs that a worker holds."""
    return session.scalar(select(func.count()).where(Job.state == "running", Job.lease_owner == owner)) or 0


def _final_values(
    tx: Transaction, state: FinalState, result: dict[str, Any] | None, error: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "state": state,
        "result": result,
        "error": error,
        "finished_at": tx.now,
        "lease_owner": None,
        "lease_expires_at": None,
        "checkpoint": None,
    }


def _update_fenced(tx: Transaction, claim: Claim, **values: Any) -> None:
    touched = tx.session.execute(
        update(Job)
        .where(Job.id == claim.job_id, Job.fence == claim.fence, Job.state == "running")
        .values(**values)
        .returning(Job.id)
    ).one_or_none()
    if touched is None:
        raise LostClaimError(claim.job_id)


def _cancel_requested(session: Session, job_id: str) -> bool:
    return session.scalar(select(Job.cancel_requested_at).where(Job.id == job_id)) is not None
