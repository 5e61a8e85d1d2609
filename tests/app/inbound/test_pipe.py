"""``covey route`` as a mail server runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from waiting import LIMIT_SECONDS

from app.inbound.service_client import NotRoutedError, RouterClient
from app.parent_death import end_with_parent

MESSAGE = b"From: ann@example.com\nSubject: Invoice\nX-Covey-Departments: forged\n\nMy invoice is wrong.\n"
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


class Service(ThreadingHTTPServer):
    """Answers every message with one response, and keeps what it received."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.body = 200, json.dumps(DECISION).encode()
        self.broken_connections = 0
        self.received: list[tuple[str, str | None, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Service)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, self.headers["Authorization"], body))
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


@pytest.fixture
def service() -> Iterator[Service]:
    server = Service()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def run(*words: str, message: bytes = MESSAGE) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "app", "route", *words],
        input=message,
        env={name: value for name, value in os.environ.items() if not name.startswith("COVEY_")},
        capture_output=True,
        timeout=LIMIT_SECONDS,
        check=False,
        preexec_fn=end_with_parent(),
    )


def test_the_decision_is_written_as_json(service: Service, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("cov_secret\n")
    result = run("--router", "front/desk", "--url", service.url, "--key-file", str(tmp_path / "key"))
    assert (result.returncode, json.loads(result.stdout)) == (0, DECISION)
    assert service.received == [("/v1/routers/front%2Fdesk/messages", "Bearer cov_secret", MESSAGE)]


def test_the_decision_is_written_as_fields(service: Service) -> None:
    result = run("--router", "frontdesk", "--url", service.url, "--headers")
    assert (result.returncode, result.stdout) == (0, FIELDS)


def test_the_message_gets_the_fields_of_the_decision(service: Service) -> None:
    result = run("--router", "frontdesk", "--url", service.url, "--add-headers")
    expected = FIELDS + MESSAGE.replace(b"X-Covey-Departments: forged\n", b"")
    assert (result.returncode, result.stdout) == (0, expected)


def test_a_command_gets_the_message_and_its_destinations(service: Service, tmp_path: Path) -> None:
    script = 'cat > "$1"; shift; printf "%s\\n" "$@" >> "$0"; exit 3'
    words = ["sh", "-c", script, str(tmp_path / "words"), str(tmp_path / "message"), "%destinations"]
    result = run("--router", "frontdesk", "--url", service.url, "--add-headers", "--", *words)
    assert (result.returncode, result.stdout) == (3, b"")
    assert (tmp_path / "message").read_bytes().startswith(FIELDS)
    assert (tmp_path / "words").read_text() == "billing@example.org\narchive@example.org\n"


def test_a_command_does_not_run_without_a_decision(service: Service, tmp_path: Path) -> None:
    service.status = 503
    result = run("--router", "frontdesk", "--url", service.url, "--", "touch", str(tmp_path / "ran"))
    assert (result.returncode, list(tmp_path.iterdir())) == (os.EX_TEMPFAIL, [])


@pytest.mark.parametrize("command", [["/does/not/exist"], ["sh", "-c", "kill -9 $$"]])
def test_a_command_that_does_not_end_by_itself_means_try_again(service: Service, command: list[str]) -> None:
    assert run("--router", "frontdesk", "--url", service.url, "--", *command).returncode == os.EX_TEMPFAIL


@pytest.mark.parametrize("status", [301, 400, 401, 404, 409, 413, 429, 500, 503])
def test_every_other_status_is_not_routed(service: Service, status: int) -> None:
    service.status, service.body = status, b'{"detail": "not now"}'
    with (
        RouterClient(service.url, "frontdesk", None) as client,
        pytest.raises(NotRoutedError, match=f"the service returned {status}: not now"),
    ):
        client.route(MESSAGE)


def test_a_response_that_is_no_decision_means_try_again(service: Service) -> None:
    service.body = b"<html>Welcome</html>"
    result = run("--router", "frontdesk", "--url", service.url)
    assert (result.returncode, result.stdout) == (os.EX_TEMPFAIL, b"")
    assert b"is not a decision" in result.stderr


def test_a_broken_connection_is_tried_once_more(service: Service) -> None:
    with RouterClient(service.url, "frontdesk", None) as client:
        service.broken_connections = 1
        assert client.route(MESSAGE).decision_id == "dec_1"
        service.broken_connections = 2
        with pytest.raises(NotRoutedError, match="not available"):
            client.route(MESSAGE)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--ruter", "frontdesk"],
        ["--router", "frontdesk", "--headers", "--add-headers"],
        ["--router", "frontdesk", "--key-file", "/does/not/exist"],
        ["--router", "frontdesk", "--url", "http://127.0.0.1:1", "--key", "schl\u00fcssel"],
    ],
)
def test_a_wrong_option_means_try_again(words: list[str]) -> None:
    result = run(*words)
    assert (result.returncode, result.stdout) == (os.EX_TEMPFAIL, b"")
    assert result.stderr
