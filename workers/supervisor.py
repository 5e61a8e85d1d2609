"""The main process of a worker: it forks the other processes, restarts those that die, and stops them.

It has neither threads nor connections, so a fork can inherit none. Its id is the worker's in the database. If
it is killed, the kernel kills the other processes too.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from app.cli.restart_delay import RestartDelay
from app.parent_death import set_parent_death_signal
from app.settings import Settings
from workers import celery, identity, maintenance, slot, stopping
from workers.process_name import name_process
from workers.wakeups import Wakeups

log = structlog.get_logger()

POLL_SECONDS = 0.1
"""Interval at which the processes are checked."""

STOP_SECONDS = 10.0
"""Time that the slots have to release their jobs. If the database is unavailable, the leases decide later."""


@dataclass(eq=False)
class _Child:
    """A forked process that is restarted if it dies.

    Attributes:
        role: what the process does.
        run: called in the process.
        stop_signal: ends the process.
        pid: id of the running process; None if it does not run.
    """

    role: str
    run: Callable[[], None]
    stop_signal: signal.Signals = signal.SIGTERM
    pid: int | None = None
    delay: RestartDelay = field(default_factory=RestartDelay)

    def restart_if_dead(self) -> None:
        """Start the process if it does not run and its delay has passed."""
        if (status := self.reap()) is not None:
            self.delay.died()
            log.warning("worker.process_died", role=self.role, status=status, restart_in=self.delay.seconds)
        if self.pid is None and self.delay.is_over():
            self.pid = _fork(self.role, self.run)
            self.delay.started()

    def reap(self) -> int | None:
        """Return the exit status if the process has ended since the last call, negative for a signal."""
        if self.pid is None:
            return None
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self.pid = None
        return os.waitstatus_to_exitcode(status)

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal if it runs."""
        if self.pid is not None:
            os.kill(self.pid, number)


def run(settings: Settings, ready_fd: int | None = None) -> None:
    """Run a worker until SIGTERM or SIGINT, to any of its processes.

    Args:
        settings: settings of the service.
        ready_fd: file descriptor to write to when the worker is registered.
    """
    wakeups = Wakeups()
    worker_id, worker_pid = identity.worker_id(), os.getpid()

    def request_stop(_number: int, _frame: object) -> None:
        stopping.request()
        wakeups.wake()

    signal.signal(signal.SIGTERM, request_stop)
    signal.signal(signal.SIGINT, request_stop)

    def report_ready() -> None:
        if ready_fd is not None:
            with suppress(OSError):  # a process that started earlier has reported it, and nobody listens
                os.write(ready_fd, b"\n")

    children = [
        _Child(
            "maintenance", lambda: maintenance.run(settings, worker_id, worker_pid, wakeups, report_ready)
        ),
        *(
            _Child("slot", lambda: slot.run(settings, worker_id, wakeups))
            for _ in range(settings.worker_concurrency)
        ),
        # Celery may wait for the broker while it stops, although it has nothing to finish.
        _Child("celery", lambda: celery.run(settings, wakeups), stop_signal=signal.SIGKILL),
    ]
    while not stopping.requested():
        for child in children:
            child.restart_if_dead()
        time.sleep(POLL_SECONDS)
    _stop(children)


def _stop(children: Sequence[_Child]) -> None:
    for child in children:
        child.send(child.stop_signal)
    deadline = time.monotonic() + STOP_SECONDS
    while _running(children):
        if time.monotonic() > deadline:
            for child in _running(children):
                log.warning("worker.process_killed", role=child.role)
                child.send(signal.SIGKILL)
            deadline = float("inf")
        time.sleep(POLL_SECONDS / 2)


def _running(children: Sequence[_Child]) -> list[_Child]:
    for child in children:
        child.reap()
    return [child for child in children if child.pid is not None]


def _fork(role: str, run_child: Callable[[], None]) -> int:
    """Run a function in a new process, and return the id of the process."""
    sys.stderr.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        name_process(role)
        # In a terminal, Ctrl-C reaches all processes; the main process then stops the others.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if set_parent_death_signal(signal.SIGKILL, parent):
            run_child()
            status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except BaseException:  # the child must never continue as a copy of the parent
        log.exception("worker.internal_error", role=role)
    finally:
        sys.stderr.flush()
        os._exit(status)
