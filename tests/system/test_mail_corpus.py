"""Any bytes can be posted as mail and are routed and listed: no message is lost."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract import problem_of
from corpora import FOLDER
from stack import Stack, departments

from app.inbound.service_client import RouterClient

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("stack")]

RAW = {"Content-Type": "message/rfc822"}
MESSAGES = Path(__file__).parents[1] / "models" / "mail" / "messages"


@pytest.fixture(scope="module")
def service(stack: Stack) -> Iterator[Stack]:
    """A service with a router that is named ``mail-corpus``."""
    dataset = stack.dataset(departments(80), name="mail corpus")
    job = stack.finished(stack.train(dataset["id"], model="mail-corpus")["id"])
    assert job["state"] == "succeeded", job
    router = {
        "model": "mail-corpus",
        "fallback": "front@example.org",
        "destinations": {"billing": "billing@example.org"},
    }
    stack.call("PUT", "/v1/routers/mail-corpus", 200, json=router)
    yield stack
    stack.call("DELETE", "/v1/routers/mail-corpus", 204)
    stack.call("DELETE", "/v1/models/mail-corpus", 204)
    stack.call("DELETE", f"/v1/datasets/{dataset['id']}", 204)


def post(service: Stack, message: bytes) -> dict[str, Any]:
    decision: dict[str, Any] = service.call(
        "POST", "/v1/routers/mail-corpus/messages", 200, content=message, headers=RAW
    )
    assert decision["disposition"] in {"routed", "fallback"}
    assert decision["destinations"], "every message has a destination"
    assert set(decision["destinations"]) <= {"front@example.org", "billing@example.org"}
    assert (decision["disposition"] == "fallback") == (decision["departments"] == [])
    assert decision["message"].keys() >= {"automated", "defects", "truncated"}
    return decision


def list_decisions(service: Stack) -> dict[str, dict[str, Any]]:
    """Return all decisions of the router by id, reading every page."""
    decisions: dict[str, dict[str, Any]] = {}
    query = "limit=100"
    while True:
        page = service.call("GET", f"/v1/routers/mail-corpus/decisions?{query}", 200)
        for item in page["items"]:
            assert item["decision_id"] not in decisions, "each decision is on one page only"
            decisions[item["decision_id"]] = item
        if "next_cursor" not in page:
            return decisions
        query = f"limit=100&cursor={page['next_cursor']}"


@pytest.mark.corpora("eml")
def test_the_test_messages_of_eight_libraries_are_routed_and_listed(service: Stack) -> None:
    paths = sorted(path for path in (FOLDER / "eml").rglob("*") if path.is_file())
    messages = [path.read_bytes() for path in paths if path.suffix != ".md"]
    assert len(messages) >= 480
    before = list_decisions(service)
    decisions = [post(service, message) for message in messages]
    after = list_decisions(service)
    routed = {decision["decision_id"]: decision for decision in decisions}
    assert after.keys() - before.keys() == routed.keys() - before.keys()
    for decision_id, decision in routed.items():
        assert {name: after[decision_id][name] for name in decision} == decision
    # Equal messages have one decision. Few messages of the corpus are equal.
    distinct = {bytes(message) for message in messages}
    assert len(routed) > 0.85 * len(distinct)
    again = [post(service, message)["decision_id"] for message in messages[::10]]
    assert again == [decision["decision_id"] for decision in decisions[::10]]


@pytest.mark.parametrize("name", sorted(path.name for path in MESSAGES.iterdir()))
def test_each_message_of_this_project_is_routed(service: Stack, name: str) -> None:
    decision = post(service, (MESSAGES / name).read_bytes())
    assert decision["decision_id"] in list_decisions(service)
    assert decision["message"]["automated"] is (name in AUTOMATED)


AUTOMATED = {"bounce.eml", "mailing_list.eml", "out_of_office.eml"}


def nested(levels: int) -> bytes:
    lines = []
    for level in range(levels):
        lines += [f'Content-Type: multipart/mixed; boundary="b{level}"', "", f"--b{level}"]
    return "\n".join(lines).encode() + b"\n\ninvoice"


MALICIOUS = {
    "all bytes": bytes(range(256)) * 100,
    "arbitrary bytes": base64.b64decode(b"/+7dzLuqmYh3ZlVEMyIRAA==") * 4000,
    "1,500 multiparts": nested(1500),
    "20,000 addresses": b"To: " + b", ".join(b"a%d@example.com" % i for i in range(20_000)) + b"\n\ninvoice",
    "a Message-ID in brackets": b"Message-ID: <[x]@y>\n\ninvoice",
    "a comment for an address": b"To: (c):\n\ninvoice",
    "an unknown charset": b"Content-Type: text/plain; charset=klingon\n\ninvoice \xff",
    "an unknown encoding": b"Content-Transfer-Encoding: none-such\n\ninvoice",
    "broken base64": b"Content-Transfer-Encoding: base64\n\n====!!invoice",
    "a very long header": b"Subject: " + b"x" * 2_000_000,
    "no header": b"my invoice is wrong",
    "a NUL in the subject": b"Subject: a\0b\nMessage-ID: <\0@x>\n\ninvoice",
    "half a character": b"Subject: =?utf-16?b?2AA=?=\n\ninvoice",
    "unclosed HTML": b"Content-Type: text/html\n\n" + b"<div>" * 50_000,
}


EMPTY = {
    "an empty body": b"",
    "a line break": b"\n",
    "zeros": bytes(100_000),
    "very many quotation marks": b"\n" + b">" * 100_000 + b"\n" * 10_000,
}
"""Bodies without a header field and without a text."""


@pytest.mark.parametrize("name", EMPTY)
def test_a_body_without_header_and_text_is_no_message(service: Stack, name: str) -> None:
    response = service.http.post("/v1/routers/mail-corpus/messages", content=EMPTY[name], headers=RAW)
    problem_of(response, 400, "not_a_message")
    client = RouterClient(service.url, "mail-corpus", None)
    assert client.route(EMPTY[name]).disposition == "fallback"


@pytest.mark.parametrize("name", MALICIOUS)
def test_malicious_bytes_are_routed(service: Stack, name: str) -> None:
    decision = post(service, MALICIOUS[name])
    stored = service.call("GET", f"/v1/decisions/{decision['decision_id']}", 200)
    assert {key: stored[key] for key in decision} == decision


def test_an_unreadable_message_goes_to_the_fallback_with_its_defects(service: Stack) -> None:
    decision = post(service, b"Message-ID: <unread@x>\nContent-Transfer-Encoding: base64\n\n!")
    assert decision["disposition"] == "fallback"
    assert decision["destinations"] == ["front@example.org"]
    assert decision["message"]["defects"]


def test_the_same_message_raw_and_as_base64_gets_one_decision(service: Stack) -> None:
    message = (MESSAGES / "reply_gmail.eml").read_bytes()
    body = {"raw_email": base64.b64encode(message).decode()}
    as_json = service.call("POST", "/v1/routers/mail-corpus/message-parts", 200, json=body)
    assert as_json == post(service, message)
