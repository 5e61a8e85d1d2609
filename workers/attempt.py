"""One attempt at a job: claim it, run it in a process of its own, and watch that process until it ends.

The memory of a job returns to the system when its process ends. The pool process renews the lease. It kills
the job process if the job exceeds a limit, if the claim is lost, or if a cancelled job does not stop by
itself, and it releases the job if the worker is stopping.
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
"""How often the pool process checks the job process, its limits and the stop flag."""


def run(ctx: AppContext, job_id: str, owner: str) -> None:
    """Claim a job and run it to its end; return if it cannot be claimed."""
    try:
        claim = queue.claim(ctx.db, job_id, owner, lease_seconds=ctx.settings.lease_seconds)
    except DATABASE_UNAVAILABLE as error:
        log.warning("job.claim_failed", job_id=job_id, reason=type(error).__name__)
        return
    if claim is None:
        return
    with structlog.contextvars.bound_contextvars(job_id=job_id, attempt=claim.attempt, worker=owner):
        log.info("job.started", kind=claim.kind)
        child = JobProcess(ctx, claim)
        try:
            _watch(ctx, claim, child)
            _clean_up(ctx, claim, child)
        except DATABASE_UNAVAILABLE as error:
            # The row still says that the job is running; when the database is back, the lease decides.
            log.warning("job.end_not_recorded", reason=type(error).__name__)
        finally:
            child.close()


def _watch(ctx: AppContext, claim: Claim, child: JobProcess) -> None:
    """Renew the lease until the job process ends or must be killed."""
    limits = Limits(ctx.settings, claim)
    next_renewal = time.monotonic() + ctx.settings.heartbeat_seconds
    cancelled_since: float | None = None
    try:
        while (status := child.wait(POLL_SECONDS)) is None:
            if stopping.requested():
                child.kill()
                job_kinds.release(ctx, claim, reason="the worker is stopping")
                return
            if (problem := limits.exceeded(child.pid)) is not None:
                child.kill()
                job_kinds.fail(ctx, claim, problem)
                return
            if cancelled_since is not None and (
                time.monotonic() - cancelled_since > ctx.settings.cancel_grace_seconds
            ):
                child.kill()
                job_kinds.cancel(ctx, claim)
                log.warning("job.killed_after_cancel")
                return
            if time.monotonic() >= next_renewal:
                if _renew(ctx, claim) and cancelled_since is None:
                    cancelled_since = time.monotonic()
                next_renewal = time.monotonic() + ctx.settings.heartbeat_seconds
        _handle_exit(ctx, claim, child, status)
    except LostClaimError:
        # Either the job process has just finished the job, or another worker has claimed it.
        return


def _renew(ctx: AppContext, claim: Claim) -> bool:
    """Renew the lease and return whether cancellation was requested.

    Raises:
        LostClaimError: the claim is no longer valid.
    """
    try:
        return queue.renew_lease(ctx.db, claim, lease_seconds=ctx.settings.lease_seconds)
    except DATABASE_UNAVAILABLE as error:
        # The job process continues; if the database stays unavailable for too long, the lease decides.
        log.warning("job.lease_not_renewed", reason=type(error).__name__)
        return False


def _handle_exit(ctx: AppContext, claim: Claim, child: JobProcess, status: int) -> None:
    """Record that the job process died, unless it has finished the job itself."""

    def write(tx: Transaction) -> None:
        job = queue.lock(tx, claim.job_id)
        if job is None or job.state != "running" or job.fence != claim.fence:
            return
        reason = _reason(status)
        tail = child.tail.lines()
        log.warning("job.process_lost", reason=reason, tail=tail)
        attempts = ctx.settings.job_attempts
        job_kinds.handle_loss(
            tx, job, attempts=attempts, reason=reason, process_died=status != EX_TEMPFAIL, log=tail
        )

    write_with_retry(ctx.db, write, give_up=stopping.requested)


def _clean_up(ctx: AppContext, claim: Claim, child: JobProcess) -> None:
    """Log how the attempt ended, and delete the checkpoints of a finished job."""
    with ctx.db.read() as session:
        job = session.get(tables.Job, claim.job_id)
    if job is not None and job.state not in queue.FINISHED:
        log.info("job.unfinished", state=job.state)
        return
    if job is not None and job.fence == claim.fence:
        # The job process writes the final state shortly before it exits.
        child.wait(ctx.settings.cancel_grace_seconds)
    log.info("job.finished", state=job.state if job is not None else "deleted")
    try:
        checkpoints.delete_all(ctx.storage, claim.job_id)
    except OSError as error:
        log.warning("checkpoint.not_deleted", reason=type(error).__name__)


def _reason(status: int) -> str:
    if status == EX_TEMPFAIL:
        return "its process could not reach the database or the disk"
    if status < 0:
        name = signal.Signals(-status).name
        return f"its process was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"its process exited with status {status}"
