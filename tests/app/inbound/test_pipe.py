"""``covey route`` as a mail server runs it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import fork_server
import pytest
from decision_service import DECISION, FIELDS, DecisionService, decision_service
from waiting import LIMIT_SECONDS

from app.cli import entry
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
    client = RouterClient(service.url, "frontdesk", None)
    with pytest.raises(NotRoutedError, match=f"the service returned {status}: not now"):
        client.route(MESSAGE)


def test_a_response_that_is_no_decision_means_try_again(service: DecisionService) -> None:
    service.body = b"<html>Welcome</html>"
    result = run("--router", "frontdesk", "--url", service.url)
    assert (result.returncode, result.stdout) == (os.EX_TEMPFAIL, b"")
    assert b"is not a decision" in result.stderr


def test_a_broken_connection_is_tried_once_more(service: DecisionService) -> None:
    client = RouterClient(service.url, "frontdesk", None)
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
        ["--router", "frontdesk", "--key", "cov_secret"],
        ["--router", "frontdesk", "--url", "127.0.0.1:1"],
    ],
)
def test_a_wrong_option_means_try_again(words: list[str]) -> None:
    result = run(*words)
    assert (result.returncode, result.stdout) == (os.EX_TEMPFAIL, b"")
    assert result.stderr


def test_a_key_that_is_no_key_means_try_again(tmp_path: Path) -> None:
    for content in ("", "schl\u00fcssel"):
        (tmp_path / "key").write_text(content)
        result = run("--router", "frontdesk", "--key-file", str(tmp_path / "key"))
        assert (result.returncode, b"API key" in result.stderr) == (os.EX_TEMPFAIL, True)


def test_the_service_gets_a_trace_for_each_message(service: DecisionService) -> None:
    client = RouterClient(service.url + "/covey/", "frontdesk", None)
    client.route(MESSAGE)
    client.route(MESSAGE)
    assert [path for path, _, _ in service.received] == ["/covey/v1/routers/frontdesk/messages"] * 2
    first, second = service.traces
    assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-01", str(first))
    assert first != second


@pytest.mark.parametrize("disposition", ["review", "routed"])
def test_a_message_that_needs_a_review_goes_to_people(service: DecisionService, disposition: str) -> None:
    service.body = json.dumps({**DECISION, "disposition": disposition}).encode()
    options = ["--router", "frontdesk", "--url", service.url, "--review-to", "people@example.org"]
    result = run(*options, "--headers")
    to = b"people@example.org" if disposition == "review" else b"billing@example.org, archive@example.org"
    assert result.stdout.splitlines()[-1] == b"X-Covey-Destinations: " + to
    assert b"X-Covey-Departments: billing" in result.stdout


# The process as a mail server starts it

ENTRY = Path(entry.__file__)


def start(
    folder: Path, *words: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the script of the command with packages of a folder only, beside the standard library."""
    return subprocess.run(
        [sys.executable, "-S", str(ENTRY), "route", "--router", "frontdesk", *words],
        env={"PYTHONPATH": str(folder), **(environment or {})},
        input=MESSAGE,
        capture_output=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder with the package of the command and nothing else: no package that it could require."""
    for name in ("app/__init__.py", "app/inbound/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for name in ("pipe", "http_post", "mail_headers", "routed_message", "service_client"):
        shutil.copy(ENTRY.parents[1] / "inbound" / f"{name}.py", tmp_path / "app" / "inbound")
    return tmp_path


def test_the_command_needs_the_standard_library_only(service: DecisionService, packages: Path) -> None:
    result = start(packages, "--url", service.url, "--headers")
    assert (result.returncode, result.stdout) == (0, FIELDS)


def test_the_command_imports_little_for_a_message(service: DecisionService, packages: Path) -> None:
    (packages / "sitecustomize.py").write_text(
        "import os, sys\nexit = os._exit\n"
        "os._exit = lambda status: (print(*sys.modules, file=sys.stderr, flush=True), exit(status))\n"
    )
    command = [sys.executable, str(ENTRY), "route", "--router", "a", "--add-headers", "--url", service.url]
    environment = {"PYTHONPATH": str(packages)}
    result = subprocess.run(
        command, env=environment, input=MESSAGE, capture_output=True, timeout=LIMIT_SECONDS, check=True
    )
    imported = set(result.stderr.decode().split())
    assert "app.inbound.pipe" in imported
    assert not imported & {
        "asyncio",
        "email",
        "http",
        "logging",
        "shutil",
        "ssl",
        "subprocess",
        "unicodedata",
    }
    assert not imported & {"fastapi", "httpx", "numpy", "pydantic", "structlog", "typer"}


@pytest.mark.parametrize(
    "damage",
    [
        shutil.rmtree,
        lambda app: (app / "inbound" / "pipe.py").unlink(),
        lambda app: (app / "inbound" / "mail_headers.py").write_text("def half_written("),
        lambda app: (app / "inbound" / "routed_message.py").write_bytes(b"\0"),
        lambda app: (app / "inbound" / "service_client.py").write_text(""),
        lambda app: (app / "inbound" / "pipe.py").write_text("raise MemoryError"),
        lambda app: (app / "__init__.py").write_text("raise SystemExit(0)"),
        lambda app: (app / "__init__.py").write_text(
            "import sys; sys.stderr = None; raise KeyboardInterrupt"
        ),
        lambda app: (app / "__init__.py").write_text(
            "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
        ),
        lambda app: (app.parent / "json.py").write_text("half_written("),
    ],
)
def test_whatever_happens_before_a_decision_means_try_again(
    service: DecisionService, packages: Path, damage: Callable[[Path], object]
) -> None:
    damage(packages / "app")
    result = start(packages, "--url", service.url)
    assert (result.returncode, result.stdout) == (os.EX_TEMPFAIL, b"")
    assert service.received == []


def test_a_result_that_cannot_be_written_means_try_again(service: DecisionService, packages: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, str(ENTRY), "route", "--router", "a", "--url", service.url]
        result = subprocess.run(
            command,
            env={"PYTHONPATH": str(packages)},
            input=MESSAGE,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    assert result.returncode == os.EX_TEMPFAIL


def test_the_help_is_no_failure(packages: Path) -> None:
    assert start(packages, "--help").returncode == 0
