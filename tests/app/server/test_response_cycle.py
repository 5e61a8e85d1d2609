"""The head of a response is written as uvicorn writes it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from app.server import response_cycle
from app.server.response_cycle import ResponseCycle


class Transport(asyncio.Transport):
    """Keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        """Keep the bytes."""
        self.written += data

    def close(self) -> None:
        """Note that the connection is closed."""
        self.closed = True


def respond(
    kind: type[RequestResponseCycle],
    status: int,
    headers: list[tuple[bytes, bytes]],
    body: bytes,
    *,
    method: str = "GET",
    keep_alive: bool = True,
) -> tuple[bytes, bool] | str:
    """Send a response; return its bytes and whether the connection is closed, or the error."""

    async def run() -> tuple[bytes, bool]:
        transport = Transport()
        cycle = kind(
            scope={"type": "http", "method": method},  # type: ignore[typeddict-item]
            transport=transport,
            flow=FlowControl(transport),
            logger=logging.getLogger(),
            access_logger=logging.getLogger(),
            access_log=False,
            default_headers=[(b"date", b"today")],
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=keep_alive,
            on_response=lambda: None,
        )
        await cycle.send({"type": "http.response.start", "status": status, "headers": headers})
        half = len(body) // 2
        await cycle.send({"type": "http.response.body", "body": body[:half], "more_body": True})
        await cycle.send({"type": "http.response.body", "body": body[half:]})
        return transport.written, transport.closed

    try:
        return asyncio.run(run())
    except RuntimeError as error:
        return str(error)


JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("keep_alive", [True, False])
@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (200, [*JSON, (b"content-length", b"4")], b"true"),
        (200, [*JSON, (b"Content-Length", b"4"), (b"X-Request-ID", b"req_1")], b"true"),
        (200, JSON, b"true"),
        (200, [*JSON, (b"transfer-encoding", b"Chunked")], b"true"),
        (200, [*JSON, (b"connection", b"Keep-Alive, Close"), (b"content-length", b"4")], b"true"),
        (200, [*JSON, (b"connection", b"upgrade"), (b"content-length", b"4")], b"true"),
        (204, [], b""),
        (304, [(b"etag", b'"1"')], b""),
        (503, [*JSON, (b"content-length", b"9")], b"true"),
        (503, [*JSON, (b"content-length", b"3")], b"true"),
        (200, [(b"content-type", b"text/html\r\nX-Evil: 1")], b""),
        (200, [(b"x-evil\r\n", b"1")], b""),
        (200, [(b"location", b"/\x00")], b""),
    ],
)
def test_responses_are_the_same_bytes(
    method: str, keep_alive: bool, status: int, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    for _ in range(2):  # the lines of some headers are remembered
        given = (status, headers, body)
        expected = respond(RequestResponseCycle, *given, method=method, keep_alive=keep_alive)
        assert respond(ResponseCycle, *given, method=method, keep_alive=keep_alive) == expected


def test_only_a_limited_number_of_lines_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_cycle, "_MAX_LINES", 3)
    for second in range(9):
        date = b"%d" % second
        written = respond(ResponseCycle, 200, [*JSON, (b"date", date), (b"content-length", b"0")], b"")
        assert b"date: %b\r\n" % date in written[0]
        assert len(response_cycle._lines) <= 3
