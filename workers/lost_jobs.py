"""Queue the jobs of workers again that died or stopped renewing their leases."""

from __future__ import annotations

import structlog
from sqlalchemy import delete, select

from app.context import AppContext
from app.db import tables
from app.db.session import Transaction
from app.jobs import queue
from workers import job_kinds
from workers.heartbeat import Heartbeat, is_alive, this_machine

log = structlog.get_logger()


def requeue_lost_jobs(ctx: AppContext, worker_id: str, heartbeat: Heartbeat) -> None:
    """Queue lost jobs again, or end them, and delete the rows of dead workers.

    Args:
        ctx: the context of this process.
        worker_id: id of this worker.
        heartbeat: knows whether expired leases are reliable.
    """
    with ctx.db.write() as tx:
        dead = _dead_workers(tx, worker_id)
        for job in queue.lost(tx, dead_workers=dead, include_expired=heartbeat.leases_are_reliable()):
            reason = f"its worker {job.lease_owner} " + (
                "died" if job.lease_owner in dead else "stopped renewing its lease"
            )
            log.warning("job.lease_expired", job_id=job.id, reason=reason)
            job_kinds.handle_loss(
                tx, job, attempts=ctx.settings.job_attempts, reason=reason, process_died=False
            )
        if dead:
            held = select(tables.Job.lease_owner).where(tables.Job.lease_owner.is_not(None))
            tx.session.execute(
                delete(tables.Worker).where(tables.Worker.id.in_(dead), tables.Worker.id.not_in(held))
            )


def _dead_workers(tx: Transaction, worker_id: str) -> list[str]:
    """Return the workers of this machine whose process is gone; their leases need not expire first."""
    machine = this_machine()
    local_workers = tx.session.execute(
        select(tables.Worker.id, tables.Worker.pid).where(
            tables.Worker.machine == machine, tables.Worker.id != worker_id
        )
    )
    return [id_ for id_, pid in local_workers if machine and not is_alive(pid)]
