"""The job queue: rows of the database, of which Celery runs one task each.

A job's row is the only truth about the job. Its state goes ``queued -> running -> succeeded | failed |
cancelled``, and back to ``queued`` if a worker is lost or releases the job. The process that runs the task of
a job owns it by a claim, which sets a lease and increments the fencing token. Every later write carries the
token, so a worker that was wrongly taken for dead can change nothing any more.

Rows wait here in their order; ``app.jobs.handing_out`` sends the tasks of the next few of each queue.

Functions that take a ``Transaction`` are part of a larger one; the caller commits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import Session

from app.db.outbox import queue_event
from app.db.session import Database, Transaction
from app.db.tables import CurvePoint, Job, JobEvent
from app.ids import new_id
from app.jobs.kinds import KINDS, QUEUE_OF, QUEUES, Kind

FinalState: TypeAlias = Literal["succeeded", "failed", "cancelled"]

FINISHED = ("succeeded", "failed", "cancelled")
UNFINISHED = ("queued", "running")
"""All other states. Conditions use this list, because indexes do not serve ``NOT IN``."""

MIN_PRIORITY = -100
MAX_PRIORITY = 100

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
    priority: int = 0,
    key_id: str | None = None,
) -> Job:
    """Insert a queued job; its task is sent after the commit. See ``enqueue_all``."""
    (job,) = enqueue_all(
        tx, kind, [spec], dataset_id=dataset_id, model=model, priority=priority, key_id=key_id
    )
    return job


def enqueue_all(
    tx: Transaction,
    kind: Kind,
    specs: Sequence[dict[str, Any]],
    *,
    dataset_id: str | None = None,
    model: str | None = None,
    priority: int = 0,
    key_id: str | None = None,
) -> list[Job]:
    """Insert queued jobs with a few statements; their tasks are sent after the commit.

    Args:
        tx: the transaction.
        kind: kind of the jobs.
        specs: what to do; at least one.
        dataset_id: data set of the jobs.
        model: model of the jobs.
        priority: a job of a higher priority is before other jobs of its queue.
        key_id: id of the API key that requested the jobs; None for an anonymous request.
    """
    jobs = [
        Job(
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
            priority=priority,
            claim_order=claim_order(kind, priority),
            created_at=tx.now,
            key_id=key_id,
            claim_key=key_id or "",
        )
        for spec in specs
    ]
    tx.session.add_all(jobs)
    tx.session.flush()
    tx.session.add_all(JobEvent(job_id=job.id, seq=1, at=tx.now, type="queued", detail={}) for job in jobs)
    tx.session.flush()
    tx.notify(jobs[-1].id)
    return jobs


def append_event(tx: Transaction, job_id: str, type_: str, **detail: Any) -> None:
    """Append an event. The caller holds the lock on the job's row, so the numbers cannot collide."""
    last = tx.session.scalar(select(func.max(JobEvent.seq)).where(JobEvent.job_id == job_id)) or 0
    tx.session.add(JobEvent(job_id=job_id, seq=last + 1, at=tx.now, type=type_, detail=detail))
    tx.session.flush()


def claim(db: Database, job_id: str, owner: str, *, lease_seconds: float) -> Claim | None:
    """Claim the job of a task; None if it is not queued, or not due: the task is a duplicate, or too late."""
    with db.write() as tx:
        job = lock(tx, job_id)
        if job is None or job.state != "queued" or job.due_at > tx.now:
            return None
        job.state = "running"
        job.claim_order = job.sent_at = None
        job.lease_owner = owner
        job.lease_expires_at = tx.now + timedelta(seconds=lease_seconds)
        job.fence += 1
        job.attempt += 1
        job.started_at = job.started_at or tx.now
        tx.session.flush()
        append_event(tx, job.id, "started", attempt=job.attempt)
        return Claim(job.id, job.fence, job.kind, job.spec, job.dataset_id, job.attempt, job.checkpoint)


def claim_order(kind: str, priority: Any) -> Any:
    """Return the place of a queued job among all: by queue, then by priority. The lowest is first."""
    return 1000 * QUEUES.index(QUEUE_OF[kind]) - priority


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
        _write_curve(tx, claim.job_id, curve)
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
    curve: Mapping[int, dict[str, float]] | None = None,
) -> None:
    """Finish a job, in the transaction that also writes its result.

    Args:
        tx: the transaction.
        claim: the worker's claim.
        state: how the job ended.
        result: what the job produced.
        error: the problem that made the job fail.
        curve: measures by step that no report has written, because the database was unavailable.

    Raises:
        LostClaimError: the claim is no longer valid; the whole transaction is rolled back.
    """
    model = _update_fenced(tx, claim, **_final_values(tx, state, result, error))
    _write_curve(tx, claim.job_id, curve or {})
    append_event(tx, claim.job_id, state, **({"code": error["code"]} if error else {}))
    _tell_webhooks(tx, claim.job_id, claim.kind, state, model, result, error)


def release(tx: Transaction, claim: Claim, *, reason: str) -> None:
    """Put a job back into the queue without counting it as lost, because its worker is stopping."""
    _update_fenced(
        tx,
        claim,
        state="queued",
        claim_order=claim_order(claim.kind, Job.priority),
        lease_owner=None,
        lease_expires_at=None,
        due_at=tx.now,
    )
    append_event(tx, claim.job_id, "released", reason=reason)
    tx.notify(claim.job_id)


def made_progress(job: Job) -> bool:
    """Return whether the latest attempt of the job has written a checkpoint."""
    return job.checkpoint is not None and job.checkpoint["fence"] == job.fence


def requeue_lost(tx: Transaction, job: Job, *, reason: str) -> None:
    """Queue a job again after its process or worker died; each consecutive loss doubles the delay."""
    job.consecutive_losses += 1
    delay = min(2.0 ** (job.consecutive_losses - 1), MAX_DELAY_SECONDS) if job.consecutive_losses > 1 else 0.0
    job.state = "queued"
    job.claim_order = claim_order(job.kind, job.priority)
    job.lease_owner = None
    job.lease_expires_at = None
    job.due_at = tx.now + timedelta(seconds=delay)
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
    _tell_webhooks(tx, job.id, job.kind, state, job.model, None, error)


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


def _final_values(
    tx: Transaction, state: FinalState, result: dict[str, Any] | None, error: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "state": state,
        "result": result,
        "error": error,
        "finished_at": tx.now,
        "claim_order": None,
        "sent_at": None,
        "lease_owner": None,
        "lease_expires_at": None,
        "checkpoint": None,
    }


def _tell_webhooks(
    tx: Transaction,
    job_id: str,
    kind: str,
    state: FinalState,
    model: str | None,
    result: dict[str, Any] | None,
    error: dict[str, Any] | None,
) -> None:
    """Tell webhooks that a job has ended; ``app.experiments.completion`` does it for a whole experiment."""
    if not KINDS[kind].event:
        return
    data: dict[str, Any] = {"job_id": job_id, "kind": kind, "state": state}
    if model is not None:
        data["model"] = model
    if result is not None and "version" in result:
        data["version"] = result["version"]
    if error is not None:
        data["code"] = error["code"]
    queue_event(tx, "job.ended", data, model=model)


def _write_curve(tx: Transaction, job_id: str, curve: Mapping[int, dict[str, float]]) -> None:
    """Write points of a curve. They replace the points from the first one on, of an earlier attempt."""
    if not curve:
        return
    tx.session.execute(delete(CurvePoint).where(CurvePoint.job_id == job_id, CurvePoint.step >= min(curve)))
    tx.session.add_all(
        CurvePoint(job_id=job_id, step=step, measures=measures) for step, measures in curve.items()
    )


def _update_fenced(tx: Transaction, claim: Claim, **values: Any) -> str | None:
    """Change a claimed job, and return its model."""
    touched = tx.session.execute(
        update(Job)
        .where(Job.id == claim.job_id, Job.fence == claim.fence, Job.state == "running")
        .values(**values)
        .returning(Job.model)
    ).one_or_none()
    if touched is None:
        raise LostClaimError(claim.job_id)
    model: str | None = touched[0]
    return model


def _cancel_requested(session: Session, job_id: str) -> bool:
    return session.scalar(select(Job.cancel_requested_at).where(Job.id == job_id)) is not None
