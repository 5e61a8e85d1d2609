"""Processes that share a listening socket get equal numbers of connections."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from waiting import LIMIT_SECONDS

from app.server import shared_listener
from app.server.shared_listener import ABSENT, ConnectionCounts, SharedListener

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def counts(tmp_path: Path) -> ConnectionCounts:
    """The counts of three processes, all absent."""
    return ConnectionCounts.create(tmp_path / "counts", 3)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        yield listener


class Process:
    """One process: it keeps its connections open."""

    def __init__(self, listener: socket.socket, counts: ConnectionCounts, number: int) -> None:
        self.connections: list[asyncio.Transport] = []
        self.shared = SharedListener(listener.dup(), counts, number)
        self.shared.start(self._protocol, lambda: len(self.connections))

    def _protocol(self) -> asyncio.Protocol:
        process = self

        class Connection(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                assert isinstance(transport, asyncio.Transport)
                process.connections.append(transport)

        return Connection()


@asynccontextmanager
async def running(
    listener: socket.socket, counts: ConnectionCounts, *numbers: int
) -> AsyncIterator[list[Process]]:
    processes = [Process(listener, counts, number) for number in numbers]
    try:
        yield processes
    finally:
        for process in processes:
            process.shared.close()
            for connection in process.connections:
                connection.abort()


async def connect(listener: socket.socket, n: int) -> list[socket.socket]:
    loop = asyncio.get_running_loop()
    clients = []
    for _ in range(n):
        client = socket.socket()
        client.setblocking(False)
        await loop.sock_connect(client, listener.getsockname())
        clients.append(client)
    return clients


async def accepted(processes: list[Process], n: int) -> list[int]:
    """Wait until the processes have n connections, and return how many each has."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while sum(len(process.connections) for process in processes) < n:
            await asyncio.sleep(0.001)
    return [len(process.connections) for process in processes]


async def test_connections_that_wait_together_spread_evenly(
    listener: socket.socket, counts: ConnectionCounts
) -> None:
    clients = await connect(listener, 30)
    async with running(listener, counts, 0, 1, 2) as processes:
        spread = await accepted(processes, 30)
        assert max(spread) - min(spread) <= 2
    for client in clients:
        client.close()


async def test_a_new_process_gets_connections_until_it_has_as_many(
    listener: socket.socket, counts: ConnectionCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_listener, "MAX_SECONDS", LIMIT_SECONDS)
    monkeypatch.setattr(shared_listener, "SECONDS_PER_CONNECTION", LIMIT_SECONDS)
    async with running(listener, counts, 0) as (old,):
        clients = await connect(listener, 10)
        await accepted([old], 10)
        async with running(listener, counts, 1) as (new,):
            clients += await connect(listener, 10)
            assert await accepted([old, new], 20) == [10, 10]
    for client in clients:
        client.close()


async def test_a_process_takes_the_connections_of_one_that_does_not_respond(
    listener: socket.socket, counts: ConnectionCounts
) -> None:
    counts[1] = 0  # it accepts nothing
    async with running(listener, counts, 0) as (process,):
        clients = await connect(listener, 5)
        await accepted([process], 5)
    for client in clients:
        client.close()


async def test_a_process_without_resources_accepts_later(
    listener: socket.socket, counts: ConnectionCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_listener, "EXHAUSTED_SECONDS", 0.01)
    async with running(listener, counts, 0) as (process,):
        failures = [OSError(errno.EMFILE, "Too many open files"), ConnectionAbortedError()]
        accept = socket.socket.accept

        def fail_first(self: socket.socket) -> tuple[socket.socket, object]:
            if failures:
                raise failures.pop(0)
            return accept(self)

        monkeypatch.setattr(socket.socket, "accept", fail_first)
        clients = await connect(listener, 1)
        assert await accepted([process], 1) == [1]
        assert failures == []
    for client in clients:
        client.close()


async def test_a_process_that_stops_is_absent_and_leaves_the_socket_open(
    listener: socket.socket, counts: ConnectionCounts
) -> None:
    async with running(listener, counts, 0, 1) as (stopping, staying):
        assert (counts[0], counts[1], counts[2]) == (0, 0, ABSENT)
        stopping.shared.close()
        assert counts.lowest_other(1) is None
        clients = await connect(listener, 3)
        assert await accepted([stopping, staying], 3) == [0, 3]
        staying.shared.publish()
        assert counts.lowest_other(0) == 3
    for client in clients:
        client.close()
