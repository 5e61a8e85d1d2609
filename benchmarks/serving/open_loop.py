"""Sends requests at a fixed rate and measures the latency, in a process of its own.

The times of the requests are random and independent (a Poisson process with a fixed seed), also of the
responses. If all connections wait for a response, the next request waits for the first one that is free. The
latency counts from the time at which the request was due, so a server that stops for a moment is charged for
all requests of that moment.

``wrk`` is not used here, because it sends the next request only after a response.
"""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import random
import secrets
import selectors
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

from benchmarks.serving.bodies import PLACEHOLDER, exchange, raw_request, read_bodies
from benchmarks.serving.processes import Target
from benchmarks.serving.wrk import LoadError

WARM_UP_SECONDS = 0.5
END_SECONDS = 30.0
"""Time that the last responses may take."""


@dataclass(frozen=True)
class Latency:
    """The latency in milliseconds, and the number of responses."""

    responses: int
    p50: float
    p99: float
    longest: float


class Client:
    """Sends requests at their times, and notes the latency of each response.

    Args:
        requests: the requests, used in turn.

    Attributes:
        latencies: seconds at which each request was due, and its latency.
        failures: responses with another status than 200, and errors.
    """

    def __init__(self, requests: Sequence[bytes]) -> None:
        self._requests = requests
        self._due: asyncio.Queue[float | None] = asyncio.Queue()
        self._prefix = secrets.token_hex(4).encode()
        self._sent = 0
        self.latencies: list[tuple[float, float]] = []
        self.failures: list[str] = []

    async def run(self, host: str, port: int, *, connections: int, rate: float, seconds: float) -> None:
        """Send requests for a time, and wait for their responses."""
        loop = asyncio.get_running_loop()
        opened = [await asyncio.open_connection(host, port) for _ in range(connections)]
        times = random.Random(1)  # noqa: S311 - no secret
        start = due = loop.time()
        tasks = [asyncio.create_task(self._send(start, *each)) for each in opened]
        while (due := due + times.expovariate(rate)) < start + seconds + WARM_UP_SECONDS:
            await asyncio.sleep(max(0.0, due - loop.time()))
            self._due.put_nowait(due)
        for _ in tasks:
            self._due.put_nowait(None)
        _, late = await asyncio.wait(tasks, timeout=END_SECONDS)
        self.failures += ["a response is missing"] * len(late)
        for task in late:
            task.cancel()

    async def _send(self, start: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send requests over one connection as they become due."""
        loop = asyncio.get_running_loop()
        try:
            while (due := await self._due.get()) is not None:
                self._sent += 1
                request = self._requests[self._sent % len(self._requests)]
                own = request.replace(PLACEHOLDER, self._prefix + b"%016d" % self._sent, 1)
                status, body = await exchange(reader, writer, own)
                self.latencies.append((due - start, loop.time() - due))
                if status != 200:
                    self.failures.append(f"{status} {body.decode(errors='replace')}")
        except (OSError, asyncio.IncompleteReadError) as error:
            self.failures.append(f"the connection was closed: {error}")
        finally:
            writer.close()


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least this part of the values does not exceed.

    >>> percentile([3.0, 1.0, 2.0, 4.0], 50), percentile([3.0, 1.0, 2.0, 4.0], 99)
    (2.0, 4.0)
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def measure(target: Target, *, rate: float, connections: int, seconds: float) -> Latency:
    """Send requests at a fixed rate from a new process.

    Raises:
        LoadError: a response is missing or has another status than 200.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        latencies, failures = process.submit(_run, target, rate, connections, seconds).result(seconds + 120)
    if failures:
        raise LoadError(f"{len(failures)} of {len(latencies)} requests failed: {failures[0]}")
    found = [1000 * latency for due, latency in latencies if due >= WARM_UP_SECONDS]
    return Latency(len(found), percentile(found, 50), percentile(found, 99), max(found))


def _run(
    target: Target, rate: float, connections: int, seconds: float
) -> tuple[list[tuple[float, float]], list[str]]:
    url = urlsplit(target.url)
    assert url.hostname is not None
    assert url.port is not None
    bodies = read_bodies(target.bodies)
    client = Client([raw_request(target.url, target.headers, body) for body in bodies])
    run = client.run(url.hostname, url.port, connections=connections, rate=rate, seconds=seconds)
    # select(2) has a resolution of microseconds; the default selector would round to milliseconds.
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(run)
    return client.latencies, client.failures
