"""The requests from the processes of a worker to its maintenance, through pipes that they share."""

from __future__ import annotations

import os
import select
from contextlib import suppress
from typing import Literal, TypeAlias

End: TypeAlias = Literal["cancelled", "out_of_time"]

_MAX_BYTES = 4096


class Requests:
    """Two pipes. Create them before the processes are forked."""

    def __init__(self) -> None:
        self._wake_read, self._wake_write = os.pipe()
        self._end_read, self._end_write = os.pipe()
        for fd in (self._wake_read, self._wake_write, self._end_write):
            os.set_blocking(fd, False)

    def wake(self) -> None:
        """Let the relay look for jobs now."""
        with suppress(BlockingIOError):  # a full pipe already wakes it
            os.write(self._wake_write, b"\n")

    def notify(self, _job_id: str) -> None:
        """Let the relay look for jobs after the commit of a transaction that queued one."""
        self.wake()

    def close(self) -> None:
        """Keep the pipes: all processes of the worker share them."""

    def wait(self, seconds: float) -> None:
        """Wait for ``wake``, at most this long."""
        if select.select([self._wake_read], [], [], seconds)[0]:
            with suppress(BlockingIOError):
                os.read(self._wake_read, _MAX_BYTES)

    def end(self, job_id: str, how: End) -> None:
        """Have the job of a task ended that Celery has discarded or killed."""
        with suppress(BlockingIOError):  # maintenance has been away for thousands of requests
            os.write(self._end_write, f"{how} {job_id}\n".encode())

    def ended(self) -> list[tuple[str, End]]:
        """Wait for calls of ``end``, and return the ids of the jobs and how they end."""
        lines = os.read(self._end_read, _MAX_BYTES).decode()
        while not lines.endswith("\n"):
            lines += os.read(self._end_read, _MAX_BYTES).decode()
        found: list[tuple[str, End]] = []
        for line in lines.splitlines():
            how, _, job_id = line.partition(" ")
            found.append((job_id, "cancelled" if how == "cancelled" else "out_of_time"))
        return found
