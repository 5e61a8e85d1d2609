"""Metrics and health of a process that is no API: ``/metrics`` and ``/health`` at an address of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, disable_created_metrics, make_wsgi_app
from typing_extensions import override

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


disable_created_metrics()  # type: ignore[no-untyped-call]


@contextmanager
def serve(
    address: str | None, registry: CollectorRegistry, reasons: Callable[[], Mapping[str, str]]
) -> Iterator[None]:
    """Serve metrics and health while the block runs.

    Args:
        address: ``HOST:PORT``, or ``[IPv6]:PORT``; None: nothing is served.
        registry: the metrics.
        reasons: returns why the process does not work, by the part that fails; empty if it works.

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
        server = make_server(
            host.strip("[]"), int(port), application(registry, reasons), handler_class=_SilentHandler
        )
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


def application(registry: CollectorRegistry, reasons: Callable[[], Mapping[str, str]]) -> WSGIApplication:
    """Return the application that responds to requests; see ``serve``."""
    metrics = make_wsgi_app(registry)

    def respond(environment: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if environment["PATH_INFO"] == "/metrics":
            content: Iterable[bytes] = metrics(environment, start)
            return content
        if environment["PATH_INFO"] != "/health":
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"/metrics or /health\n"]
        found = dict(reasons())
        start("503 Service Unavailable" if found else "200 OK", [("Content-Type", "application/json")])
        body = {"status": "unavailable" if found else "ok", "reasons": found}
        return [json.dumps(body).encode() + b"\n"]

    return respond


class _SilentHandler(WSGIRequestHandler):
    timeout = 10
    """Seconds after which a connection without a request is closed."""

    @override
    def log_message(self, format: str, *args: object) -> None:
        pass
