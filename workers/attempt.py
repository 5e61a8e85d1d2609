"""One attempt at a job: claimed here, carried out in a process of its own, watched until it ends.

The job's process loads what it needs and gives all memory back when it ends. This side keeps the lease
alive, ends the process when it exceeds a limit, when the claim is lost or when a cancelled job does not
stop by itself, and hands the job back when the worker is told to stop.
"""

from __future__ import annotations

import signal
import time

import structlog

from app.context import AppContext
from app.db import tables
from app.db.session import DATABASE_UNAVAILABLE, Transaction
from app.jobs import checkpoints, queue
from app.jobs.queue import Claim, LostClaimError
from app.jobs.retry import write_with_retry
from workers import job_kinds, stopping
from workers.job_process import EX_TEMPFAIL, JobProcess
from workers.limits import Limits

log = structlog.get_logger()

POLL_SECONDS = 0.05
"""How often the job's process, its limits and the worker's end are looked at."""


def run(ctx: AppContext, job_id: str, owner: str) -> None:
    """Claim a job and see it through; a job that cannot be claimed is somebody else's, or was never due."""
    try:
        claim = queue.claim(ctx.db, job_id, owner, lease_seconds=ctx.settings.lease_seconds)
    except DATABASE_UNAVAILABLE as error:
        log.warning("job.cannot_claim", job_id=job_id, reason=type(error).__name__)
        return
    if claim is None:
        return
    with structlog.contextvars.bound_contextvars(job_id=job_id, attempt=claim.attempt, worker=owner):
        log.info("job.started", kind=claim.kind)
        child = JobProcess(ctx, claim)
        try:
            _watch(ctx, claim, child)
            _look_back(ctx, claim, child)
        except DATABASE_UNAVAILABLE as error:
            # The row still says that the job runs; when the database is back, the lease decides.
            log.warning("job.end_not_seen", reason=type(error).__name__)
        finally:
            child.close()


def _watch(ctx: AppContext, claim: Claim, child: JobProcess) -> None:
    """Keep the lease until the child has ended, or has to."""
    limits = Limits(ctx.settings, claim)
    beat = time.monotonic() + ctx.settings.heartbeat_seconds
    cancelled_since: float | None = None
    try:
        while (status := child.wait(POLL_SECONDS)) is None:
            if stopping.requested():
                child.end()
                job_kinds.release(ctx, claim, reason="the worker was told to stop")
                return
            if (problem := limits.exceeded(child.pid)) is not None:
                child.end()
                job_kinds.fail(ctx, claim, problem)
                return
            if cancelled_since is not None and (
                time.monotonic() - cancelled_since > ctx.settings.cancel_grace_seconds
            ):
                child.end()
                job_kinds.cancelled(ctx, claim)
                log.warning("job.ended_by_force")
                return
            if time.monotonic() >= beat:
                if _renew(ctx, claim) and cancelled_since is None:
                    cancelled_since = time.monotonic()
                beat = time.monotonic() + ctx.settings.heartbeat_seconds
        _settle(ctx, claim, child, status)
    except LostClaimError:
        # Either the child has just ended the job, or somebody else has taken it.
        return


def _renew(ctx: AppContext, claim: Claim) -> bool:
    """Renew the lease; gives whether the job was asked to stop.

    Raises:
        LostClaimError: the job is not ours any more.
    """
    try:
        return queue.renew_lease(ctx.db, claim, lease_seconds=ctx.settings.lease_seconds)
    except DATABASE_UNAVAILABLE as error:
        # The child goes on; if the database stays away for too long, the lease decides.
        log.warning("job.lease_not_renewed", reason=type(error).__name__)
        return False


def _settle(ctx: AppContext, claim: Claim, child: JobProcess, status: int) -> None:
    """Look at how the child ended; one that did its work has ended the job itself."""

    def write(tx: Transaction) -> None:
        job = queue.lock(tx, claim.job_id)
        if job is None or job.state != "running" or job.fence != claim.fence:
            return
        reason = _reason(status)
        tail = child.tail.lines()
        log.warning("job.process_lost", reason=reason, tail=tail)
        attempts = ctx.settings.job_attempts
        job_kinds.lost(tx, job, attempts=attempts, reason=reason, to_blame=status != EX_TEMPFAIL, log=tail)

    write_with_retry(ctx.db, write, give_up=stopping.requested)


def _look_back(ctx: AppContext, claim: Claim, child: JobProcess) -> None:
    """Say what became of the job, and clean up after one that has ended."""
    with ctx.db.read() as session:
        job = session.get(tables.Job, claim.job_id)
    if job is not None and job.state not in queue.FINISHED:
        log.info("job.let_go", state=job.state)
        return
    if job is not None and job.fence == claim.fence:
        # The child writes the end before it is through.
        child.wait(ctx.settings.cancel_grace_seconds)
    log.info("job.ended", state=job.state if job is not None else "gone")
    try:
        checkpoints.discard(ctx.storage, claim.job_id)
    except OSError as error:
        log.warning("checkpoint.not_discarded", reason=type(error).__name__)


def _reason(status: int) -> str:
    if status == EX_TEMPFAIL:
        return "its process could not reach the database or the disk"
    if status < 0:
        name = signal.Signals(-status).name
        return f"its process was ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"its process ended with status {status}"
