"""One attempt at a claimed job: run it in a process of its own, and watch that process until it ends.

The memory of a job returns to the system when its process ends. This process kills it if the job
exceeds a limit, if the claim is lost, or if a cancelled job does not stop by itself, and it releases the job
if the worker is stopping. It never waits for the database while it watches: a thread renews the lease.
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
from workers.lease import LeaseRenewal
from workers.limits import Limits

log = structlog.get_logger()

POLL_SECONDS = 0.05
"""How often to check the job process, its limits and the stop flag."""

CANCEL_SECONDS = 0.5
"""Time that a cancelled job has to stop before its process is killed."""

EXIT_SECONDS = 20.0
"""Time that the process of a job that has ended has to exit."""


def run(ctx: AppContext, claim: Claim, owner: str) -> str | None:
    """Run a claimed job to its end, or release it if the worker stops.

    Args:
        ctx: the context of the process.
        claim: the job.
        owner: id of the worker, for the log.

    Returns:
        ``succeeded``, the code of the error with which the job failed, or ``cancelled``; None if it has not
        ended.
    """
    with structlog.contextvars.bound_contextvars(job_id=claim.job_id, attempt=claim.attempt, worker=owner):
        log.info("job.started", kind=claim.kind)
        child = JobProcess(ctx, claim)
        lease = LeaseRenewal(ctx.settings, claim)
        lease.start()
        try:
            _watch(ctx, claim, child, lease)
            return _clean_up(ctx, claim, child)
        except DATABASE_UNAVAILABLE as error:
            # The row still says that the job is running; when the database is back, the lease decides.
            log.warning("job.end_not_recorded", reason=type(error).__name__)
            return None
        finally:
            child.close()
            lease.stop(give_up=stopping.requested)


def _watch(ctx: AppContext, claim: Claim, child: JobProcess, lease: LeaseRenewal) -> None:
    """Wait until the job process ends, or kill it and record why."""
    limits = Limits(ctx.settings, claim)
    cancelled_since: float | None = None
    try:
        while (status := child.wait(POLL_SECONDS)) is None:
            if stopping.requested():
                child.kill()
                job_kinds.release(ctx, claim, reason="the worker is stopping")
                return
            if lease.lost:
                return
            if (problem := limits.exceeded(child.pid)) is not None:
                child.kill()
                job_kinds.fail(ctx, claim, problem)
                return
            if lease.cancel_requested:
                cancelled_since = cancelled_since or time.monotonic()
                if time.monotonic() - cancelled_since > CANCEL_SECONDS:
                    child.kill()
                    job_kinds.cancel(ctx, claim)
                    log.warning("job.killed_after_cancel")
                    return
        _handle_exit(ctx, claim, child, status)
    except LostClaimError:
        # Either the job process has just finished the job, or another worker has claimed it.
        return


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


def _clean_up(ctx: AppContext, claim: Claim, child: JobProcess) -> str | None:
    """Log and return how the attempt ended, and delete the checkpoints of a finished job."""
    with ctx.db.read() as session:
        job = session.get(tables.Job, claim.job_id)
    if job is not None and job.state not in queue.FINISHED:
        log.info("job.unfinished", state=job.state)
        return None
    if job is not None and job.fence == claim.fence:
        # The job process writes the final state shortly before it exits.
        child.wait(EXIT_SECONDS)
    log.info("job.finished", state=job.state if job is not None else "deleted")
    try:
        checkpoints.delete_all(ctx.storage, claim.job_id)
    except OSError as error:
        log.warning("checkpoint.not_deleted", reason=type(error).__name__)
    if job is None:
        return "cancelled"
    return str(job.error["code"]) if job.error is not None else job.state


def _reason(status: int) -> str:
    if status == EX_TEMPFAIL:
        return "its process could not reach the database or the disk"
    if status < 0:
        # Python has no names for most real-time signals.
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        return f"its process was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"its process exited with status {status}"
