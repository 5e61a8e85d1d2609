"""One connection: pipelined requests, trailers, and the limits of clients that send nothing or too much."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from app.server.protocol import ConnectionLimits, HttpProtocol
from app.settings import Settings

SETTINGS = Settings(keep_alive_seconds=75)


class Transport(asyncio.Transport):
    """A transport whose client reads at once."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        """Keep the bytes."""
        self.written += data

    def is_closing(self) -> bool:
        """Whether the connection is closed."""
        return self.closed

    def close(self) -> None:
        """Close the connection."""
        self.closed = True

    def get_write_buffer_size(self) -> int:
        """Return zero."""
        return 0

    def pause_reading(self) -> None:
        """Do nothing."""

    def resume_reading(self) -> None:
        """Do nothing."""


class Connection:
    """A connection to an application that returns the path, the headers and the body of a request."""

    def __init__(self) -> None:
        self.transport = Transport()
        self.limits = ConnectionLimits(SETTINGS, 10)
        config = uvicorn.Config(self._respond, ws="none", log_config=None, access_log=False, lifespan="off")
        self.protocol = HttpProtocol(
            config, ServerState(), {}, asyncio.get_running_loop(), limits=self.limits
        )
        self.protocol.connection_made(self.transport)

    @staticmethod
    async def _respond(scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            more = message["more_body"]
        names = b",".join(name for name, _ in scope["headers"])
        content = b"<%b %b %b>" % (scope["path"].encode(), names, body)
        headers = [(b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def receive(self, data: bytes) -> None:
        """Receive bytes of the client, and let the application run."""
        self.protocol.data_received(data)
        for _ in range(20):
            await asyncio.sleep(0)

    @property
    def contents(self) -> list[bytes]:
        """The contents of the responses."""
        return re.findall(rb"<(.*?)>", self.transport.written)

    @property
    def status(self) -> int:
        """The status of the first response; 0 if there is none."""
        return int(self.transport.written[9:12] or 0)


def on_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an asynchronous test."""
    return lambda: asyncio.run(test())  # type: ignore[arg-type]


@on_loop
async def test_pipelined_requests_get_their_responses_in_order() -> None:
    connection = Connection()
    await connection.receive(b"".join(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % n for n in range(5)))
    assert connection.contents == [b"/%d host " % n for n in range(5)]
    assert not connection.transport.closed


@on_loop
async def test_the_body_of_a_request_that_asks_for_http_2_is_read() -> None:
    for name in (b"Upgrade", b"upgrade", b"UPGRADE"):
        connection = Connection()
        head = (
            b"POST / HTTP/1.1\r\nConnection: %b, HTTP2-Settings\r\nContent-Length: 16\r\nHost: h\r\n"
            b"HTTP2-Settings: AAEAAEAA\r\n%b: h2c\r\n\r\n" % (name, name)
        )
        for part in (head + b"\r\nUpgrade: body!", head, b"\r\nUpgrade: body!"):
            await connection.receive(part)
        read = b"/ connection,content-length,host,http2-settings,ignored \r\nUpgrade: body!"
        assert connection.transport.written.count(read) == 2
        assert not connection.transport.closed


@on_loop
async def test_a_body_that_the_parser_would_skip_is_refused() -> None:
    """The parser skips the body of a request that asks for HTTP/2 in a head of several pieces."""
    for header in (b"Content-Length: 5", b"Transfer-Encoding: chunked"):
        connection = Connection()
        await connection.receive(b"POST / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpg")
        await connection.receive(b"rade: h2c\r\n%b\r\n\r\n" % header)
        assert connection.contents == []
        assert connection.transport.written.startswith(b"HTTP/1.1 400 ")
        assert b"send it without the header Upgrade" in connection.transport.written
        assert connection.transport.closed
    connection = Connection()
    await connection.receive(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpg")
    await connection.receive(b"rade: h2c\r\n\r\n")
    assert connection.contents == [b"/ host,connection,upgrade "]  # it has no body to lose


@on_loop
async def test_trailers_are_ignored() -> None:
    connection = Connection()
    await connection.receive(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
    await connection.receive(b"0\r\nX-Trailer: 1\r\nContent-Type: evil\r\n\r\n")
    assert connection.contents == [b"/ host,transfer-encoding abc"]
    await connection.receive(b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
    assert connection.contents[1:] == [b"/next host "]


@on_loop
async def test_a_connection_without_a_request_is_closed_after_its_time() -> None:
    connection = Connection()
    await connection.receive(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert connection.protocol in connection.limits.waiting
    connection.protocol.check_limits(74)
    assert not connection.transport.closed
    await connection.receive(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")  # the time begins again
    connection.protocol.check_limits(74)
    assert not connection.transport.closed
    connection.protocol.check_limits(2)
    assert connection.transport.closed


@on_loop
async def test_half_a_head_times_out() -> None:
    connection = Connection()
    for byte in b"GET / HT":
        await connection.receive(bytes([byte]))
        connection.protocol.check_limits(2)
    assert not connection.transport.closed
    connection.protocol.check_limits(5)
    assert (connection.status, connection.transport.closed) == (408, True)


@on_loop
async def test_a_body_that_stops_times_out() -> None:
    connection = Connection()
    await connection.receive(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc")
    connection.protocol.check_limits(29)
    assert not connection.transport.closed
    connection.protocol.check_limits(2)
    assert (connection.status, connection.transport.closed) == (408, True)


@pytest.mark.parametrize("size", [1000, 48_000])
def test_an_endless_head_is_rejected(size: int) -> None:
    async def run() -> None:
        connection = Connection()
        head = b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: " + b"x" * 96_000
        for piece in [head[i : i + size] for i in range(0, len(head), size)]:
            if not connection.transport.closed:
                await connection.receive(piece)
        assert (connection.status, connection.transport.closed) == (431, True)

    asyncio.run(run())


@on_loop
async def test_a_response_that_closes_the_connection_ends_it() -> None:
    connection = Connection()
    await connection.receive(b"GET / HTTP/1.0\r\n\r\n")
    assert b"connection: close\r\n" in connection.transport.written
    assert connection.transport.closed
