"""Stands for the service: returns one decision for every message, or what a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DECISION = {
    "decision_id": "dec_1",
    "router": "frontdesk",
    "model": "helpdesk",
    "version": 3,
    "disposition": "routed",
    "departments": [{"label": "billing", "destination": "billing@example.org", "score": 1.5}],
    "destinations": ["billing@example.org", "archive@example.org"],
}
FIELDS = (
    b"X-Covey-Decision: routed; id=dec_1; router=frontdesk; version=helpdesk/3\n"
    b"X-Covey-Departments: billing\nX-Covey-Score: 1.5\n"
    b"X-Covey-Destinations: billing@example.org, archive@example.org\n"
)
"""The header fields of the decision."""


class DecisionService(ThreadingHTTPServer):
    """Answers every message with one response, and keeps what it received.

    Args:
        port: the port; 0 selects a free one.
    """

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.status, self.body = 200, json.dumps(DECISION).encode()
        self.broken_connections = 0
        self.received: list[tuple[str, str | None, bytes]] = []
        self.traces: list[str | None] = []

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, DecisionService)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, self.headers["Authorization"], body))
        self.server.traces.append(self.headers["traceparent"])
        if self.server.broken_connections:
            self.server.broken_connections -= 1
            self.close_connection = True
            return
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def decision_service(port: int = 0) -> Iterator[DecisionService]:
    """Run the service until the block ends."""
    server = DecisionService(port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
