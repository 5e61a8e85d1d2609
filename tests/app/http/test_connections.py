"""Connections of clients that are slow, silent or malformed end, and disturb no other client."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import Response, StreamingResponse
from waiting import LIMIT_SECONDS, wait_for

from app.http import problem_handlers
from app.http.middleware import BodyBudget, RequestMiddleware
from app.http.server import Server, create_server
from app.http.web_pages import WebPageFilter
from app.settings import Settings

MIB = 1024 * 1024
SETTINGS = Settings(
    host="127.0.0.1",
    port=0,
    head_seconds=2,
    body_seconds=2,
    body_bytes_per_second=100,
    response_seconds=2,
    keep_alive_seconds=2,
    max_header_bytes=4096,
    max_connections=12,
)
GET = b"GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


def closing(request: bytes) -> bytes:
    """Return the head of a request after which the server closes the connection."""
    return request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


def make_app() -> FastAPI:
    app = FastAPI()
    problem_handlers.install(app)
    app.state.draining = False
    app.state.authenticator = SimpleNamespace(requires_keys=True)
    app.state.streams = 0
    app.add_middleware(
        RequestMiddleware,
        limit=lambda _: 4 * MIB,
        max_header_bytes=SETTINGS.max_header_bytes,
        web_pages=WebPageFilter(SETTINGS),
        budget=BodyBudget(4 * MIB),
    )

    @app.get("/ok")
    def ok() -> str:
        return "ok"

    @app.post("/size")
    async def size(request: Request) -> int:
        return len(await request.body())

    @app.post("/early")
    def early() -> str:
        return "early"

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def events() -> AsyncIterator[bytes]:
            app.state.streams += 1
            yield b": open\n\n"
            await app.state.end.wait()
            yield b"event: last\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    @app.get("/large")
    def large() -> Response:
        return Response(b"x" * (16 * MIB))

    @app.get("/broken")
    async def broken() -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield b"one"
            raise RuntimeError("in the middle")

        return StreamingResponse(parts())

    return app


class Running:
    """A server in a thread of the test."""

    def __init__(self, server: Server, app: FastAPI) -> None:
        self.server = server
        self.app = app
        self.loop: asyncio.AbstractEventLoop | None = None

    def run(self) -> None:
        async def serve() -> None:
            self.loop = asyncio.get_running_loop()
            self.app.state.end = asyncio.Event()
            await self.server.serve()

        asyncio.run(serve())

    def end_streams(self) -> None:
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.app.state.end.set)

    @property
    def n_connections(self) -> int:
        return len(self.server.server_state.connections)

    def connect(self, content: bytes = b"") -> socket.socket:
        port = self.server.servers[0].sockets[0].getsockname()[1]
        connection = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_SECONDS)
        connection.sendall(content)
        return connection

    def ask(self, content: bytes) -> bytes:
        """Send bytes, and return everything that arrives until the server closes the connection."""
        with self.connect(content) as connection:
            return read_all(connection)

    def is_healthy(self) -> bool:
        return self.ask(closing(GET)).startswith(b"HTTP/1.1 200")


def read_all(connection: socket.socket) -> bytes:
    try:
        return b"".join(iter(lambda: connection.recv(65536), b""))
    except ConnectionResetError:
        return b""


def read_until(connection: socket.socket, end: bytes) -> bytes:
    received = b""
    while end not in received:
        part = connection.recv(65536)
        assert part, received
        received += part
    return received


@contextmanager
def running(**changes: Any) -> Iterator[Running]:
    app = make_app()
    server = create_server(app, SETTINGS.model_copy(update=changes), open_files=1024)
    service = Running(server, app)
    thread = threading.Thread(target=service.run)
    thread.start()
    wait_for(lambda: server.started or None, what="the server")
    try:
        yield service
    finally:
        service.end_streams()
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running() as service:
        yield service


def problem(response: bytes, status: int, code: str) -> dict[str, Any]:
    """Check that bytes are a problem response, and return its document."""
    head, _, body = response.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), response
    assert b"application/problem+json" in head
    assert b"connection: close" in head.lower()
    document: dict[str, Any] = json.loads(body)
    assert (document["status"], document["code"]) == (status, code)
    assert document["request_id"].encode() in head
    return document


def test_silent_and_slow_clients_are_disconnected_and_others_are_served_meanwhile(service: Running) -> None:
    """All at the same time, because each takes seconds."""
    cases: dict[str, tuple[bytes, bytes]] = {
        "nothing": (b"", b""),
        "blank lines": (b"\r\n", b"408"),
        "half a head": (b"GET /ok HTTP/1.1\r\nHost: x\r\nA", b"408"),
        "a head in drops": (b"GET /ok HTTP/1.1\r\nHost: x\r\nA: ", b"408"),
        "half a body": (POST % 1000 + b"x" * 500, b"408"),
        "a body in drops": (POST % 1_000_000, b"408"),
        "half a chunk": (CHUNKED + b"5\r\nab", b"408"),
        "a body that nobody reads": ((POST % 1000).replace(b"/size", b"/early"), b"200"),
        "an idle connection": (GET, b"200"),
    }
    responses: dict[str, bytes] = {}

    def client(name: str, content: bytes) -> None:
        with service.connect(content) as connection:
            stop = threading.Event()

            def drop() -> None:
                while not stop.wait(0.1):
                    try:
                        connection.sendall(b"a")
                    except OSError:
                        return

            dropper = threading.Thread(target=drop if "drops" in name else stop.wait)
            dropper.start()
            responses[name] = read_all(connection)
            stop.set()
            dropper.join()

    threads = [threading.Thread(target=client, args=(name, content)) for name, (content, _) in cases.items()]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert service.is_healthy()
        time.sleep(0.2)
    for name, (_, status) in cases.items():
        expected = b"HTTP/1.1 " + status if status else b""
        assert responses[name].startswith(expected), (name, responses[name])
        assert bool(responses[name]) == bool(expected), (name, responses[name])
    problem(responses["half a head"], 408, "request_timeout")
    problem(responses["half a body"], 408, "request_timeout")


def test_clients_that_make_progress_keep_their_connection_longer_than_every_limit(service: Running) -> None:
    upload = service.connect(CHUNKED)
    stream = service.connect(GET.replace(b"/ok", b"/stream"))
    read_until(stream, b": open")
    reader = service.connect(
        GET.replace(b"/ok", b"/large").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    )
    received = sent = 0
    ends = time.monotonic() + 7
    while time.monotonic() < ends:
        upload.sendall(b"100\r\n" + b"x" * 256 + b"\r\n")
        sent += 256
        received += len(reader.recv(MIB))
        time.sleep(0.2)
    upload.sendall(b"0\r\n\r\n")
    assert read_until(upload, b"\r\n\r\n%d" % sent).startswith(b"HTTP/1.1 200")
    assert received + len(read_all(reader)) > 16 * MIB
    service.end_streams()
    read_until(stream, b"event: last")
    for connection in (upload, stream, reader):
        connection.close()


def test_a_client_that_does_not_read_its_response_is_disconnected() -> None:
    with running() as service, service.connect(GET.replace(b"/ok", b"/large")):
        wait_for(lambda: service.n_connections == 1 or None, what="the connection")
        wait_for(lambda: service.n_connections == 0 or None, what="the end of the connection")
        assert service.is_healthy()


def test_too_many_connections_replace_the_ones_that_wait_longest() -> None:
    with running(head_seconds=1000, keep_alive_seconds=1000, max_connections=5) as service:
        silent = [service.connect() for _ in range(3)]
        idle = service.connect(GET)
        read_until(idle, b'"ok"')
        more = []
        for _ in range(4):
            more.append(service.connect())
            assert service.is_healthy()
        for connection in (*silent, idle):
            assert read_all(connection) == b""
        for connection in (*silent, idle, *more):
            connection.close()


def test_a_connection_is_refused_if_all_others_are_busy() -> None:
    with running(max_connections=3) as service:
        streams = [service.connect(GET.replace(b"/ok", b"/stream")) for _ in range(3)]
        for stream in streams:
            read_until(stream, b": open")
        with service.connect() as refused:
            response = read_all(refused)
        problem(response, 503, "not_ready")
        assert b"retry-after: 1" in response
        service.end_streams()
        for stream in streams:
            read_until(stream, b"event: last")
            stream.close()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
        pytest.param(b"GET /ok HTTP/2.0\r\nHost: x\r\n\r\n", id="version 2.0"),
        pytest.param(b"GET /ok HTTP/1.7\r\nHost: x\r\n\r\n", id="version 1.7"),
        pytest.param(b"GET /ok\r\n\r\n", id="version 0.9"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300), id="TLS"),
        pytest.param(b"hello\r\n\r\n", id="no request line"),
        pytest.param(b"GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", id="a control character in the path"),
        pytest.param(b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", id="a path that is not ASCII"),
        pytest.param(b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", id="CONNECT"),
        pytest.param(b"GET /ok HTTP/1.1\r\nBad name: x\r\n\r\n", id="a bad name of a header"),
        pytest.param(b"GET /ok HTTP/1.1\r\nA: \x00\r\n\r\n", id="NUL in a header"),
        pytest.param(b"GET /ok HTTP/1.1\r\n folded: x\r\n\r\n", id="a folded header"),
        pytest.param(b"GET /ok HTTP/1.1\r\n\r\n", id="no host"),
        pytest.param(CHUNKED + b"zz\r\n", id="a bad chunk"),
        pytest.param(b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", id="a negative length"),
        pytest.param(CHUNKED.replace(b"Transfer", b"Content-Length: 3\r\nTransfer"), id="two lengths"),
    ],
)
def test_malformed_http_gets_a_problem_document(service: Running, content: bytes) -> None:
    document = problem(service.ask(content), 400, "malformed_request")
    assert "zz" not in document["detail"]


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        pytest.param(b"GET /" + b"a" * 400_000, 431, "headers_too_large", id="an endless path"),
        pytest.param(GET[:-2] + b"A: " + b"a" * 400_000, 431, "headers_too_large", id="an endless header"),
        pytest.param(GET[:-2] + b"A: b\r\n" * 60_000, 431, "headers_too_large", id="endless headers"),
        pytest.param(GET.replace(b"/ok", b"/" + b"a" * 5000), 431, "headers_too_large", id="a long path"),
        pytest.param(CHUNKED + b"1;" + b"a" * 400_000, 400, "malformed_request", id="a long chunk extension"),
        pytest.param(
            CHUNKED + b"1\r\na\r\n0\r\nA: " + b"a" * 400_000,
            400,
            "malformed_request",
            id="an endless trailer",
        ),
    ],
)
def test_the_head_and_the_framing_of_a_body_are_bounded(
    service: Running, content: bytes, status: int, code: str
) -> None:
    with service.connect() as connection:
        received = b""
        for start in range(0, len(content), 2048):
            try:
                connection.sendall(content[start : start + 2048])
                time.sleep(0.001)
            except OSError:
                break
        received = read_all(connection)
    if received:  # lost if the client was still sending when the connection was closed
        problem(received, status, code)


def test_pipelined_requests_are_answered_in_order(service: Running) -> None:
    requests = POST % 3 + b"abc" + GET + CHUNKED + b"2\r\nab\r\n0\r\nTrailer: x\r\n\r\n"
    response = service.ask(requests + closing(GET.replace(b"/ok", b"/nowhere")))
    assert response.count(b"HTTP/1.1 200") == 3
    places = [response.index(part) for part in (b"\r\n\r\n3", b'"ok"', b"\r\n\r\n2", b"HTTP/1.1 404")]
    assert places == sorted(places)


def test_an_upgrade_is_ignored(service: Running) -> None:
    head = b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n"
    with service.connect(GET.replace(b"\r\n\r\n", head)) as connection:
        assert read_until(connection, b'"ok"').startswith(b"HTTP/1.1 200")


def test_a_client_that_waits_for_100_continue_gets_it(service: Running) -> None:
    head = (POST % 3).replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
    with service.connect(head) as connection:
        read_until(connection, b"100 Continue\r\n\r\n")
        connection.sendall(b"abc")
        assert read_until(connection, b"\r\n\r\n3").startswith(b"HTTP/1.1 200")


def test_a_response_that_fails_in_the_middle_is_cut_off(service: Running) -> None:
    response = service.ask(GET.replace(b"/ok", b"/broken"))
    assert response.startswith(b"HTTP/1.1 200")
    assert b"0\r\n\r\n" not in response.partition(b"\r\n\r\n")[2], "the response looks complete"
    assert service.is_healthy()


def test_bodies_in_memory_have_a_common_limit_that_small_bodies_do_not_feel() -> None:
    """The limit is 4 MiB: two unfinished bodies of 1.5 MiB fit, and another one of 3 MiB does not."""
    large = POST % (3 * MIB) + b"x" * (3 * MIB)

    with running(body_seconds=1000) as service, ExitStack() as held:
        for _ in range(2):
            held.enter_context(service.connect(POST % (2 * MIB) + b"x" * (3 * MIB // 2)))

        def send_large() -> bytes:
            with service.connect(large) as connection:
                return read_until(connection, b"\r\n\r\n") + connection.recv(MIB)

        def refused() -> bytes | None:
            """Return the refusal; None if the other bodies have not arrived yet."""
            response = send_large()
            return None if response.startswith(b"HTTP/1.1 200") else response

        response = wait_for(refused, what="the refusal")
        assert response.startswith(b"HTTP/1.1 503"), response
        assert b"request bodies" in response
        assert b"retry-after: 2" in response
        with service.connect(POST % 60_000 + b"x" * 60_000) as small:
            assert read_until(small, b"\r\n\r\n60000").startswith(b"HTTP/1.1 200")
        held.close()
        wait_for(lambda: send_large().startswith(b"HTTP/1.1 200") or None, what="the release")
