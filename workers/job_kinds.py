"""The work of each kind of job, and what else changes when a job ends."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from app.batch_predictions.work import PredictBatch
from app.context import AppContext
from app.datasets.work import Ingestion
from app.db.session import Transaction
from app.db.tables import Job
from app.evaluations.work import EvaluateVersion
from app.experiments.work import PlanExperiment, RunCell
from app.jobs import queue
from app.jobs.problems import failure, with_sizes
from app.jobs.queue import Claim
from app.jobs.retry import write_with_retry
from app.jobs.work import Work
from app.routing import kept_messages
from app.training.work import TrainModel
from workers import stopping
from workers.requests import End

WORK: dict[str, Work] = {
    "ingest": Ingestion(kept_messages.read_email),
    "train": TrainModel(),
    "evaluate": EvaluateVersion(),
    "batch_prediction": PredictBatch(),
    "experiment": PlanExperiment(),
    "cell": RunCell(),
}


def fail(ctx: AppContext, claim: Claim, error: dict[str, Any]) -> None:
    """Finish a claimed job as failed as soon as the database is available.

    Raises:
        OperationalError: the worker stops before the database is available. The other errors of
            ``DATABASE_UNAVAILABLE`` are raised likewise.
    """

    def write(tx: Transaction) -> None:
        problem = with_sizes(tx, claim.dataset_id, error)
        queue.finish(tx, claim, "failed", error=problem)
        WORK[claim.kind].on_failure(tx, claim, problem)

    write_with_retry(ctx.db, write, give_up=stopping.requested)


def cancel(ctx: AppContext, claim: Claim) -> None:
    """Finish a claimed job as cancelled as soon as the database is available.

    Raises:
        OperationalError: the worker stops before the database is available. The other errors of
            ``DATABASE_UNAVAILABLE`` are raised likewise.
    """

    def write(tx: Transaction) -> None:
        queue.finish(tx, claim, "cancelled")
        WORK[claim.kind].on_failure(tx, claim, CANCELLED)

    write_with_retry(ctx.db, write, give_up=stopping.requested)


def release(ctx: AppContext, claim: Claim, *, reason: str) -> None:
    """Put a claimed job back into the queue; a job whose cancellation was requested is cancelled instead."""
    with ctx.db.write() as tx:
        job = queue.lock(tx, claim.job_id)
        if job is not None and job.cancel_requested_at is not None:
            queue.finish(tx, claim, "cancelled")
            WORK[claim.kind].on_failure(tx, claim, CANCELLED)
        else:
            queue.release(tx, claim, reason=reason)


def end_without_worker(ctx: AppContext, job_id: str, how: End) -> None:
    """End the job of a task that Celery has discarded or killed; nothing happens if the job has ended.

    A job that is cancelled while it runs stops itself soon.
    """

    def write(tx: Transaction) -> None:
        job = queue.lock(tx, job_id)
        if job is None or job.state in queue.FINISHED:
            return
        if how == "cancelled":
            queue.request_cancel(tx, job)
            return
        _end(tx, job, OUT_OF_TIME)

    write_with_retry(ctx.db, write, give_up=stopping.requested)


def handle_loss(
    tx: Transaction,
    job: Job,
    *,
    attempts: int,
    reason: str,
    process_died: bool,
    unavailable_hours: float | None = None,
    log: Sequence[str] = (),
) -> None:
    """Cancel, fail or queue again a job whose worker or process died. The caller holds the lock on its row.

    Args:
        tx: the transaction.
        job: the job's row.
        attempts: number of failed attempts after which the job fails.
        reason: what happened.
        process_died: whether only the job process died, while its worker lived. Only this counts as a failed
            attempt, and only if the attempt did not write a checkpoint.
        unavailable_hours: hours after which a job fails whose attempts all end because the database or the
            storage is unavailable, 0 for no limit; None if this attempt has ended for another reason.
        log: the last log lines of the job process.
    """
    if process_died and not queue.made_progress(job):
        job.failures += 1
    if unavailable_hours is None or queue.made_progress(job):
        job.unavailable_since = None
    elif job.unavailable_since is None:
        job.unavailable_since = tx.now
    if job.cancel_requested_at is not None:
        queue.finish_unclaimed(tx, job, "cancelled")
        WORK[job.kind].on_failure(tx, job, CANCELLED)
    elif job.failures >= attempts:
        detail = f"the job's process died {job.failures} times without progress; the last time: {reason}"
        _end(tx, job, {**failure("worker_lost", detail), "title": "Worker lost", "log": list(log)})
    elif (
        unavailable_hours
        and job.unavailable_since is not None
        and tx.now - job.unavailable_since >= timedelta(hours=unavailable_hours)
    ):
        detail = f"every attempt of the last {unavailable_hours:g} hours has ended in the same way: {reason}"
        _end(tx, job, {**failure("dependency_unavailable", detail), "log": list(log)})
    else:
        queue.requeue_lost(tx, job, reason=reason)


def _end(tx: Transaction, job: Job, error: dict[str, Any]) -> None:
    queue.finish_unclaimed(tx, job, "failed", error)
    WORK[job.kind].on_failure(tx, job, error)


OUT_OF_TIME: dict[str, Any] = failure(
    "out_of_time", "the job took longer than the time limit of the Celery worker"
)

CANCELLED: dict[str, Any] = {
    "type": "urn:covey:problem:cancelled",
    "title": "Cancelled",
    "status": 409,
    "code": "cancelled",
    "detail": "the job was cancelled",
}
