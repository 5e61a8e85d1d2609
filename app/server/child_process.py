"""Supervision of one child process: start, restart after it dies, stop, and replacement without a gap."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from dataclasses import replace as copy_with
from typing import Protocol

import structlog

from app.server.parent_death import end_with_parent
from app.server.restart_delay import RestartDelay

log = structlog.get_logger()

STOP_SECONDS = 30.0
"""Time that a child has to stop before it is killed."""

START_SECONDS = 60.0
"""Time that a replacement has to become ready; after that, the old process is kept."""

POLL_SECONDS = 0.2
"""Interval at which children are checked."""


class ProcessNumbers(Protocol):
    """Gives each running process of a group a number of its own."""

    def take(self) -> int:
        """Return a number that no running process has."""
        ...

    def release(self, number: int) -> None:
        """Release the number of a process that has ended."""
        ...


@dataclass(eq=False)
class ChildProcess:
    """A child process that is restarted if it dies.

    Attributes:
        name: name in log events.
        command: the command line.
        inherited_fds: file descriptors that the child inherits.
        numbers: gives the process its number, the value of the option ``--number``; None if it has none.
        number: number of the running process.
        process: the running process; None if the child does not run.
        delay: the delay before the next start.
    """

    name: str
    command: list[str]
    inherited_fds: tuple[int, ...] = ()
    numbers: ProcessNumbers | None = None
    number: int | None = None
    process: subprocess.Popen[bytes] | None = None
    delay: RestartDelay = field(default_factory=RestartDelay)

    def restart_if_dead(self) -> None:
        """Start the process if it does not run and its delay has passed."""
        if self.process is not None and (status := self.process.poll()) is not None:
            self._ended()
            self.delay.died()
            log.warning("child.died", child=self.name, status=status, restart_in=self.delay.seconds)
        if self.process is None and self.delay.is_over():
            command = self.command
            if self.numbers is not None:
                self.number = self.numbers.take()
                command = [*command, "--number", str(self.number)]
            self.process = subprocess.Popen(
                command,
                pass_fds=self.inherited_fds,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),
                # Ctrl-C in a terminal only reaches the supervisor, which stops the children in order.
                start_new_session=True,
                # If the supervisor is killed, the children receive SIGTERM.
                preexec_fn=end_with_parent(),  # noqa: PLW1509 - this process has one thread
            )
            self.delay.started()
            log.info("child.started", child=self.name, pid=self.process.pid)

    def terminate(self) -> None:
        """Send SIGTERM to the process if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def stop(self, while_waiting: Callable[[], bool] = lambda: True) -> None:
        """Terminate the process and wait until it ends; kill it if it takes too long.

        Args:
            while_waiting: called repeatedly until the process has ended.
        """
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.terminate()
            deadline = time.monotonic() + STOP_SECONDS
            while self.process.poll() is None and time.monotonic() < deadline:
                while_waiting()
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(POLL_SECONDS)
            if self.process.poll() is None:
                log.warning("child.killed", child=self.name)
                self.process.kill()
            log.info("child.stopped", child=self.name, status=self.process.wait())
        self._ended()

    def _ended(self) -> None:
        self.process = None
        if self.numbers is not None and self.number is not None:
            self.numbers.release(self.number)
            self.number = None


def replace(child: ChildProcess, while_waiting: Callable[[], bool]) -> None:
    """Start a new process for a child, and stop the old one when the new one is ready.

    The command must accept the option ``--ready-fd``. If the new process does not become ready, the old
    process keeps running.

    Args:
        child: the child.
        while_waiting: called repeatedly until the new process is ready. The replacement is aborted if it
            returns false.
    """
    ready_fd, child_ready_fd = os.pipe()
    new = copy_with(
        child,
        name=f"new {child.name}",
        command=[*child.command, "--ready-fd", str(child_ready_fd)],
        inherited_fds=(*child.inherited_fds, child_ready_fd),
        process=None,
        number=None,
        delay=RestartDelay(),
    )
    new.restart_if_dead()
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
    child.process, child.number, child.delay = new.process, new.number, new.delay
    log.info("child.replaced", child=child.name, pid=new.process.pid if new.process else None)
    old.stop(while_waiting)
