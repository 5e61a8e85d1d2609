"""Accept connections on a socket that several processes share, so that each gets an equal number.

The kernel wakes every process when a client connects, and the first process could take all connections that
wait. Therefore a process takes one connection at a time, and a process with more connections than another one
first waits a moment for that one. If the other process is busy or does not respond, the connection is taken
nevertheless. While a process is missing, the others take all connections, and none waits for it.
"""

from __future__ import annotations

import asyncio
import errno
import mmap
import socket
from collections.abc import Callable
from pathlib import Path

import structlog

log = structlog.get_logger()

ABSENT = -1
"""The entry of a process that accepts no connections."""

SECONDS_PER_CONNECTION = 0.001
"""How long a process waits for another one, for each connection that it has more."""

MAX_SECONDS = 0.05
"""How long it waits at most."""

EXHAUSTED_SECONDS = 1.0
"""How long a process without resources waits before it accepts again."""

_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class ConnectionCounts:
    """The numbers of connections of several processes, in a file that all of them map.

    Args:
        path: the file, which :meth:`create` has written.
    """

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._counts = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")

    @classmethod
    def create(cls, path: Path, entries: int) -> ConnectionCounts:
        """Create the file for a number of processes, all absent."""
        path.write_bytes(ABSENT.to_bytes(8, "little", signed=True) * entries)
        return cls(path)

    def __getitem__(self, number: int) -> int:
        """Return the number of connections of a process, or ``ABSENT``."""
        return self._counts[number]

    def __setitem__(self, number: int, count: int) -> None:
        """Set the number of connections of a process, or ``ABSENT``."""
        self._counts[number] = count

    def lowest_other(self, number: int) -> int | None:
        """Return the lowest number of connections of another process; None if there is no other process."""
        return min(
            (count for other, count in enumerate(self._counts) if other != number and count != ABSENT),
            default=None,
        )


class SharedListener:
    """Accept the connections of one process.

    Args:
        listener: the listening socket.
        counts: the connections of all processes.
        number: number of this process in ``counts``.
    """

    def __init__(self, listener: socket.socket, counts: ConnectionCounts, number: int) -> None:
        self._listener = listener
        self._counts = counts
        self._number = number
        self._starting: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._accepting = False

    def start(
        self, create_protocol: Callable[[], asyncio.Protocol], n_connections: Callable[[], int]
    ) -> None:
        """Start to accept connections in the running event loop.

        Args:
            create_protocol: creates the protocol of a connection.
            n_connections: returns how many connections exist.
        """
        self._loop = asyncio.get_running_loop()
        self._create_protocol = create_protocol
        self._n_connections = n_connections
        self._listener.setblocking(False)
        self._accepting = True
        self.publish()
        self._loop.add_reader(self._listener, self._on_client)

    def publish(self) -> int:
        """Tell the other processes how many connections this one has, and return the number."""
        count = self._n_connections() + len(self._starting)
        if self._accepting:
            self._counts[self._number] = count
        return count

    def close(self) -> None:
        """Accept no more connections. The socket stays open for the other processes."""
        if self._accepting:
            self._accepting = False
            self._counts[self._number] = ABSENT
            self._loop.remove_reader(self._listener)
            if self._timer is not None:
                self._timer.cancel()
            self._listener.close()

    def _on_client(self) -> None:
        lowest = self._counts.lowest_other(self._number)
        count = self.publish()
        if lowest is not None and (more := count - lowest) > 0:
            self._pause(min(more * SECONDS_PER_CONNECTION, MAX_SECONDS))
        else:
            self._accept()

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._timer = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._loop.add_reader(self._listener, self._on_client)
        self._accept()

    def _accept(self) -> None:
        """Accept one connection, unless another process has taken it."""
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            log.warning("connection.not_accepted", reason=error.strerror)
            self._pause(EXHAUSTED_SECONDS)
            return
        connection.setblocking(False)
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._start(connection))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
        self.publish()

    async def _start(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._create_protocol, connection)
        except OSError:
            connection.close()  # the client has gone
