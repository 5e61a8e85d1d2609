"""Responses are written together, in order, and completely."""

from __future__ import annotations

import asyncio
from typing import Any

from app.server.collected_writes import MAX_COLLECTED_BYTES, CollectingTransport, WriteCollector


class Transport(asyncio.Transport):
    """Keeps each write."""

    def __init__(self, log: list[tuple[str, bytes]], name: str) -> None:
        super().__init__()
        self.log = log
        self.name = name
        self.closed = False

    def write(self, data: Any) -> None:
        self.log.append((self.name, bytes(data)))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 5


def transports(*names: str) -> tuple[list[tuple[str, bytes]], list[CollectingTransport]]:
    log: list[tuple[str, bytes]] = []
    collector = WriteCollector()
    return log, [CollectingTransport(Transport(log, name), collector) for name in names]


def test_head_and_body_are_one_write_and_responses_follow_each_other() -> None:
    async def run() -> list[tuple[str, bytes]]:
        log, (a, b) = transports("a", "b")
        a.write(b"head")
        b.write(b"HEAD")
        a.write(memoryview(b" body"))
        assert log == []
        assert a.get_write_buffer_size() == len(b"head body") + 5
        await asyncio.sleep(0)
        b.write(b"more")
        await asyncio.sleep(0)
        return log

    assert asyncio.run(run()) == [("a", b"head body"), ("b", b"HEAD"), ("b", b"more")]


def test_a_connection_is_closed_after_what_was_written() -> None:
    async def run() -> None:
        log, (a,) = transports("a")
        a.write(b"last")
        a.close()
        assert log == [("a", b"last")]
        assert a.is_closing()
        a.write(b"too late")
        await asyncio.sleep(0)
        assert log == [("a", b"last")]

    asyncio.run(run())


def test_a_large_response_is_not_collected() -> None:
    async def run() -> None:
        log, (a,) = transports("a")
        a.write(b"x" * MAX_COLLECTED_BYTES)
        assert log == []
        a.write(b"y")
        assert log == [("a", b"x" * MAX_COLLECTED_BYTES + b"y")]
        await asyncio.sleep(0)
        assert len(log) == 1

    asyncio.run(run())
