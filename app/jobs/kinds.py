"""The kinds of work there are: what a worker does for each, and what a job's end means for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from app.datasets.work import Ingestion
from app.db.session import Transaction
from app.db.tables import Job
from app.environment import Environment
from app.evaluations.work import Evaluating
from app.experiments.work import PlanExperiment, RunCell
from app.jobs import ledger
from app.jobs.ledger import Claim
from app.jobs.patience import persist
from app.jobs.reporter import Reporter
from app.training.work import Training


class Work(Protocol):
    """One kind of work."""

    def run(self, env: Environment, claim: Claim, report: Reporter) -> None:
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
    "train": Training(),
    "evaluate": Evaluating(),
    "experiment": PlanExperiment(),
    "cell": RunCell(),
}


def fail(env: Environment, claim: Claim, error: dict[str, Any]) -> None:
    """End a job of ours as failed, when the database is there."""

    def write(tx: Transaction) -> None:
        ledger.finish(tx, claim, "failed", error=error)
        KINDS[claim.kind].ended_unfinished(tx, claim.dataset_id, error)

    persist(env.db, write)


def cancelled(env: Environment, claim: Claim) -> None:
    """End a job of ours as cancelled, when the database is there."""

    def write(tx: Transaction) -> None:
        ledger.finish(tx, claim, "cancelled")
        KINDS[claim.kind].ended_unfinished(tx, claim.dataset_id, CANCELLED)

    persist(env.db, write)


def hand_back(env: Environment, claim: Claim, *, reason: str) -> None:
    """Give a job of ours back unfinished; one that was asked to stop is not started again only to stop."""
    with env.db.write() as tx:
        job = ledger.lock(tx, claim.job_id)
        if job is not None and job.cancel_requested_at is not None:
            ledger.finish(tx, claim, "cancelled")
            KINDS[claim.kind].ended_unfinished(tx, claim.dataset_id, CANCELLED)
        else:
            ledger.hand_back(tx, claim, reason=reason)


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
    if to_blame and not ledger.got_further(job):
        job.failures += 1
    if job.cancel_requested_at is not None:
        ledger.end_unowned(tx, job, "cancelled")
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
        ledger.end_unowned(tx, job, "failed", error)
        KINDS[job.kind].ended_unfinished(tx, job.dataset_id, error)
    else:
        ledger.requeue_lost(tx, job, reason=reason)


CANCELLED: dict[str, Any] = {
    "type": "urn:covey:problem:cancelled",
    "title": "Cancelled",
    "status": 409,
    "code": "cancelled",
    "detail": "the job was cancelled",
}
