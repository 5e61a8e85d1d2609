"""Supervision of one child process: start, restart after it dies, stop, and replacement without a gap."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from dataclasses import replace as copy_with
from typing import Protocol

import structlog

from app.server.fork import fork
from app.server.program import Program
from app.server.restart_delay import RestartDelay

log = structlog.get_logger()

STOP_SECONDS = 30.0
"""Time that a child has to stop before it is killed."""

START_SECONDS = 60.0
"""Time that a replacement has to become ready; after that, the old process is kept."""

POLL_SECONDS = 0.2
"""Interval at which children are checked."""


class ProcessNumbers(Protocol):
    """Give each running process of a group a number of its own."""

    def take(self) -> int:
        """Return a number that no running process has."""
        ...

    def release(self, number: int) -> None:
        """Release the number of a process that has ended."""
        ...


@dataclass(eq=False)
class ChildProcess:
    """A child process that is restarted if it dies. Its supervisor must have no other threads.

    Attributes:
        name: name in log events.
        program: what it runs: a program, or a function.
        numbers: gives the process its number, the value of the option ``--number``; None if it has none.
        death_signal: the signal that it gets if the supervisor is killed.
        stop_seconds: time that it has to stop before it is killed; None for ``STOP_SECONDS``.
        number: number of the running process.
        pid: id of the running process; None if the child does not run.
        status: exit status of the last process, negative for a signal.
        delay: the delay before the next start.
    """

    name: str
    program: Program | Callable[[], object]
    numbers: ProcessNumbers | None = None
    death_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float | None = None
    number: int | None = None
    pid: int | None = None
    status: int | None = None
    delay: RestartDelay = field(default_factory=RestartDelay)

    def restart_if_dead(self, options: Sequence[str] = (), fds: Sequence[int] = ()) -> None:
        """Start the process if it does not run and its delay has passed.

        Args:
            options: more arguments of its program.
            fds: more file descriptors that its program gets.
        """
        if self.pid is not None and not self.runs():
            self.delay.died()
            log.warning("child.died", child=self.name, status=self.status, restart_in=self.delay.seconds)
        if self.pid is None and self.delay.is_over():
            if self.numbers is not None:
                self.number = self.numbers.take()
                options = [*options, "--number", str(self.number)]
            program = self.program
            run = (lambda: program.run(options, fds)) if isinstance(program, Program) else program
            self.pid = fork(run, death_signal=self.death_signal)
            self.delay.started()
            log.info("child.started", child=self.name, pid=self.pid)

    def runs(self) -> bool:
        """Return whether the process runs; if it has ended, record its status."""
        if self.pid is not None and (ended := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.status = os.waitstatus_to_exitcode(ended[1])
            self.pid = None  # the system may give it to another process
            if self.numbers is not None and self.number is not None:
                self.numbers.release(self.number)
                self.number = None
        return self.pid is not None

    def terminate(self) -> None:
        """Send SIGTERM to the process if it runs."""
        self._signal(signal.SIGTERM)

    def stop(self, while_waiting: Callable[[], object] = lambda: None) -> None:
        """Terminate the process and wait until it ends; kill it if it takes too long.

        Args:
            while_waiting: called repeatedly until the process has ended.
        """
        if self.pid is None:
            return
        self.terminate()
        seconds = STOP_SECONDS if self.stop_seconds is None else self.stop_seconds
        deadline = time.monotonic() + seconds
        while self.runs() and time.monotonic() < deadline:
            while_waiting()
            self._wait(POLL_SECONDS)
        if self.runs():
            log.warning("child.killed", child=self.name)
            self._signal(signal.SIGKILL)
            while self.runs():
                self._wait(POLL_SECONDS)
        log.info("child.stopped", child=self.name, status=self.status)

    def _wait(self, seconds: float) -> None:
        """Wait until the process ends, at most this long."""
        deadline = time.monotonic() + seconds
        while self.runs() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _signal(self, number: signal.Signals) -> None:
        if self.runs() and self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def replace(child: ChildProcess, while_waiting: Callable[[], bool]) -> None:
    """Start a new process for a child, and stop the old one when the new one is ready.

    The new process, and those that are started after it has died, run the installed release: the supervisor
    may have imported an older one. The program must accept the option ``--ready-fd``. If the new process does
    not become ready, the old process keeps running.

    Args:
        child: the child, whose program is a ``Program``.
        while_waiting: called repeatedly until the new process is ready. The replacement is aborted if it
            returns false.
    """
    if not isinstance(child.program, Program):
        raise TypeError(f"{child.name} cannot be replaced")
    ready_fd, child_ready_fd = os.pipe()
    new = copy_with(
        child,
        name=f"new {child.name}",
        program=child.program.installed(),
        pid=None,
        number=None,
        delay=RestartDelay(),
    )
    new.restart_if_dead(["--ready-fd", str(child_ready_fd)], [child_ready_fd])
    os.close(child_ready_fd)
    deadline = time.monotonic() + START_SECONDS
    message = b""
    with os.fdopen(ready_fd, "rb", buffering=0) as pipe:
        while while_waiting() and time.monotonic() < deadline:
            if select.select([pipe], [], [], POLL_SECONDS)[0]:
                message = pipe.read(1)  # empty if the new process has died
                break
    if not message:
        log.error("child.not_replaced", child=child.name)
        new.stop()
        return
    old = copy_with(child, name=f"old {child.name}")
    child.program, child.pid, child.number, child.delay = new.program, new.pid, new.number, new.delay
    log.info("child.replaced", child=child.name, pid=child.pid)
    old.stop(while_waiting)
