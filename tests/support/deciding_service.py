"""A service of routers for tests of mail commands: it decides by the subject of a message."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class DecidingService(ThreadingHTTPServer):
    """Routes a message to the departments that its subject names, such as ``Subject: billing shipping``.

    The subjects ``review …`` and ``fallback`` give these dispositions. An equal message gets the same id.

    Attributes:
        status: status of all responses; only 200 is a decision.
        received: the messages, in their order.
        refused: messages with this subject get the status 500.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.received: list[bytes] = []
        self.refused = ""
        self._ids: dict[bytes, str] = {}

    @property
    def url(self) -> str:
        """The URL of the service."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def decide(self, message: bytes) -> dict[str, Any]:
        """Return the decision on a message."""
        words = subject(message).split()
        disposition = words[0] if words[0] in ("review", "fallback") else "routed"
        labels = [] if disposition == "fallback" else [word for word in words if word != disposition]
        return {
            "decision_id": self._ids.setdefault(message, f"dec_{len(self._ids)}"),
            "router": "frontdesk",
            "model": "helpdesk",
            "version": 1,
            "disposition": disposition,
            "departments": [
                {"label": label, "destination": f"{label}@example.org", "score": 1.0} for label in labels
            ],
            "destinations": [f"{label}@example.org" for label in labels] or ["front@example.org"],
        }


def subject(message: bytes) -> str:
    """Return the first subject of a message."""
    lines = message.decode("utf-8", "replace").splitlines()
    return next((line[9:] for line in lines if line.startswith("Subject: ")), "fallback")


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        service = self.server
        assert isinstance(service, DecidingService)
        message = self.rfile.read(int(self.headers["Content-Length"]))
        service.received.append(message)
        status = 500 if service.refused and subject(message) == service.refused else service.status
        body = json.dumps(service.decide(message) if status == 200 else {"detail": "not now"}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def deciding_service() -> Iterator[DecidingService]:
    """Run a service while the block lasts."""
    service = DecidingService()
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.shutdown()
        thread.join()
        service.server_close()
