"""A TCP proxy in a process of its own that delays, mutes, refuses or resets connections to a server.

A test places it between the service and the database, the broker or the bucket, and changes its condition at
known points. The proxy stays at its port, so the service needs no setting for a fault.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

Condition: TypeAlias = Literal["healthy", "delayed", "mute", "refusing"]
"""State of a proxy.

``delayed``: every piece of data that the client sends waits, so every round trip takes longer.
``mute``: connections are accepted and stay open, but nothing is transferred until the condition changes.
``refusing``: open connections are reset, and new connections are refused.
"""

CHUNK_BYTES = 65536
CHUNKS_ON_THE_WAY = 256
"""Pieces of data that a delayed connection holds; then the sender waits."""


class FaultProxy:
    """Controls a running proxy.

    Args:
        port: port of this machine on which it listens.
        process: its process.
    """

    def __init__(self, port: int, process: subprocess.Popen[str]) -> None:
        self.port = port
        self.condition: Condition = "healthy"
        self._process = process
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        """Host and port, for a URL."""
        return f"127.0.0.1:{self.port}"

    def heal(self) -> None:
        """Transfer everything again, including what muted connections have sent."""
        self._set("healthy")

    def delay(self, seconds: float) -> None:
        """Delay everything that clients send from now on."""
        self._set("delayed", seconds)

    def mute(self) -> None:
        """Accept connections and transfer nothing."""
        self._set("mute")

    def refuse(self) -> None:
        """Reset all connections and refuse new ones."""
        self._set("refusing")

    def reset(self) -> None:
        """Reset all connections, once. The condition stays the same."""
        self._send({"reset": True})

    def connections(self) -> int:
        """Return the number of open connections of clients."""
        return int(self._send({})["connections"])

    def accepted(self) -> int:
        """Return the number of connections that were accepted since the start."""
        return int(self._send({})["accepted"])

    def _set(self, condition: Condition, seconds: float = 0.0) -> None:
        self._send({"condition": condition, "seconds": seconds})
        self.condition = condition

    def _send(self, command: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            reply: dict[str, Any] = json.loads(self._process.stdout.readline())
            return reply


@contextmanager
def proxy(target: tuple[str, int] | Path) -> Iterator[FaultProxy]:
    """Run a proxy while the block lasts.

    Args:
        target: host and port of the server, or the path of its Unix socket.
    """
    from app.server.parent_death import end_with_parent

    words = [str(target)] if isinstance(target, Path) else [target[0], str(target[1])]
    process = subprocess.Popen(
        [sys.executable, __file__, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=end_with_parent(signal.SIGKILL),  # noqa: PLW1509 - calls nothing that takes a lock
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield FaultProxy(int(process.stdout.readline()), process)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


class _Server:
    """The proxy's side of the commands.

    Args:
        target: host and port, or the path of a Unix socket.
    """

    def __init__(self, target: tuple[str, int] | str) -> None:
        self._target = target
        self._port = 0
        self._listener: asyncio.Server | None = None
        self._condition: Condition = "healthy"
        self._seconds = 0.0
        self._transferring = asyncio.Event()
        self._transferring.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._clients = 0
        self._accepted = 0

    async def run(self) -> None:
        """Listen, print the port, and obey commands until standard input ends."""
        await self._listen()
        _reply(self._port)
        commands = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        while line := await commands.readline():
            await self._obey(json.loads(line))
            _reply({"connections": self._clients, "accepted": self._accepted})

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self._port, backlog=512)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def _obey(self, command: dict[str, Any]) -> None:
        if "condition" in command:
            self._condition, self._seconds = command["condition"], command["seconds"]
            if self._condition == "mute":
                self._transferring.clear()
            else:
                self._transferring.set()
            if self._condition == "refusing" and self._listener is not None:
                self._listener.close()
                self._listener = None
            elif self._condition != "refusing" and self._listener is None:
                await self._listen()
        if command.get("reset") or command.get("condition") == "refusing":
            for writer in list(self._writers):
                _reset(writer)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._condition == "refusing":  # accepted by the kernel before the listener was closed
            _reset(writer)
            return
        self._clients += 1
        self._accepted += 1
        self._writers.add(writer)
        server: asyncio.StreamWriter | None = None
        try:
            await self._transferring.wait()
            if isinstance(self._target, str):
                answers, server = await asyncio.open_unix_connection(self._target)
            else:
                answers, server = await asyncio.open_connection(*self._target)
            self._writers.add(server)
            await asyncio.gather(
                self._transfer(reader, server, requests=True), self._transfer(answers, writer, requests=False)
            )
        except OSError:
            _reset(writer)
        finally:
            self._clients -= 1
            for end in filter(None, (writer, server)):
                self._writers.discard(end)
                end.transport.abort()

    async def _transfer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, requests: bool
    ) -> None:
        """Transfer one direction. Data that is delayed keeps its order, and does not add up its delays."""
        on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_ON_THE_WAY)
        now = asyncio.get_running_loop().time

        async def receive() -> None:
            while True:
                data = await reader.read(CHUNK_BYTES)
                delay = self._seconds if requests and self._condition == "delayed" else 0.0
                await on_the_way.put((now() + delay, data))
                if not data:
                    return

        receiving = asyncio.create_task(receive())
        try:
            while True:
                arriving = asyncio.create_task(on_the_way.get())
                await asyncio.wait({arriving, receiving}, return_when=asyncio.FIRST_COMPLETED)
                if not arriving.done() and receiving.done() and receiving.exception() is not None:
                    arriving.cancel()
                    receiving.result()
                due, data = await arriving
                if (wait := due - now()) > 0:
                    await asyncio.sleep(wait)
                await self._transferring.wait()
                if not data:
                    with suppress(OSError):
                        writer.write_eof()
                    return
                writer.write(data)
                await writer.drain()
        finally:
            receiving.cancel()


def _reply(reply: Any) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection so that the other end receives a reset."""
    connection: socket.socket | None = writer.get_extra_info("socket")
    if connection is not None:
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


if __name__ == "__main__":
    words = sys.argv[1:]
    asyncio.run(_Server(words[0] if len(words) == 1 else (words[0], int(words[1]))).run())
