"""The commands of docs/routing.md, from the first model to the next one, with a real mail server."""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import postfix
import production
import pytest
from mail_recipes import covey_smtp, smtp_filter
from required import missing
from stack import Stack
from waiting import LIMIT_SECONDS

from app.parent_death import end_with_parent

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
BASE, SERVER = "http://127.0.0.1:8000/v1", "127.0.0.1:25"


def script(stack: Stack, mail_server: postfix.Postfix) -> str:
    """Return the commands of the page, for the servers of this test."""
    page = (ROOT / "docs" / "routing.md").read_text()
    page = re.sub(r"<!-- not run -->\n```sh\n.*?```", "", page, flags=re.DOTALL)
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL))
    assert BASE in commands
    assert SERVER in commands
    commands = commands.replace(BASE, f"{stack.url}/v1").replace(SERVER, f"127.0.0.1:{mail_server.port}")
    return f"set -eu\n{commands}"


def run(commands: str, folder: Path) -> str:
    """Run commands in a folder that looks like the project, and return their output."""
    for name in ("app", "docs"):
        (folder / name).symlink_to(ROOT / name)
    result = subprocess.run(
        ["bash", "-c", commands],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_SECONDS,
        check=False,
        preexec_fn=end_with_parent(),
    )
    assert result.returncode == 0, result.stderr[-3000:] + result.stdout[-3000:]
    return result.stdout


def test_corrections_of_routed_mail_make_the_next_version_better(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        missing("curl is not installed (on Debian: the package curl)")
    port, next_port = production.free_port(), production.free_port()
    content_filter, services = smtp_filter(port, next_port)
    stack = Stack(tmp_path / "data").start()
    try:
        with (
            covey_smtp(stack, "--listen", f"127.0.0.1:{port}", "--next-hop", f"127.0.0.1:{next_port}"),
            postfix.server(["office"], master=services, content_filter=content_filter) as mail_server,
        ):
            run(script(stack, mail_server), tmp_path)
            mail_server.wait_until_empty()
            mails = [email.message_from_bytes(mail) for mail in mail_server.delivered("office")]

        sent = [json.loads(line)["id"] for line in (tmp_path / "later.jsonl").read_text().splitlines()]
        assert len(sent) == 300
        assert sorted(str(mail["Message-ID"]) for mail in mails) == sorted(
            f"<{id_}@example.com>" for id_ in sent
        )
        assert all(mail["X-Covey-Decision"] for mail in mails)

        jobs = stack.call("GET", "/v1/training-jobs", 200)["items"]
        first, second = jobs[1], jobs[0]
        promotion = second["result"]["promotion"]
        before, after = (job["result"]["metrics"]["test"]["f1_micro"] for job in (first, second))
        assert after > before + 0.1, "the corrections help on messages that neither version has seen"
        assert promotion["promoted"], promotion
        history = stack.call("GET", "/v1/models/helpdesk/aliases/live/history", 200)["items"]
        assert [item["to_version"] for item in history] == [1, 2, 1], "promoted, promoted, rolled back"
        page = (tmp_path / "report.html").read_text()
        assert page.startswith("<!doctype html>")
    finally:
        stack.stop()
