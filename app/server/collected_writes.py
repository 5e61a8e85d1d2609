"""Write the responses of several connections together.

A write wakes the client, and the work of the kernel for it displaces the program and its data from the caches
of the processor. If each response were written when it is complete, the predictions after it would be slower.
So everything that the tasks of one iteration of the event loop write is
collected, and written in the next iteration: the head and the body of a response with one call, and the
responses of several connections one after the other.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

MAX_COLLECTED_BYTES: Final = 64 * 1024
"""A connection that has collected so much is written to at once, so that a response can be of any size."""


class WriteCollector:
    """Remember the connections of one event loop that have something to write."""

    def __init__(self) -> None:
        self._waiting: list[CollectingTransport] = []

    def add(self, transport: CollectingTransport) -> None:
        """Write to a connection in the next iteration of the event loop."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._write)
        self._waiting.append(transport)

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        for transport in waiting:
            transport.flush()


class CollectingTransport(asyncio.Transport):
    """A transport that collects what is written, for a short time.

    Args:
        transport: the transport of the connection.
        collector: remembers the connections of the event loop.
    """

    def __init__(self, transport: asyncio.Transport, collector: WriteCollector) -> None:
        super().__init__()
        self._transport = transport
        self._collector = collector
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Collect bytes."""
        if not self._parts:
            self._collector.add(self)
        self._parts.append(bytes(data))
        self._size += len(data)
        if self._size > MAX_COLLECTED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the collected bytes."""
        if self._parts:
            data = b"".join(self._parts)
            self._parts = []
            self._size = 0
            if not self._transport.is_closing():
                self._transport.write(data)

    def close(self) -> None:
        """Write the collected bytes, then close the connection."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether the connection is closed, or will be as soon as everything is sent."""
        return self._transport.is_closing()

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that are not sent yet."""
        return self._size + self._transport.get_write_buffer_size()
