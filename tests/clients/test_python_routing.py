"""``Router.route`` of the Python client and ``covey route`` agree on every response."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from covey_client import AsyncRouter, NotRouted, Router

from app.inbound.service_client import HEADER, NotRoutedError, RouterClient

MESSAGE = b"Subject: parcel\n\nWhere is it?"

DECISION = {
    "decision_id": "dec_1",
    "router": "frontdesk",
    "model": "helpdesk",
    "version": 1,
    "disposition": "routed",
    "departments": [{"label": "shipping", "destination": "s@example.org", "score": 1.5}],
    "destinations": ["s@example.org"],
    "ranking": [],
    "message": {"automated": False, "defects": [], "truncated": False},
}


def problem(status: int, code: str = "c") -> tuple[int, bytes]:
    fields = {"type": "t", "title": "t", "status": status, "detail": "why", "code": code, "request_id": "r"}
    return status, json.dumps(fields).encode()


RESPONSES: dict[str, tuple[int, bytes]] = {
    "decision": (200, json.dumps(DECISION).encode()),
    "breaks-once": (200, json.dumps(DECISION).encode()),
    "no-header": (200, json.dumps(DECISION).encode()),
    "breaks": (200, b""),
    "cut": (200, json.dumps(DECISION).encode()),
    "created": (201, json.dumps(DECISION).encode()),
    "html": (200, b"<html>Welcome</html>"),
    "empty": (200, b""),
    "list": (200, b"[]"),
    "other": (200, b'{"status": "ok"}'),
    "redirect": (302, b""),
    **{f"problem-{status}": problem(status) for status in (400, 401, 403, 404, 409, 413, 422, 429, 500, 503)},
    "not-a-message": problem(400, "not_a_message"),
    "gateway": (502, b"<html>Bad Gateway</html>"),
}


class Handler(BaseHTTPRequestHandler):
    """Answers by the name of the router."""

    protocol_version = "HTTP/1.1"
    requests: ClassVar[Counter[str]] = Counter()

    def do_POST(self) -> None:
        name = self.path.split("/")[3]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.headers["Content-Type"] == "message/rfc822"
        self.requests[name] += 1
        if name == "no-header" and self.requests[name] == 1:
            name = "not-a-message"
            assert body == MESSAGE
        else:
            assert body == (HEADER if name == "no-header" else b"") + MESSAGE
        if name == "breaks" or (name == "breaks-once" and self.requests[name] == 1):
            self.close_connection = True
            return
        status, content = RESPONSES[name]
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:9/")
        if status in (429, 503):
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(content) + (5 if name == "cut" else 0)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = True

    def log_message(self, *args: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def by_command(name: str, url: str) -> list[str] | None:
    try:
        client = RouterClient(url, name, None)
        return list(client.route(MESSAGE).destinations)
    except NotRoutedError:
        return None


def by_router(name: str, url: str) -> list[str] | None:
    try:
        with Router(name, url) as router:
            destinations: list[str] = router.route(MESSAGE).destinations
            return destinations
    except NotRouted:
        return None


def by_async_router(name: str, url: str) -> list[str] | None:
    async def route() -> list[str] | None:
        async with AsyncRouter(name, url) as router:
            destinations: list[str] = (await router.route(MESSAGE)).destinations
            return destinations

    try:
        return asyncio.run(route())
    except NotRouted:
        return None


@pytest.mark.parametrize("name", sorted(RESPONSES.keys() - {"not-a-message"}))
def test_router_and_covey_route_do_the_same(url: str, name: str) -> None:
    found = []
    for route in (by_command, by_router, by_async_router):
        Handler.requests.clear()
        found.append((route(name, url), Handler.requests[name]))
    assert found[1:] == found[:1] * 2
    destinations, n_requests = found[0]
    assert (destinations is not None) == (name in ("decision", "breaks-once", "no-header"))
    assert n_requests == (2 if name in ("breaks-once", "breaks", "cut", "no-header") else 1)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://no host", "nonsense", "ftp://example.org"])
def test_no_service_and_a_wrong_address_are_the_same_error(url: str) -> None:
    for route in (by_router, by_async_router):
        assert route("frontdesk", url) is None


def test_anything_that_is_wrong_is_the_same_error(url: str) -> None:
    with Router("decision", url) as router, pytest.raises(NotRouted):
        router.route("text")  # type: ignore[arg-type,unused-ignore]


def test_the_error_has_the_status_for_mail_servers_and_the_reason(url: str) -> None:
    with Router("problem-404", url) as router, pytest.raises(NotRouted, match="404 c: why") as raised:
        router.route(MESSAGE)
    assert raised.value.exit_status == 75


def test_a_router_can_be_used_by_a_program_with_a_running_event_loop(url: str) -> None:
    async def main() -> list[str] | None:
        return by_router("decision", url)

    assert asyncio.run(main()) == ["s@example.org"]
