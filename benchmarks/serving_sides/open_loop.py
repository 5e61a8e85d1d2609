"""Sends requests at a fixed rate, in a process of its own, and prints the latency as JSON.

    python -m benchmarks.serving_sides.open_loop URL BODIES --rate 500 [--header 'Name: value' …]

The times of the requests are random and independent (a Poisson process with a fixed seed), also of the
responses. If all connections wait for a response, the next request waits for the first one that is free.
The latency counts from the time at which the request was due, so a server that stops for a moment is charged
for all requests of that moment.

``wrk`` is not used here, because it sends the next request only after a response.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import re
import secrets
import selectors
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.serving_sides.bodies import PLACEHOLDER, raw_request, read_bodies

WARM_UP_SECONDS = 0.5

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class Connection(asyncio.Protocol):
    """A connection with at most one request at a time.

    Args:
        client: receives each response.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self.due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def send(self, request: bytes, due: float) -> None:
        """Send a request that was due at a time of the event loop's clock."""
        assert self._transport is not None
        self.due = due
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Collect the response."""
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(self._received, 0, end + 2)
        if length is None:
            raise RuntimeError(f"a response without Content-Length: {bytes(self._received[:500])!r}")
        if len(self._received) >= end + 4 + int(length[1]):
            succeeded = self._received.startswith(b"HTTP/1.1 200")
            response = bytes(self._received)
            self._received.clear()
            self._client.responded(self, None if succeeded else response)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the interface of asyncio
        """Count a connection that the server has closed."""
        self._client.lost()


class Client:
    """Sends requests at their times, and notes the latency of each response.

    Args:
        requests: the requests, used in turn.
    """

    def __init__(self, requests: Sequence[bytes]) -> None:
        self._requests = requests
        self._free: deque[Connection] = deque()
        self._waiting: deque[float] = deque()
        self._prefix = secrets.token_hex(4).encode()
        self._sent = 0
        self._stopping = False
        self.latencies: list[tuple[float, float]] = []
        self.errors = 0
        self.failure = ""

    async def run(self, host: str, port: int, *, connections: int, rate: float, seconds: float) -> None:
        """Send requests for a time, and wait for their responses."""
        loop = asyncio.get_running_loop()
        transports = []
        for _ in range(connections):
            transport, connection = await loop.create_connection(lambda: Connection(self), host, port)
            transports.append(transport)
            self._free.append(connection)
        times = random.Random(1)  # noqa: S311 - no secret
        due = loop.time()
        end = due + seconds + WARM_UP_SECONDS
        self._start = due
        while (due := due + times.expovariate(rate)) < end:
            pause = due - loop.time()
            if pause > 0:
                await asyncio.sleep(pause)
            self._send_or_wait(due)
            if pause <= 0:
                await asyncio.sleep(0)
        deadline = loop.time() + 30
        while len(self._free) < connections and not self.errors and loop.time() < deadline:
            await asyncio.sleep(0.01)
        self.errors += len(self._waiting)
        self._stopping = True
        for transport in transports:
            transport.close()

    def responded(self, connection: Connection, failure: bytes | None) -> None:
        """Note a response, and send the next request that waits.

        Args:
            connection: the connection of the response.
            failure: the response, if its status is not 200.
        """
        now = asyncio.get_running_loop().time()
        self.latencies.append((connection.due - self._start, now - connection.due))
        if failure is not None:
            self.errors += 1
            self.failure = self.failure or failure.decode(errors="replace")
        if self._waiting:
            connection.send(self._next_request(), self._waiting.popleft())
        else:
            self._free.append(connection)

    def lost(self) -> None:
        """Count a connection that the server has closed, unless the client is closing it."""
        self.errors += not self._stopping

    def _send_or_wait(self, due: float) -> None:
        if self._free:
            self._free.popleft().send(self._next_request(), due)
        else:
            self._waiting.append(due)

    def _next_request(self) -> bytes:
        self._sent += 1
        request = self._requests[self._sent % len(self._requests)]
        return request.replace(PLACEHOLDER, self._prefix + b"%016d" % self._sent, 1)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least this part of the values does not exceed.

    >>> percentile([3.0, 1.0, 2.0, 4.0], 50), percentile([3.0, 1.0, 2.0, 4.0], 99)
    (2.0, 4.0)
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def main() -> int:
    """Run the client."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("bodies", type=Path)
    parser.add_argument("--rate", type=float, required=True, help="requests per second")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--header", action="append", default=[], help="a header field; can be repeated")
    arguments = parser.parse_args()
    headers = dict(header.split(": ", 1) for header in arguments.header)
    bodies = read_bodies(arguments.bodies)
    client = Client([raw_request(arguments.url, headers, body) for body in bodies])
    parts = urlsplit(arguments.url)
    assert parts.hostname is not None
    assert parts.port is not None
    # select(2) has a resolution of microseconds; the default selector would round to milliseconds.
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    began = time.process_time()
    loop.run_until_complete(
        client.run(
            parts.hostname,
            parts.port,
            connections=arguments.connections,
            rate=arguments.rate,
            seconds=arguments.seconds,
        )
    )
    latencies = [latency for due, latency in client.latencies if due >= WARM_UP_SECONDS]
    print(
        json.dumps(
            {
                "responses": len(latencies),
                "errors": client.errors,
                "failure": client.failure,
                "cpu_seconds": round(time.process_time() - began, 3),
                **{
                    name: round(percentile(latencies, percent) * 1000, 3)
                    for name, percent in (("p50", 50), ("p99", 99), ("p999", 99.9), ("max", 100))
                },
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
