"""The heartbeat of a worker: a thread that only writes the worker's row, so nothing else can delay it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from sqlalchemy import func, select

from app.background import PeriodicTask
from app.db import tables
from app.db.session import Database
from app.settings import Settings

STOP_SECONDS = 5.0
"""How long a worker that stops waits until the database knows."""


class BrokerState(Protocol):
    """The time since which the broker is unavailable."""

    unavailable_since: float | None


class Heartbeat:
    """Register the worker in the database, and show that it is alive.

    Args:
        settings: settings of the service.
        worker_id: id of the worker.
        pid: id of the worker's main process.
        relay: knows whether the broker is unavailable.
        on_registered: called after the first heartbeat.
    """

    def __init__(
        self,
        settings: Settings,
        worker_id: str,
        pid: int,
        relay: BrokerState,
        on_registered: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._pid = pid
        self._relay = relay
        self._machine = this_machine()
        self._on_registered = on_registered
        self._db = Database(settings.resolved_database_url())
        self._last: float | None = None
        self._started = time.monotonic()
        self._extended_until = float("-inf")
        self._task = PeriodicTask(
            "heartbeat", self._beat, every=settings.heartbeat_seconds, finish=lambda: self.beat(stopping=True)
        )

    def start(self) -> None:
        """Start the thread, which begins with a heartbeat."""
        self._task.wake()

    def stop(self) -> None:
        """Record that this worker accepts no more jobs, and stop."""
        self._task.stop(STOP_SECONDS)

    def beat(self, *, stopping: bool = False) -> None:
        """Write one heartbeat."""
        with self._db.write() as tx:
            if self._last is None:
                last = tx.session.scalar(select(func.max(tables.Worker.last_seen_at)))
                gap = (tx.now - last).total_seconds() if last is not None else 0.0
            else:
                gap = time.monotonic() - self._last
            row = tx.session.get(tables.Worker, self._worker_id)
            if row is None:
                row = tables.Worker(
                    id=self._worker_id,
                    host=socket.gethostname(),
                    pid=self._pid,
                    machine=self._machine,
                    concurrency=self._settings.worker_concurrency,
                    started_at=tx.now,
                )
                tx.session.add(row)
            row.last_seen_at = tx.now
            row.stopping = stopping
            if (since := self._relay.unavailable_since) is None:
                row.broker_away_since = None
            else:
                row.broker_away_since = tx.now - timedelta(seconds=time.monotonic() - since)
        now = time.monotonic()
        if self._is_outage(gap):
            self._extended_until = now + self._settings.lease_seconds
        self._last = now

    def age(self) -> float:
        """Return the time since the last heartbeat, or since the start, in seconds."""
        return time.monotonic() - (self._started if self._last is None else self._last)

    def leases_are_reliable(self) -> bool:
        """Whether an expired lease means that its worker is lost.

        It does not during an outage of the database, and for the time of one lease afterwards, because no
        worker could renew its leases.
        """
        now = time.monotonic()
        return (
            self._last is not None and not self._is_outage(now - self._last) and now >= self._extended_until
        )

    def _is_outage(self, gap: float) -> bool:
        return gap > self._settings.lease_seconds / 2

    def _beat(self) -> None:
        is_first = self._last is None
        self.beat()
        if is_first:
            self._on_registered()


def this_machine() -> str:
    """Return the boot id and process namespace in which this process id is valid; empty if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def is_alive(pid: int) -> bool:
    """Whether a process of this machine runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is alive and belongs to another user
        return True
    return True
