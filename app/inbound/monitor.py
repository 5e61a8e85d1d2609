"""Metrics and health of a command for mail servers: ``/metrics`` and ``/health`` at an address of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Literal
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, make_wsgi_app
from typing_extensions import override

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

OUTCOMES = ("handled", "refused", "not_routed", "not_delivered", "failed")
"""Outcomes of a message. Only those that are handled or refused are not tried again."""

Part = Literal["service", "next_hop", "mailbox", "messages"]
"""What can fail."""


class Monitor:
    """Counts the messages of a process, and knows whether it works. Each process has one."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._messages = Counter(
            "covey_mail_messages", "Messages by outcome.", ["outcome"], registry=self._registry
        )
        self._seconds = Histogram(
            "covey_mail_message_seconds",
            "Time from the arrival of a message to its outcome.",
            registry=self._registry,
            buckets=(0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300),
        )
        self._healthy = Gauge(
            "covey_mail_healthy", "1 if messages can be handled, else 0.", registry=self._registry
        )
        for outcome in OUTCOMES:
            self._messages.labels(outcome)
        self._reasons: dict[Part, str] = {}
        self._healthy.set(1)

    def count(self, outcome: str, seconds: float) -> None:
        """Count a message.

        Args:
            outcome: one of ``OUTCOMES``.
            seconds: how long it took.
        """
        self._messages.labels(outcome).inc()
        self._seconds.observe(seconds)

    def fail(self, part: Part, reason: object) -> None:
        """Report that messages cannot be handled now."""
        self._reasons[part] = str(reason)
        self._healthy.set(0)

    def recover(self, part: Part) -> None:
        """Report that a part does not prevent messages from being handled."""
        self._reasons.pop(part, None)
        self._healthy.set(not self._reasons)

    @contextmanager
    def serve(self, address: str | None) -> Iterator[None]:
        """Serve metrics and health while the block runs.

        Args:
            address: ``HOST:PORT``, or ``[IPv6]:PORT``; None: nothing is served.

        Raises:
            ValueError: the address is malformed, or not available.
        """
        if address is None:
            yield
            return
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(f"{address!r} is not an address; use HOST:PORT")
        try:
            server = make_server(host.strip("[]"), int(port), self.app(), handler_class=_SilentHandler)
        except (OSError, OverflowError) as error:
            raise ValueError(f"cannot listen on {address}: {error}") from error
        with server:
            thread = Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                yield
            finally:
                server.shutdown()
                thread.join()

    def app(self) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
        """Return the application that responds to requests."""
        metrics = make_wsgi_app(self._registry)

        def respond(environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
            if environment["PATH_INFO"] == "/metrics":
                content: Iterable[bytes] = metrics(environment, start)
                return content
            if environment["PATH_INFO"] != "/health":
                start("404 Not Found", [("Content-Type", "text/plain")])
                return [b"/metrics or /health\n"]
            reasons = dict(self._reasons)
            start("503 Service Unavailable" if reasons else "200 OK", [("Content-Type", "application/json")])
            body = {"status": "unavailable" if reasons else "ok", "reasons": reasons}
            return [json.dumps(body).encode() + b"\n"]

        return respond


class _SilentHandler(WSGIRequestHandler):
    timeout = 10
    """Seconds after which a connection without a request is closed."""

    @override
    def log_message(self, format: str, *args: object) -> None:
        pass
