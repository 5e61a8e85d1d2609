"""The loop in every worker that sees to it that no job is forgotten.

It says that the worker lives, takes back jobs whose worker fell silent, and rings again for jobs that
nobody picked up, whatever happened to the broker.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import structlog
from sqlalchemy import delete
from sqlalchemy.exc import SQLAlchemyError

from app.bell import Bell
from app.broker import broker_url
from app.db import tables
from app.db.session import Database, Transaction
from app.jobs import kinds, ledger
from app.settings import Settings
from workers import stopping

log = structlog.get_logger()

FORGET_WORKERS_AFTER = timedelta(days=1)


class Supervisor:
    """A thread of the worker's main process.

    Args:
        settings: of the service.
        worker_id: under which this worker claims.
    """

    def __init__(self, settings: Settings, worker_id: str) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._bell = Bell(broker_url(settings))
        self._db = Database(settings.resolved_database_url(), self._bell.ring)
        self._stopping = threading.Event()
        self._in_transaction = threading.Lock()
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=self._in_transaction.release,
            after_in_child=self._in_transaction.release,
        )
        self._thread = threading.Thread(target=self._loop, name="supervisor", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Tell the jobs' watchers to hand their jobs back, and everybody that this worker takes no more."""
        stopping.ask()
        self._stopping.set()
        self._thread.join(timeout=self._settings.heartbeat_seconds + 5)
        try:
            self._say_alive(stopping=True)
        except SQLAlchemyError:
            log.exception("worker.cannot_say_that_it_stops")

    @contextmanager
    def _write(self) -> Iterator[Transaction]:
        """A transaction during which this process does not fork.

        A copy of a connection in the middle of a transaction would hold SQLite's lock for good, as far as
        the new process can tell: it could never write.
        """
        with self._in_transaction, self._db.write() as tx:
            yield tx

    def _before_fork(self) -> None:
        self._in_transaction.acquire()
        self._db.close()

    def _loop(self) -> None:
        while True:
            try:
                self.look()
            except SQLAlchemyError as error:
                log.warning("supervisor.database_away", reason=str(error))
            if self._stopping.wait(self._settings.heartbeat_seconds):
                return

    def look(self) -> None:
        """One round: say that we live, take back what was lost, ring for what was not heard."""
        self._say_alive(stopping=False)
        with self._write() as tx:
            for job in ledger.expired(tx):
                reason = f"its worker {job.lease_owner} fell silent"
                log.warning("job.lease_expired", job_id=job.id)
                kinds.lost(tx, job, attempts=self._settings.job_attempts, reason=reason, to_blame=False)
        with self._write() as tx:
            # Only for jobs that could start here at once: a ring that nobody can answer would only pile up.
            room = self._settings.worker_concurrency - ledger.running_of(tx.session, self._worker_id)
            for job_id in ledger.unheard(tx.session, tx.now, limit=max(room, 0)):
                waiting = ledger.lock(tx, job_id)
                if waiting is not None and waiting.state == "queued":
                    waiting.rung_at = tx.now
                    tx.ring(job_id)

    def _say_alive(self, *, stopping: bool) -> None:
        with self._write() as tx:
            row = tx.session.get(tables.Worker, self._worker_id)
            if row is None:
                tx.session.execute(
                    delete(tables.Worker).where(tables.Worker.seen_at < tx.now - FORGET_WORKERS_AFTER)
                )
                row = tables.Worker(
                    id=self._worker_id,
                    host=socket.gethostname(),
                    pid=os.getpid(),
                    concurrency=self._settings.worker_concurrency,
                    started_at=tx.now,
                )
                tx.session.add(row)
            row.seen_at = tx.now
            row.stopping = stopping
