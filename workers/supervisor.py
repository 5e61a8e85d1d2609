"""The loop in every worker that sees to it that no job is forgotten.

It says that the worker lives, takes back jobs whose worker fell silent, rings again for jobs that nobody
picked up, whatever happened to the broker, and now and then collects what nobody needs any more.
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

from app import retention
from app.bell import Bell
from app.broker import broker_url
from app.db import tables
from app.db.session import Database, Transaction
from app.environment import Environment
from app.jobs import kinds, ledger
from app.settings import Settings
from app.storage import open_storage
from workers import stopping

log = structlog.get_logger()


class Supervisor:
    """Two threads of the worker's main process: one for jobs, one for what is left over.

    The main process forks the processes of the pool. None of its transactions may be under way then: a
    copy of a SQLite connection in mid-transaction would hold the lock for good, as far as the new process
    can tell, and it could never write.

    Args:
        settings: of the service.
        worker_id: under which this worker claims.
    """

    def __init__(self, settings: Settings, worker_id: str) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._machine = this_machine()
        in_transaction = threading.RLock()
        bell = Bell(broker_url(settings))
        self._db = Database(settings.resolved_database_url(), bell.ring, guard=in_transaction)
        self._env = Environment(settings, self._db, open_storage(settings), bell)

        def before_fork() -> None:
            in_transaction.acquire()
            self._db.close()

        os.register_at_fork(
            before=before_fork, after_in_parent=in_transaction.release, after_in_child=in_transaction.release
        )
        self._stopping = threading.Event()
        self._seen: float | None = None
        self._patient_until = float("-inf")
        self._threads = [
            threading.Thread(target=self._look_for_jobs, name="supervisor", daemon=True),
            threading.Thread(target=self._collect, name="collector", daemon=True),
        ]

    def start(self) -> None:
        """Begin to look."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Tell the jobs' watchers to hand their jobs back, and everybody that this worker takes no more."""
        stopping.ask()
        self._stopping.set()
        self._threads[0].join(timeout=self._settings.heartbeat_seconds + 5)
        try:
            with self._db.write() as tx:
                self._say_alive(tx, stopping=True)
        except SQLAlchemyError:
            log.exception("worker.cannot_say_that_it_stops")

    def _look_for_jobs(self) -> None:
        while True:
            try:
                self.look()
            except SQLAlchemyError as error:
                log.warning("supervisor.database_away", reason=type(error).__name__)
            if self._stopping.wait(self._settings.heartbeat_seconds):
                return

    def _collect(self) -> None:
        while not self._stopping.wait(self._settings.collect_seconds):
            try:
                retention.collect(self._env)
            except (SQLAlchemyError, OSError) as error:
                log.warning("retention.failed", reason=type(error).__name__)

    def look(self) -> None:
        """One round: say that we live, take back what was lost, ring for what was not heard."""
        with self._db.write() as tx:
            self._say_alive(tx, stopping=False)
            self._take_heart(tx)
        with self._db.write() as tx:
            self._take_back(tx)
        with self._db.write() as tx:
            # Only for jobs that could start here at once: a ring that nobody can answer would only pile up.
            room = self._settings.worker_concurrency - ledger.running_of(tx.session, self._worker_id)
            for job_id in ledger.unheard(tx.session, tx.now, limit=max(room, 0)):
                waiting = ledger.lock(tx, job_id)
                if waiting is not None and waiting.state == "queued":
                    waiting.rung_at = tx.now
                    tx.ring(job_id)

    def _say_alive(self, tx: Transaction, *, stopping: bool) -> None:
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
        row.seen_at = tx.now
        row.stopping = stopping

    def _take_heart(self, tx: Transaction) -> None:
        """After the database was away, be patient for a lease: the others could not renew theirs either."""
        now, lease = time.monotonic(), self._settings.lease_seconds
        if self._seen is None:
            others = select(func.max(tables.Worker.seen_at)).where(tables.Worker.id != self._worker_id)
            last = tx.session.scalar(others)
            silence = (tx.now - last).total_seconds() if last is not None else 0.0
        else:
            silence = now - self._seen
        if silence > lease / 2:
            self._patient_until = now + lease
        self._seen = now

    def _take_back(self, tx: Transaction) -> None:
        """Queue again, or end, the jobs of workers that are dead or fell silent."""
        dead = self._dead(tx)
        patient = time.monotonic() < self._patient_until
        for job in ledger.expired(tx, dead=dead, silent=not patient):
            reason = f"its worker {job.lease_owner} " + ("died" if job.lease_owner in dead else "fell silent")
            log.warning("job.lease_expired", job_id=job.id, reason=reason)
            kinds.lost(tx, job, attempts=self._settings.job_attempts, reason=reason, to_blame=False)
        if dead:
            held = select(tables.Job.lease_owner).where(tables.Job.lease_owner.is_not(None))
            tx.session.execute(
                delete(tables.Worker).where(tables.Worker.id.in_(dead), tables.Worker.id.not_in(held))
            )

    def _dead(self, tx: Transaction) -> list[str]:
        """Workers that ran where this one runs, and whose process is gone: no lease need run out for them."""
        neighbours = tx.session.execute(
            select(tables.Worker.id, tables.Worker.pid).where(
                tables.Worker.machine == self._machine, tables.Worker.id != self._worker_id
            )
        )
        return [id_ for id_, pid in neighbours if self._machine and not _lives(pid)]


def this_machine() -> str:
    """The boot and the process namespace in which this process has its id; empty where unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it lives, and is another user's
        return True
    return True
