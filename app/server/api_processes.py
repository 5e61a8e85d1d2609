"""The API processes of one service, which share its listening socket."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from prometheus_client.multiprocess import mark_process_dead

from app.server.child_process import ChildProcess
from app.server.program import Closable, Program
from app.server.shared_listener import ABSENT, ConnectionCounts
from app.settings import Settings

COUNTS = "connections"
"""Name of the file with the numbers of connections."""


PREFIX = "covey-api-"
"""Beginning of the name of the temporary folder."""

LOCKED_SECONDS = 60.0
"""Time after which a folder without a lock is abandoned: its service locks it just after its creation."""


class ApiProcesses:
    """The API processes as children of a supervisor.

    Several processes share a temporary folder. It contains the numbers of their connections, so that each
    accepts as many as the others, and their metrics, so that each returns those of all. Each running process
    has a number. The next process with the same number continues the metrics.

    Args:
        settings: settings of the service; the processes read the same settings from the environment.
        listener: the listening socket.
        closed: files of the supervisor that the processes must not keep open.
    """

    def __init__(
        self, settings: Settings, listener: socket.socket, closed: tuple[Closable, ...] = ()
    ) -> None:
        fd = listener.fileno()
        arguments = ["api", "--fd", str(fd)]
        if settings.processes == 1:
            self._folder = None
            self.children = [
                ChildProcess("api", Program.python("app", *arguments, inherited_fds=(fd,), closed=closed))
            ]
            return
        _remove_abandoned()
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX)
        # systemd-tmpfiles and other services of this user skip a locked folder.
        self._lock = os.open(self._folder.name, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        # While a process is replaced, its successor already runs.
        free = set(range(2 * settings.processes))
        self._counts = ConnectionCounts.create(Path(self._folder.name) / COUNTS, len(free))
        self._free = free
        program = Program.python(
            "app", *arguments, "--shared-dir", self._folder.name, inherited_fds=(fd,), closed=closed
        )
        self.children = [
            ChildProcess(f"api-{i}", program, numbers=self) for i in range(1, settings.processes + 1)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            os.close(self._lock)

    @property
    def shared_dir(self) -> Path | None:
        """The folder that the processes share; None if there is only one."""
        return Path(self._folder.name) if self._folder else None

    def take(self) -> int:
        """Return a number that no running process has."""
        number = min(self._free)
        self._free.remove(number)
        return number

    def release(self, number: int) -> None:
        """Release the number of a process that has ended."""
        self._counts[number] = ABSENT
        if self._folder is not None:
            # Its gauges are no longer true. Its counters are.
            mark_process_dead(number, self._folder.name)  # type: ignore[no-untyped-call]
        self._free.add(number)

    def all_accept(self) -> bool:
        """Whether every process accepts connections. Always true if there is only one."""
        return self._folder is None or all(
            child.number is not None and self._counts[child.number] != ABSENT for child in self.children
        )


def _remove_abandoned() -> None:
    """Remove the temporary folders of services of this user that were killed: those without a lock."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # it belongs to another user, or is removed at this moment
            status = folder.stat()
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < LOCKED_SECONDS:
                continue
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
