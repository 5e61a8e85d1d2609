"""``covey route`` as a mail server runs it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import fork_server
import pytest
from decision_service import DECISION, FIELDS, DecisionService, decision_service

from app.inbound.service_client import NotRoutedError, RouterClient

MESSAGE = b"From: ann@example.com\nSubject: Invoice\nX-Covey-Departments: forged\n\nMy invoice is wrong.\n"


@pytest.fixture
def service() -> Iterator[DecisionService]:
    with decision_service() as server:
        yield server


def run(*words: str, message: bytes = MESSAGE) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVEY_")}
    return fork_server.run(["route", *words], environment, message)


def test_the_decision_is_written_as_json(service: DecisionService, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("cov_secret\n")
    result = run("--router", "front/desk", "--url", service.url, "--key-file", str(tmp_path / "key"))
    assert (result.returncode, json.loads(result.stdout)) == (0, DECISION)
    assert service.received == [("/v1/routers/front%2Fdesk/messages", "Bearer cov_secret", MESSAGE)]


def test_the_decision_is_written_as_fields(service: DecisionService) -> None:
    result = run("--router", "frontdesk", "--url", service.url, "--headers")
    assert (result.returncode, result.stdout) == (0, FIELDS)


def test_the_message_gets_the_fields_of_the_decision(service: DecisionService) -> None:
    result = run("--router", "frontdesk", "--url", service.url, "--add-headers")
    expected = FIELDS + MESSAGE.replace(b"X-Covey-Departments: forged\n", b"")
    assert (result.returncode, result.stdout) == (0, expected)


def test_a_command_gets_the_message_and_its_destinations(service: DecisionService, tmp_path: Path) -> None:
    script = 'cat > "$1"; shift; printf "%s\\n" "$@" >> "$0"; exit 3'
    words = ["sh", "-c", script, str(tmp_path / "words"), str(tmp_path / "message"), "%destinations"]
    result = run("--router", "frontdesk", "--url", service.url, "--add-headers", "--", *words)
    assert (result.returncode, result.stdout) == (3, b"")
    assert (tmp_path / "message").read_bytes().startswith(FIELDS)
    assert (tmp_path / "words").read_text() == "billing@example.org\narchive@example.org\n"


def test_a_command_does_not_run_without_a_decision(service: DecisionService, tmp_path: Path) -> None:
    service.status = 503
    result = run("--router", "frontdesk", "--url", service.url, "--", "touch", str(tmp_path / "ran"))
    assert (result.returncode, list(tmp_path.iterdir())) == (os.EX_TEMPFAIL, [])


@pytest.mark.parametrize("command", [["/does/not/exist"], ["sh", "-c", "kill -9 $$"]])
def test_a_command_that_does_not_end_by_itself_means_try_again(
    service: DecisionService, command: list[str]
) -> None:
    assert run("--router", "frontdesk", "--url", service.url, "--", *command).returncode == os.EX_TEMPFAIL


@pytest.mark.parametrize("status", [301, 400, 401, 404, 409, 413, 429, 500, 503])
def test_every_other_status_is_not_routed(service: DecisionService, status: int) -> None:
    service.status, service.body = status, b'{"detail": "not now"}'
    with (
        RouterClient(service.url, "frontdesk", None) as client,
        pytest.raises(NotRoutedError, match=f"the service returned {status}: not now"),
    ):
        client.route(MESSAGE)


def test_a_response_that_is_no_decision_means_try_again(service: DecisionService) -> None:
    service.body = b"<html>Welcome</html>"
    result = run("--router", "frontdesk", "--url", service.url)
    assert (result.returncode, result.stdout) == (os.EX_TEMPFAIL, b"")
    assert b"is not a decision" in result.stderr


def test_a_broken_connection_is_tried_once_more(service: DecisionService) -> None:
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
