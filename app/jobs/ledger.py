"""The ledger of jobs.

A job's row is its truth. ``queued -> running -> succeeded | failed | cancelled``, and back to ``queued``
when a worker is lost or hands the job back. A worker owns a job by a claim: one conditional UPDATE that
sets its lease and counts up the fencing token. Every later write of that worker carries the token, so a
worker that was thought dead and is not can change nothing any more.

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
End: TypeAlias = Literal["succeeded", "failed", "cancelled"]

FINISHED = ("succeeded", "failed", "cancelled")
RING_AGAIN_SECONDS = 3.0
"""A queued job whose ring is older than this, while a worker has room, is rung again."""

LONGEST_WAIT_SECONDS = 30.0
"""A job that was lost again and again is not started again sooner than this."""


class LostClaimError(Exception):
    """The job is not ours any more: its lease ran out and somebody else has it, or it has ended."""


@dataclass(frozen=True)
class Claim:
    """A worker's right to a job.

    Attributes:
        job_id: the job.
        fence: the token that every later write carries.
        kind: what to do.
        spec: the request.
        dataset_id: the data set it works on.
        attempt: how often the job has been started, this time included.
        checkpoint: what an earlier attempt has left to go on from.
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
    """Write a queued job; the bell rings after the commit."""
    job = Job(
        id=new_id("job"),
        kind=kind,
        state="queued",
        spec=spec,
        dataset_id=dataset_id,
        model=model,
        attempt=0,
        failures=0,
        setbacks=0,
        fence=0,
        due_at=tx.now,
        rung_at=tx.now,
        created_at=tx.now,
    )
    tx.session.add(job)
    tx.session.flush()
    record(tx, job.id, "queued")
    tx.ring(job.id)
    return job


def record(tx: Transaction, job_id: str, type_: str, **detail: Any) -> None:
    """Append an event; the caller holds the job's row, so the numbers cannot collide."""
    last = tx.session.scalar(select(func.max(JobEvent.seq)).where(JobEvent.job_id == job_id)) or 0
    tx.session.add(JobEvent(job_id=job_id, seq=last + 1, at=tx.now, type=type_, detail=detail))
    tx.session.flush()


def claim(db: Database, job_id: str, owner: str, *, lease_seconds: float) -> Claim | None:
    """Take a queued job that is due, or learn that there is nothing to take."""
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
        record(tx, job_id, "started", attempt=row.attempt)
        return Claim(job_id, row.fence, row.kind, row.spec, row.dataset_id, row.attempt, row.checkpoint)


def load_claim(db: Database, job_id: str, fence: int) -> Claim:
    """The claim that a parent process made, in the child that carries it out.

    Raises:
        LostClaimError: it does not hold any more.
    """
    with db.read() as session:
        job = session.get(Job, job_id)
        if job is None or job.fence != fence or job.state != "running":
            raise LostClaimError(job_id)
        return Claim(job.id, job.fence, job.kind, job.spec, job.dataset_id, job.attempt, job.checkpoint)


def renew(db: Database, claim: Claim, *, lease_seconds: float) -> bool:
    """Renew a lease.

    Returns:
        whether the job was asked to stop.

    Raises:
        LostClaimError: the job is not ours any more.
    """
    with db.write() as tx:
        _fenced(tx, claim, lease_expires_at=tx.now + timedelta(seconds=lease_seconds))
        return _cancel_requested(tx.session, claim.job_id)


def report(
    db: Database,
    claim: Claim,
    progress: dict[str, Any],
    *,
    curve: Mapping[int, dict[str, float]],
    event: str | None = None,
    checkpoint: dict[str, Any] | None = None,
) -> bool:
    """Write how far a job is, with the points of its curve since the last report.

    Args:
        db: the ledger.
        claim: the right to write.
        progress: as clients see it.
        curve: the measures of each step.
        event: the type of an event to record.
        checkpoint: where a later attempt can go on from now; it has got further, which ends its setbacks.

    Returns:
        whether the job was asked to stop.

    Raises:
        LostClaimError: the job is not ours any more.
    """
    with db.write() as tx:
        further = {} if checkpoint is None else {"checkpoint": checkpoint, "setbacks": 0}
        _fenced(tx, claim, progress=progress, **further)
        if curve:
            tx.session.execute(
                delete(CurvePoint).where(CurvePoint.job_id == claim.job_id, CurvePoint.step >= min(curve))
            )
            tx.session.add_all(
                CurvePoint(job_id=claim.job_id, step=step, measures=measures)
                for step, measures in curve.items()
            )
        if event is not None:
            record(tx, claim.job_id, event, **progress)
        return _cancel_requested(tx.session, claim.job_id)


def note(db: Database, claim: Claim, type_: str, **detail: Any) -> None:
    """Append an event to a job of ours.

    Raises:
        LostClaimError: the job is not ours any more.
    """
    with db.write() as tx:
        _fenced(tx, claim, fence=claim.fence)
        record(tx, claim.job_id, type_, **detail)


def finish(
    tx: Transaction,
    claim: Claim,
    state: End,
    *,
    result: dict[str, Any] | None = None,
    error: dict[str, Any] | None = None,
) -> None:
    """End a job, in the transaction that also writes what it made.

    Raises:
        LostClaimError: the job is not ours any more; the whole transaction is undone.
    """
    _fenced(tx, claim, **_ending(tx, state, result, error))
    record(tx, claim.job_id, state, **({"code": error["code"]} if error else {}))


def hand_back(tx: Transaction, claim: Claim, *, reason: str) -> None:
    """Give a job back unfinished, without it counting as a loss; for a worker that is being stopped."""
    _fenced(
        tx,
        claim,
        state="queued",
        lease_owner=None,
        lease_expires_at=None,
        due_at=tx.now,
        rung_at=tx.now,
    )
    record(tx, claim.job_id, "handed_back", reason=reason)
    tx.ring(claim.job_id)


def got_further(job: Job) -> bool:
    """Whether the attempt that holds the job, or held it last, has left a checkpoint."""
    return job.checkpoint is not None and job.checkpoint["fence"] == job.fence


def requeue_lost(tx: Transaction, job: Job, *, reason: str) -> None:
    """Queue a job again whose process or worker died; it waits longer each time, until it gets further."""
    job.setbacks += 1
    wait = min(2.0 ** (job.setbacks - 1), LONGEST_WAIT_SECONDS) if job.setbacks > 1 else 0.0
    job.state = "queued"
    job.lease_owner = None
    job.lease_expires_at = None
    job.due_at = tx.now + timedelta(seconds=wait)
    job.rung_at = tx.now
    job.fence += 1
    tx.session.flush()
    record(tx, job.id, "lost", attempt=job.attempt, reason=reason)
    if wait == 0:
        tx.ring(job.id)


def end_unowned(
    tx: Transaction, job: Job, state: Literal["failed", "cancelled"], error: dict[str, Any] | None = None
) -> None:
    """End a job that nobody is working on; the caller holds its row."""
    for name, value in _ending(tx, state, None, error).items():
        setattr(job, name, value)
    job.fence += 1
    tx.session.flush()
    record(tx, job.id, state, **({"code": error["code"]} if error else {}))


def request_cancel(tx: Transaction, job: Job) -> None:
    """Ask a job to stop; one that is still queued never starts. One that has ended is left as it is."""
    if job.state == "queued":
        job.cancel_requested_at = tx.now
        end_unowned(tx, job, "cancelled")
    elif job.state == "running" and job.cancel_requested_at is None:
        job.cancel_requested_at = tx.now
        tx.session.flush()
        record(tx, job.id, "cancel_requested")


def lock(tx: Transaction, job_id: str) -> Job | None:
    """The job's row as it is now, held until the end of the transaction."""
    return tx.session.get(Job, job_id, with_for_update=True, populate_existing=True)


def expired(
    tx: Transaction, *, dead: Collection[str] = (), silent: bool = True, limit: int = 50
) -> list[Job]:
    """Running jobs whose lease has run out, held until the end of the transaction.

    Args:
        tx: the transaction.
        dead: workers whose leases mean nothing any more.
        silent: whether leases that have run out count; if not, only those of the dead do.
        limit: the most to take.
    """
    of_the_dead = Job.lease_owner.in_(dead)
    lost = or_(of_the_dead, Job.lease_expires_at < tx.now) if silent else of_the_dead
    return list(
        tx.session.scalars(
            select(Job)
            .where(Job.state == "running", lost)
            .order_by(Job.lease_expires_at, Job.created_at, Job.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
    )


def unheard(session: Session, now: datetime, *, limit: int) -> list[str]:
    """Queued jobs that are due and were not rung for lately, the oldest first."""
    return list(
        session.scalars(
            select(Job.id)
            .where(
                Job.state == "queued",
                Job.due_at <= now,
                Job.rung_at < now - timedelta(seconds=RING_AGAIN_SECONDS),
            )
            .order_by(Job.created_at, Job.id)
            .limit(limit)
        )
    )


def running_of(session: Session, owner: str) -> int:
    """How many jobs a worker holds."""
    return session.scalar(select(func.count()).where(Job.state == "running", Job.lease_owner == owner)) or 0


def _ending(
    tx: Transaction, state: End, result: dict[str, Any] | None, error: dict[str, Any] | None
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


def _fenced(tx: Transaction, claim: Claim, **values: Any) -> None:
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
