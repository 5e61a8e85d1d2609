"""Starts commands of Covey, and programs of the tests, as forks of a process that has imported the service.

To import the service takes seconds of processor time, and the tests start it dozens of times. Arguments,
environment and standard streams are those of an ordinary start, which ``tests/system/test_demo.py`` and
other tests use. A process of the tests has one fork server, which ends with it.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import IO, Any

from waiting import LIMIT_SECONDS

ROOT = Path(__file__).parents[2]
HOLDS = Path(__file__).parent / "job_holds" / "sitecustomize.py"

MODULES = {"worker": "workers", "celery": "celery"}
"""The programs that are not commands of ``python -m app``."""

MAX_REQUEST_BYTES = 128 * 1024


class Command:
    """A running command, with the methods of ``subprocess.Popen`` that tests use.

    Args:
        pid: its process id.
        status_fd: where its exit status arrives.
    """

    def __init__(self, pid: int, status_fd: int) -> None:
        self.pid = pid
        self._status_fd = status_fd
        self._status: int | None = None

    def wait(self, seconds: float | None = None) -> int:
        """Wait until the command has ended, and return its exit status, negative for a signal.

        Raises:
            subprocess.TimeoutExpired: it has not ended in time.
        """
        if self._status is None:
            if not select.select([self._status_fd], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired("covey", seconds or 0.0)
            self._status = int(os.read(self._status_fd, 20))
            os.close(self._status_fd)
        return self._status

    def poll(self) -> int | None:
        """Return the exit status; None if the command is running."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def start(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    stdout: int | IO[Any],
    stderr: int | IO[Any],
    stdin: int | None = None,
) -> Command:
    """Start a program with arguments in an environment.

    Args:
        arguments: those of ``covey``; or ``celery``, or a file of Python and its arguments.
        environment: all variables.
        stdout: file for what it writes.
        stderr: file for its log.
        stdin: file that it reads; by default an empty one.
    """
    server = _server()
    status, status_write = os.pipe()
    request = json.dumps({"arguments": [*arguments], "environment": dict(environment)}).encode()
    outputs = [file if isinstance(file, int) else file.fileno() for file in (stdout, stderr)]
    with Path(os.devnull).open("rb") as empty:
        fds = [empty.fileno() if stdin is None else stdin, *outputs, status_write]
        socket.send_fds(server, [request], fds)
    os.close(status_write)
    return Command(int(server.recv(20)), status)


def run(
    arguments: Sequence[str], environment: Mapping[str, str], content: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a program that reads content to its end, and return its exit status and what it has written."""
    with ExitStack() as opened:
        stdin, stdout, stderr = (opened.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        stdin.write(content)
        stdin.seek(0)
        status = start(arguments, environment, stdout, stderr, stdin.fileno()).wait(LIMIT_SECONDS)
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(arguments, status, stdout.read(), stderr.read())


@cache
def _server() -> socket.socket:
    """Start the fork server of this process, and return the connection to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, __file__, str(theirs.fileno())],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
    )
    theirs.close()

    def close() -> None:
        ours.close()
        process.wait()

    atexit.register(close)
    return ours


def main(connection: socket.socket) -> None:
    """Fork commands until the process of the tests ends."""
    from app.cli import main as _command_line  # noqa: F401
    from app.cli.import_once import import_once
    from app.server.fork import fork

    import_once(None)
    statuses: dict[int, int] = {}
    wake, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write)
    while True:
        ready, _, _ = select.select([connection.fileno(), wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            while statuses and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                status_fd = statuses.pop(ended[0])
                os.write(status_fd, str(os.waitstatus_to_exitcode(ended[1])).encode())
                os.close(status_fd)
        if connection.fileno() in ready:
            message, fds, _, _ = socket.recv_fds(connection, MAX_REQUEST_BYTES, 4)
            if not message:
                return
            others = [connection.fileno(), wake, wake_write, fds[3], *statuses.values()]
            run = partial(_run, json.loads(message), fds[:3], others)
            pid = fork(run, death_signal=signal.SIGTERM)
            statuses[pid] = fds[3]
            for fd in fds[:3]:
                os.close(fd)
            connection.send(str(pid).encode())


def _run(request: Mapping[str, Any], fds: Sequence[int], others: Sequence[int]) -> None:
    """Run a command in this new process."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for fd in others:
        os.close(fd)
    for fd, number in zip(fds, (0, 1, 2), strict=True):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    if "JOB_HOLDS" in os.environ:
        runpy.run_path(str(HOLDS))  # an ordinary start would import it
    program, *rest = request["arguments"]
    if program.endswith(".py"):
        sys.argv = [program, *rest]
        runpy.run_path(program, run_name="__main__")
        return
    # ``covey worker`` executes this module, which would import everything again.
    module, arguments = (MODULES[program], rest) if program in MODULES else ("app", [program, *rest])
    sys.argv = ["covey", *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
