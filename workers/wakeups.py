"""Wakes the idle slots of a worker, so that they need not wait for their next look into the job queue.

A wake-up may be lost or superfluous without harm: it only makes a slot look into the queue earlier.
"""

from __future__ import annotations

import os
import select
from contextlib import suppress

_MAX_BYTES = 4096


class Wakeups:
    """A pipe that all processes of a worker share; each byte in it wakes at least one idle slot.

    Create it before the processes are forked.
    """

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)

    def wake(self) -> None:
        """Wake an idle slot. If no slot is idle, the next one that would wait looks into the queue again."""
        # If the pipe is full, it already wakes every slot.
        with suppress(BlockingIOError):
            os.write(self._write_fd, b"\n")

    def notify(self, _job_id: str) -> None:
        """Wake an idle slot after the commit of a transaction that queued a job."""
        self.wake()

    def wait(self, seconds: float) -> bool:
        """Wait for a wake-up, at most this long; return whether there was one."""
        if not select.select([self._read_fd], [], [], seconds)[0]:
            return False
        with suppress(BlockingIOError):  # another slot was faster
            os.read(self._read_fd, _MAX_BYTES)
        return True

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._read_fd)
        os.close(self._write_fd)
