"""One attempt at a job: claimed here, carried out in a process of its own, watched until it ends.

The job's process loads what it needs and gives all memory back when it ends. This side keeps the lease
alive, ends the process when the claim is lost or a cancelled job does not stop by itself, and hands the
job back when the worker is told to stop.
"""

from __future__ import annotations

import signal
import time

import structlog
from sqlalchemy.exc import OperationalError

from app.db import tables
from app.environment import Environment
from app.jobs import kinds, ledger
from app.jobs.ledger import Claim, LostClaimError
from workers.child import TRY_AGAIN, JobProcess

log = structlog.get_logger()


def run(env: Environment, job_id: str, owner: str) -> None:
    """Claim a job and see it through; a job that cannot be claimed is somebody else's, or was never due."""
    claim = ledger.claim(env.db, job_id, owner, lease_seconds=env.settings.lease_seconds)
    if claim is None:
        return
    with structlog.contextvars.bound_contextvars(job_id=job_id, attempt=claim.attempt):
        log.info("job.started", kind=claim.kind)
        child = JobProcess(env, claim)
        try:
            _watch(env, claim, child, owner)
        except LostClaimError:
            _let_go(env, claim, child)
        finally:
            child.end()


def _watch(env: Environment, claim: Claim, child: JobProcess, owner: str) -> None:
    """Keep the lease until the child ends.

    Raises:
        LostClaimError: the job is not ours any more.
    """
    cancelled_since: float | None = None
    while True:
        status = child.wait(env.settings.heartbeat_seconds)
        if status is not None:
            _settle(env, claim, status)
            return
        try:
            cancelled = ledger.renew(env.db, claim, lease_seconds=env.settings.lease_seconds)
            if _stopping(env, owner):
                child.end()
                kinds.hand_back(env, claim, reason="the worker was told to stop")
                log.info("job.handed_back")
                return
        except OperationalError as error:
            # The child goes on; if the database stays away for too long, the lease decides.
            log.warning("job.lease_not_renewed", reason=str(error.orig))
            continue
        if cancelled:
            cancelled_since = cancelled_since or time.monotonic()
            if time.monotonic() - cancelled_since > env.settings.cancel_grace_seconds:
                child.end()
                kinds.cancelled(env, claim)
                log.warning("job.ended_by_force")
                return


def _let_go(env: Environment, claim: Claim, child: JobProcess) -> None:
    """The claim does not hold any more: because the child has just ended the job, or because it was taken."""
    with env.db.read() as session:
        job = session.get_one(tables.Job, claim.job_id)
    if job.fence == claim.fence and job.state in ledger.FINISHED:
        child.wait(env.settings.cancel_grace_seconds)
        log.info("job.ended", state=job.state)
    else:
        log.warning("job.claim_lost")


def _settle(env: Environment, claim: Claim, status: int) -> None:
    """Look at how the child ended; one that did its work has ended the job itself."""
    with env.db.write() as tx:
        job = ledger.lock(tx, claim.job_id)
        if job is None or job.state != "running" or job.fence != claim.fence:
            log.info("job.ended", state=job.state if job is not None else "gone")
            return
        reason = _reason(status)
        log.warning("job.process_lost", reason=reason)
        kinds.lost(tx, job, attempts=env.settings.job_attempts, reason=reason)


def _reason(status: int) -> str:
    if status == TRY_AGAIN:
        return "its process could not reach the database or the disk"
    if status < 0:
        name = signal.Signals(-status).name
        return f"its process was ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"its process ended with status {status}"


def _stopping(env: Environment, owner: str) -> bool:
    with env.db.read() as session:
        worker = session.get(tables.Worker, owner)
        return worker is not None and worker.stopping
