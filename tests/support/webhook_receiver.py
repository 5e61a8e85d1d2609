"""A receiver of webhooks on loopback, and a worker's sender in a thread of the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from waiting import LIMIT_SECONDS

from app.context import AppContext
from app.webhooks.sender import WebhookSender


@dataclass(frozen=True)
class Received:
    """A request that a receiver got, with the names of its headers in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Notes requests, and returns what the test wants.

    Attributes:
        port: the port on loopback.
        requests: the requests so far.
        respond: returns status and headers of the response to a request. It can wait.
        body: the body of every response.
    """

    port: int = 0
    requests: list[Received] = field(default_factory=list)
    respond: Callable[[Received], tuple[int, dict[str, str]]] = lambda _: (204, {})
    body: bytes = b""

    @property
    def url(self) -> str:
        """The URL of the receiver."""
        return f"http://127.0.0.1:{self.port}/hook"


@contextmanager
def receiver(wrap: Callable[[Any], Any] = lambda socket: socket) -> Iterator[Receiver]:
    """Run a receiver until the block ends.

    Args:
        wrap: wraps the listening socket, for example for TLS.
    """
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = Received(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            state.requests.append(request)
            status, headers = state.respond(request)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(state.body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A sender may give up at any time."""

    with Server(("127.0.0.1", 0), Handler) as server:
        state.port = server.server_address[1]
        server.socket = wrap(server.socket)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join(LIMIT_SECONDS)


@contextmanager
def sender(ctx: AppContext) -> Iterator[None]:
    """Send the events of webhooks until the block ends, as a worker does."""
    stop = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(WebhookSender(ctx).run(stop.is_set)))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(LIMIT_SECONDS)
        assert not thread.is_alive()
