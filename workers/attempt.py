"""One attempt at a job: claimed here, carried out in a process of its own, watched until it ends.

The job's process loads what it needs and gives all memory back when it ends. This side keeps the lease
alive, ends the process when it exceeds a limit, when the claim is lost or when a cancelled job does not
stop by itself, and hands the job back when the worker is told to stop.
"""

from __future__ import annotations

import signal
import time

import structlog

from app.db import tables
from app.db.session import DATABASE_AWAY, Transaction
from app.environment import Environment
from app.jobs import checkpoints, kinds, ledger
from app.jobs.ledger import Claim, LostClaimError
from app.jobs.patience import persist
from workers import stopping
from workers.child import TRY_AGAIN, JobProcess
from workers.limits import Limits

log = structlog.get_logger()

LOOK_SECONDS = 0.05
"""How often the job's process, its limits and the worker's end are looked at."""


def run(env: Environment, job_id: str, owner: str) -> None:
    """Claim a job and see it through; a job that cannot be claimed is somebody else's, or was never due."""
    try:
        claim = ledger.claim(env.db, job_id, owner, lease_seconds=env.settings.lease_seconds)
    except DATABASE_AWAY as error:
        log.warning("job.cannot_claim", job_id=job_id, reason=type(error).__name__)
        return
    if claim is None:
        return
    with structlog.contextvars.bound_contextvars(job_id=job_id, attempt=claim.attempt, worker=owner):
        log.info("job.started", kind=claim.kind)
        child = JobProcess(env, claim)
        try:
            _watch(env, claim, child)
            _look_back(env, claim, child)
        except DATABASE_AWAY as error:
            # The row still says that the job runs; when the database is back, the lease decides.
            log.warning("job.end_not_seen", reason=type(error).__name__)
        finally:
            child.close()


def _watch(env: Environment, claim: Claim, child: JobProcess) -> None:
    """Keep the lease until the child has ended, or has to."""
    limits = Limits(env.settings, claim)
    beat = time.monotonic() + env.settings.heartbeat_seconds
    cancelled_since: float | None = None
    try:
        while (status := child.wait(LOOK_SECONDS)) is None:
            if stopping.asked():
                child.end()
                kinds.hand_back(env, claim, reason="the worker was told to stop")
                return
            if (problem := limits.exceeded(child.pid)) is not None:
                child.end()
                kinds.fail(env, claim, problem)
                return
            if cancelled_since is not None and (
                time.monotonic() - cancelled_since > env.settings.cancel_grace_seconds
            ):
                child.end()
                kinds.cancelled(env, claim)
                log.warning("job.ended_by_force")
                return
            if time.monotonic() >= beat:
                if _renew(env, claim) and cancelled_since is None:
                    cancelled_since = time.monotonic()
                beat = time.monotonic() + env.settings.heartbeat_seconds
        _settle(env, claim, child, status)
    except LostClaimError:
        # Either the child has just ended the job, or somebody else has taken it.
        return


def _renew(env: Environment, claim: Claim) -> bool:
    """Renew the lease; gives whether the job was asked to stop.

    Raises:
        LostClaimError: the job is not ours any more.
    """
    try:
        return ledger.renew(env.db, claim, lease_seconds=env.settings.lease_seconds)
    except DATABASE_AWAY as error:
        # The child goes on; if the database stays away for too long, the lease decides.
        log.warning("job.lease_not_renewed", reason=type(error).__name__)
        return False


def _settle(env: Environment, claim: Claim, child: JobProcess, status: int) -> None:
    """Look at how the child ended; one that did its work has ended the job itself."""

    def write(tx: Transaction) -> None:
        job = ledger.lock(tx, claim.job_id)
        if job is None or job.state != "running" or job.fence != claim.fence:
            return
        reason = _reason(status)
        tail = child.tail.lines()
        log.warning("job.process_lost", reason=reason, tail=tail)
        attempts = env.settings.job_attempts
        kinds.lost(tx, job, attempts=attempts, reason=reason, to_blame=status != TRY_AGAIN, log=tail)

    persist(env.db, write, give_up=stopping.asked)


def _look_back(env: Environment, claim: Claim, child: JobProcess) -> None:
    """Say what became of the job, and clean up after one that has ended."""
    with env.db.read() as session:
        job = session.get(tables.Job, claim.job_id)
    if job is not None and job.state not in ledger.FINISHED:
        log.info("job.let_go", state=job.state)
        return
    if job is not None and job.fence == claim.fence:
        # The child writes the end before it is through.
        child.wait(env.settings.cancel_grace_seconds)
    log.info("job.ended", state=job.state if job is not None else "gone")
    try:
        checkpoints.discard(env.storage, claim.job_id)
    except OSError as error:
        log.warning("checkpoint.not_discarded", reason=type(error).__name__)


def _reason(status: int) -> str:
    if status == TRY_AGAIN:
        return "its process could not reach the database or the disk"
    if status < 0:
        name = signal.Signals(-status).name
        return f"its process was ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"its process ended with status {status}"
