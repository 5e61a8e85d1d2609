"""The maintenance loop in every worker. It makes sure that no job is forgotten.

Each tick writes the worker's heartbeat, queues the jobs of lost workers again, and notifies again about
queued jobs that no worker has claimed, whatever happened to the broker. A second thread applies retention.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

import structlog
from sqlalchemy import delete, func, select
from sqlalchemy.exc import SQLAlchemyError

from app.context import AppContext
from app.db import tables
from app.db.session import Database, Transaction
from app.jobs import queue
from app.jobs.broker import broker_url
from app.jobs.notifier import Notifier
from app.maintenance import retention
from app.settings import Settings
from app.storage import open_storage
from workers import job_kinds, stopping

log = structlog.get_logger()


class MaintenanceLoop:
    """Two threads of the worker's main process: one for jobs, one for retention.

    The main process forks the pool processes. It must have no open transaction at that moment: the child
    would inherit a SQLite connection that holds a lock, and could never write.

    Args:
        settings: settings of the service.
        worker_id: id under which this worker claims jobs.
    """

    def __init__(self, settings: Settings, worker_id: str) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._machine = this_machine()
        in_transaction = threading.RLock()
        notifier = Notifier(broker_url(settings))
        self._db = Database(settings.resolved_database_url(), notifier.notify, guard=in_transaction)
        self._ctx = AppContext(settings, self._db, open_storage(settings), notifier)

        def before_fork() -> None:
            in_transaction.acquire()
            self._db.close()

        os.register_at_fork(
            before=before_fork, after_in_parent=in_transaction.release, after_in_child=in_transaction.release
        )
        self._stopping = threading.Event()
        self._last_tick: float | None = None
        self._extended_until = float("-inf")
        self._threads = [
            threading.Thread(target=self._tick_forever, name="maintenance", daemon=True),
            threading.Thread(target=self._apply_retention, name="retention", daemon=True),
        ]

    def start(self) -> None:
        """Start both threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let the pool processes release their jobs, and record that this worker accepts no more."""
        stopping.request()
        self._stopping.set()
        self._threads[0].join(timeout=self._settings.heartbeat_seconds + 5)
        try:
            with self._db.write() as tx:
                self._heartbeat(tx, stopping=True)
        except SQLAlchemyError:
            log.exception("worker.stop_not_recorded")

    def _tick_forever(self) -> None:
        while True:
            try:
                self.tick()
            except SQLAlchemyError as error:
                log.warning("maintenance.database_unavailable", reason=type(error).__name__)
            if self._stopping.wait(self._settings.heartbeat_seconds):
                return

    def _apply_retention(self) -> None:
        while not self._stopping.wait(self._settings.collect_seconds):
            try:
                retention.apply_retention(self._ctx)
            except (SQLAlchemyError, OSError) as error:
                log.warning("retention.failed", reason=type(error).__name__)

    def tick(self) -> None:
        """Write the heartbeat, queue lost jobs again, and notify again about unclaimed jobs."""
        with self._db.write() as tx:
            self._heartbeat(tx, stopping=False)
            self._extend_leases_after_outage(tx)
        with self._db.write() as tx:
            self._requeue_lost(tx)
        with self._db.write() as tx:
            # Only about jobs that can start here at once: other notifications would only pile up.
            free_capacity = self._settings.worker_concurrency - queue.count_running(
                tx.session, self._worker_id
            )
            for job_id in queue.undelivered(tx.session, tx.now, limit=max(free_capacity, 0)):
                job = queue.lock(tx, job_id)
                if job is not None and job.state == "queued":
                    job.notified_at = tx.now
                    tx.notify(job_id)

    def _heartbeat(self, tx: Transaction, *, stopping: bool) -> None:
        row = tx.session.get(tables.Worker, self._worker_id)
        if row is None:
            row = tables.Worker(
                id=self._worker_id,
                host=socket.gethostname(),
                pid=os.getpid(),
                machine=self._machine,
                concurrency=self._settings.worker_concurrency,
                started_at=tx.now,
            )
            tx.session.add(row)
        row.last_seen_at = tx.now
        row.stopping = stopping

    def _extend_leases_after_outage(self, tx: Transaction) -> None:
        """After an outage of the database, extend all leases, because no worker could renew them."""
        now, lease = time.monotonic(), self._settings.lease_seconds
        if self._last_tick is None:
            others = select(func.max(tables.Worker.last_seen_at)).where(tables.Worker.id != self._worker_id)
            last = tx.session.scalar(others)
            gap = (tx.now - last).total_seconds() if last is not None else 0.0
        else:
            gap = now - self._last_tick
        if gap > lease / 2:
            self._extended_until = now + lease
        self._last_tick = now

    def _requeue_lost(self, tx: Transaction) -> None:
        """Handle the jobs of workers that died or stopped renewing their leases."""
        dead = self._dead_workers(tx)
        leases_extended = time.monotonic() < self._extended_until
        for job in queue.lost(tx, dead_workers=dead, include_expired=not leases_extended):
            reason = f"its worker {job.lease_owner} " + (
                "died" if job.lease_owner in dead else "stopped renewing its lease"
            )
            log.warning("job.lease_expired", job_id=job.id, reason=reason)
            job_kinds.handle_loss(
                tx, job, attempts=self._settings.job_attempts, reason=reason, process_died=False
            )
        if dead:
            held = select(tables.Job.lease_owner).where(tables.Job.lease_owner.is_not(None))
            tx.session.execute(
                delete(tables.Worker).where(tables.Worker.id.in_(dead), tables.Worker.id.not_in(held))
            )

    def _dead_workers(self, tx: Transaction) -> list[str]:
        """Return the workers of this machine whose process is gone; their leases need not expire first."""
        local_workers = tx.session.execute(
            select(tables.Worker.id, tables.Worker.pid).where(
                tables.Worker.machine == self._machine, tables.Worker.id != self._worker_id
            )
        )
        return [id_ for id_, pid in local_workers if self._machine and not _is_alive(pid)]


def this_machine() -> str:
    """Return the boot id and process namespace in which this process id is valid; empty if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is alive and belongs to another user
        return True
    return True
