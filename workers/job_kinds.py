"""The kinds of work there are: what a worker does for each, and what a job's end means for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from app.context import AppContext
from app.datasets.work import Ingestion
from app.db.session import Transaction
from app.db.tables import Job
from app.evaluations.work import EvaluateVersion
from app.experiments.work import PlanExperiment, RunCell
from app.jobs import queue
from app.jobs.progress import ProgressReporter
from app.jobs.queue import Claim
from app.jobs.retry import write_with_retry
from app.training.work import TrainModel


class Work(Protocol):
    """One kind of work."""

    def run(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        """Do the work and end the job in the transaction that writes what it made.

        Raises:
            CoveyError: the job cannot succeed, and why.
            CancelledError: it was asked to stop.
        """
        ...

    def ended_unfinished(self, tx: Transaction, dataset_id: str | None, error: dict[str, Any]) -> None:
        """What else changes, in the same transaction, when a job fails or is cancelled."""
        ...


KINDS: dict[str, Work] = {
    "ingest": Ingestion(),
    "train": TrainModel(),
    "evaluate": EvaluateVersion(),
    "experiment": PlanExperiment(),
    "cell": RunCell(),
}


def fail(ctx: AppContext, claim: Claim, error: dict[str, Any]) -> None:
    """End a job of ours as failed, when the database is there."""

    def write(tx: Transaction) -> None:
        queue.finish(tx, claim, "failed", error=error)
        KINDS[claim.kind].ended_unfinished(tx, claim.dataset_id, error)

    write_with_retry(ctx.db, write)


def cancelled(ctx: AppContext, claim: Claim) -> None:
    """End a job of ours as cancelled, when the database is there."""

    def write(tx: Transaction) -> None:
        queue.finish(tx, claim, "cancelled")
        KINDS[claim.kind].ended_unfinished(tx, claim.dataset_id, CANCELLED)

    write_with_retry(ctx.db, write)


def release(ctx: AppContext, claim: Claim, *, reason: str) -> None:
    """Give a job of ours back unfinished; one that was asked to stop is not started again only to stop."""
    with ctx.db.write() as tx:
        job = queue.lock(tx, claim.job_id)
        if job is not None and job.cancel_requested_at is not None:
            queue.finish(tx, claim, "cancelled")
            KINDS[claim.kind].ended_unfinished(tx, claim.dataset_id, CANCELLED)
        else:
            queue.release(tx, claim, reason=reason)


def lost(
    tx: Transaction, job: Job, *, attempts: int, reason: str, to_blame: bool, log: Sequence[str] = ()
) -> None:
    """Decide what becomes of a job whose worker or process died; the caller holds its row.

    Args:
        tx: the transaction.
        job: its row.
        attempts: how many attempts may fail.
        reason: what happened.
        to_blame: whether the job's own process died while everything around it lived. Only that counts as
            a failed attempt, and only if the attempt had not got further than the one before it.
        log: the last lines that the job's process logged.
    """
    if to_blame and not queue.made_progress(job):
        job.failures += 1
    if job.cancel_requested_at is not None:
        queue.finish_unclaimed(tx, job, "cancelled")
        KINDS[job.kind].ended_unfinished(tx, job.dataset_id, CANCELLED)
    elif job.failures >= attempts:
        error = {
            "type": "urn:covey:problem:worker_lost",
            "title": "Worker lost",
            "status": 500,
            "code": "worker_lost",
            "detail": (
                f"the job's process died {job.failures} times without getting further; "
                f"the last time: {reason}"
            ),
            "log": list(log),
        }
        queue.finish_unclaimed(tx, job, "failed", error)
        KINDS[job.kind].ended_unfinished(tx, job.dataset_id, error)
    else:
        queue.requeue_lost(tx, job, reason=reason)


CANCELLED: dict[str, Any] = {
    "type": "urn:covey:problem:cancelled",
    "title": "Cancelled",
    "status": 409,
    "code": "cancelled",
    "detail": "the job was cancelled",
}
