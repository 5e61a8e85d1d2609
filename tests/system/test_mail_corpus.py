"""Whatever bytes are posted as mail, they are answered, routed and listed: mail is never dropped."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpora import FOLDER, needs
from stack import Stack, departments

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("stack")]

RAW = {"Content-Type": "message/rfc822"}
OWN = Path(__file__).parents[1] / "models" / "mail" / "messages"


@pytest.fixture(scope="module")
def desk(stack: Stack) -> Iterator[Stack]:
    """A service with a router called ``mail-corpus``."""
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


def post(desk: Stack, message: bytes) -> dict[str, Any]:
    decision: dict[str, Any] = desk.call(
        "POST", "/v1/routers/mail-corpus/messages", 200, content=message, headers=RAW
    )
    assert decision["disposition"] in {"routed", "fallback"}
    assert decision["destinations"], "every message goes somewhere"
    assert set(decision["destinations"]) <= {"front@example.org", "billing@example.org"}
    assert (decision["disposition"] == "fallback") == (decision["departments"] == [])
    assert decision["message"].keys() >= {"automated", "defects", "truncated"}
    return decision


def listed(desk: Stack) -> dict[str, dict[str, Any]]:
    """Every decision of the router, by its id, page by page."""
    found: dict[str, dict[str, Any]] = {}
    query = "limit=100"
    while True:
        page = desk.call("GET", f"/v1/routers/mail-corpus/decisions?{query}", 200)
        for item in page["items"]:
            assert item["decision_id"] not in found, "an item is on one page only"
            found[item["decision_id"]] = item
        if "next_cursor" not in page:
            return found
        query = f"limit=100&cursor={page['next_cursor']}"


@needs("eml")
def test_difficult_mail_of_eight_libraries_is_routed_and_listed(desk: Stack) -> None:
    paths = sorted(path for path in (FOLDER / "eml").rglob("*") if path.is_file())
    messages = [path.read_bytes() for path in paths if path.suffix != ".md"]
    assert len(messages) >= 480
    before = listed(desk)
    decisions = [post(desk, message) for message in messages]
    after = listed(desk)
    answered = {decision["decision_id"]: decision for decision in decisions}
    assert after.keys() - before.keys() == answered.keys() - before.keys()
    for decision_id, decision in answered.items():
        assert {name: after[decision_id][name] for name in decision} == decision
    # A message that is there twice has one decision; of these collections few are.
    distinct = {bytes(message) for message in messages}
    assert len(answered) > 0.85 * len(distinct)
    again = [post(desk, message)["decision_id"] for message in messages[::10]]
    assert again == [decision["decision_id"] for decision in decisions[::10]]


@pytest.mark.parametrize("name", sorted(path.name for path in OWN.iterdir()))
def test_our_own_messages_are_routed(desk: Stack, name: str) -> None:
    decision = post(desk, (OWN / name).read_bytes())
    assert decision["decision_id"] in listed(desk)
    assert decision["message"]["automated"] is (name in AUTOMATED)


AUTOMATED = {"bounce.eml", "mailing_list.eml", "out_of_office.eml"}


def nested(levels: int) -> bytes:
    lines = []
    for level in range(levels):
        lines += [f'Content-Type: multipart/mixed; boundary="b{level}"', "", f"--b{level}"]
    return "\n".join(lines).encode() + b"\n\ninvoice"


HOSTILE = {
    "nothing": b"",
    "a line break": b"\n",
    "zeros": bytes(100_000),
    "all bytes": bytes(range(256)) * 100,
    "bytes of no meaning": base64.b64decode(b"/+7dzLuqmYh3ZlVEMyIRAA==") * 4000,
    "1,500 multiparts": nested(1500),
    "20,000 addresses": b"To: " + b", ".join(b"a%d@example.com" % i for i in range(20_000)) + b"\n\ninvoice",
    "a Message-ID in brackets": b"Message-ID: <[x]@y>\n\ninvoice",
    "a comment for an address": b"To: (c):\n\ninvoice",
    "an unknown charset": b"Content-Type: text/plain; charset=klingon\n\ninvoice \xff",
    "an unknown encoding": b"Content-Transfer-Encoding: none-such\n\ninvoice",
    "broken base64": b"Content-Transfer-Encoding: base64\n\n====!!invoice",
    "a header without end": b"Subject: " + b"x" * 2_000_000,
    "no header": b"my invoice is wrong",
    "a NUL in the subject": b"Subject: a\0b\nMessage-ID: <\0@x>\n\ninvoice",
    "half a character": b"Subject: =?utf-16?b?2AA=?=\n\ninvoice",
    "HTML without end": b"Content-Type: text/html\n\n" + b"<div>" * 50_000,
    "quotes without end": b"\n" + b">" * 100_000 + b"\n" * 10_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_routed(desk: Stack, name: str) -> None:
    decision = post(desk, HOSTILE[name])
    kept = desk.call("GET", f"/v1/decisions/{decision['decision_id']}", 200)
    assert {key: kept[key] for key in decision} == decision


def test_what_cannot_be_read_goes_to_the_fallback_with_its_defects(desk: Stack) -> None:
    decision = post(desk, b"Message-ID: <unread@x>\nContent-Transfer-Encoding: base64\n\n!")
    assert decision["disposition"] == "fallback"
    assert decision["destinations"] == ["front@example.org"]
    assert decision["message"]["defects"]


def test_the_same_message_raw_and_as_base64_gets_one_decision(desk: Stack) -> None:
    message = (OWN / "reply_gmail.eml").read_bytes()
    body = {"raw_email": base64.b64encode(message).decode()}
    as_json = desk.call("POST", "/v1/routers/mail-corpus/messages", 200, json=body)
    assert as_json == post(desk, message)
