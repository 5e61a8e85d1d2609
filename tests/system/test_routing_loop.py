"""The commands of docs/routing.md, from the first model to the next one, with a real mail server."""

from __future__ import annotations

import email
import json
import shutil
from pathlib import Path

import page_snippets
import postfix
import production
import pytest
from mail_recipes import covey_smtp, smtp_filter
from page_snippets import ROOT, SERVICE
from required import missing
from stack import Stack

pytestmark = pytest.mark.system

PAGE = ROOT / "docs" / "routing.md"
MAIL_SERVER = "127.0.0.1:25"


def test_corrections_of_routed_mail_make_the_next_version_better(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        missing("curl is not installed (on Debian: the package curl)")
    port, next_port = production.free_port(), production.free_port()
    content_filter, services = smtp_filter(port, next_port)
    stack = Stack(tmp_path / "data").start()
    try:
        with (
            covey_smtp(stack.url, "--listen", f"127.0.0.1:{port}", "--next-hop", f"127.0.0.1:{next_port}"),
            postfix.server(["office"], master=services, content_filter=content_filter) as mail_server,
        ):
            addresses = {SERVICE: stack.url, MAIL_SERVER: f"127.0.0.1:{mail_server.port}"}
            page_snippets.run(PAGE, tmp_path, addresses)
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
        assert promotion["comparison"]["examples"] > 106, "the random sample joins the test part"
        history = stack.call("GET", "/v1/models/helpdesk/aliases/live/history", 200)["items"]
        assert [item["to_version"] for item in history] == [1, 2, 1], "promoted, promoted, rolled back"
        page = (tmp_path / "report.html").read_text()
        assert page.startswith("<!doctype html>")
    finally:
        stack.stop()
