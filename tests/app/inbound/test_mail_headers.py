"""The header fields of a decision, and what a sender cannot do with them."""

from __future__ import annotations

import email
import email.policy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inbound.mail_headers import MAX_LINE, add_fields, decision_fields, field_lines, strip_fields
from app.inbound.routed_message import RoutedMessage, UnexpectedResponseError


def decision(*labels: str, version: int | None = 3, probability: float | None = 0.91) -> RoutedMessage:
    fields = {
        "decision_id": "dec_1",
        "router": "frontdesk",
        "model": "helpdesk",
        "version": version,
        "disposition": "routed" if labels else "fallback",
        "departments": [
            {"label": label, "destination": f"{i}@example.org", "score": 1.25 - i}
            for i, label in enumerate(labels)
        ],
        "destinations": [f"{i}@example.org" for i in range(len(labels))] or ["desk@example.org"],
        "set_probability": probability,
    }
    return RoutedMessage.from_json(json.dumps(fields).encode())


def parsed(message: bytes) -> dict[str, str]:
    return {
        name: str(value)
        for name, value in email.message_from_bytes(message, policy=email.policy.SMTP).items()
    }


def test_the_fields_state_the_decision() -> None:
    message = add_fields(b"Subject: Hello\r\n\r\nBody\r\n", decision_fields(decision("billing", "returns")))
    assert parsed(message) == {
        "X-Covey-Decision": "routed; id=dec_1; router=frontdesk; version=helpdesk/3",
        "X-Covey-Departments": "billing, returns",
        "X-Covey-Score": "1.25, 0.25",
        "X-Covey-Probability": "0.9100",
        "X-Covey-Destinations": "0@example.org, 1@example.org",
        "Subject": "Hello",
    }
    assert message.endswith(b"\r\nSubject: Hello\r\n\r\nBody\r\n")
    assert b"\n" not in message.replace(b"\r\n", b"")


def test_a_fallback_has_no_departments() -> None:
    fields = dict(decision_fields(decision(version=None, probability=None)))
    assert fields == {
        "X-Covey-Decision": "fallback; id=dec_1; router=frontdesk; version=helpdesk",
        "X-Covey-Destinations": "desk@example.org",
    }


def test_labels_with_special_characters_stay_one_label() -> None:
    fields = dict(decision_fields(decision('a, "b"', "c\r\nX-Covey-Score: 9", " d")))
    assert fields["X-Covey-Departments"] == '"a, \\"b\\"", c  X-Covey-Score: 9, " d"'


def test_labels_that_are_not_ascii_are_encoded() -> None:
    lines = field_lines(decision_fields(decision("Rückgabe", "請求書")))
    assert lines.isascii()
    assert parsed(lines + b"\n")["X-Covey-Departments"] == "Rückgabe, 請求書"


def test_long_fields_are_folded() -> None:
    lines = field_lines(decision_fields(decision(*[f"department {i}" for i in range(100)]))).splitlines()
    assert max(map(len, lines)) <= MAX_LINE


@pytest.mark.parametrize(
    "forged",
    [
        b"X-Covey-Departments: all\n",
        b"x-cOVEY-departments: all\n",
        b"X-Covey-Departments:\n all\n\tof them\n",
        b"X-Covey-Departments : all\n",
    ],
)
def test_fields_of_the_sender_are_removed(forged: bytes) -> None:
    assert strip_fields(b"A: 1\n" + forged + b"B: 2\n\nX-Covey-Departments: text\n") == (
        b"A: 1\nB: 2\n\nX-Covey-Departments: text\n"
    )


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"A: 1\rX-Covey-Score: 9\nB: 2\n\nHello\n", b"A: 1 X-Covey-Score: 9\nB: 2\n\nHello\n"),
        (b" X-Covey-Score: 9\nB: 2\n\nHello\n", b"\n X-Covey-Score: 9\nB: 2\n\nHello\n"),
        (b"A: 1\r\n\r\r\nX-Covey-Score: 9\r\n", b"A: 1\r\n\r\nX-Covey-Score: 9\r\n"),
    ],
)
def test_no_receiver_takes_text_of_the_sender_for_a_field(message: bytes, expected: bytes) -> None:
    newline = b"\r\n" if b"\r\n" in message else b"\n"
    added = b"X-Covey-Score: 1" + newline
    assert add_fields(message, [("X-Covey-Score", "1")]) == added + expected


def test_fields_of_attached_messages_stay() -> None:
    body = b"Subject: fwd\n\n--b\nContent-Type: message/rfc822\n\nX-Covey-Score: 1\n\nHello\n"
    assert strip_fields(body) == body


def test_the_line_of_a_mailbox_file_stays_first() -> None:
    message = add_fields(b"From ann Mon Jan 1\nSubject: Hello\n\nBody\n", [("X-Covey-Score", "1")])
    assert message == b"From ann Mon Jan 1\nX-Covey-Score: 1\nSubject: Hello\n\nBody\n"


PIECES = [b"\n", b"\r\n", b" ", b"a", b"X-Covey-A:", b"x", b":", b"\t"]


@given(st.lists(st.sampled_from(PIECES)).map(b"".join))
def test_only_fields_of_the_header_are_removed(message: bytes) -> None:
    stripped = strip_fields(message)
    assert strip_fields(stripped) == stripped
    if b"x-covey-" not in message.lower():
        assert stripped == message


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{}", b"<html>", b'{"decision_id": 1}', b"\xff"])
def test_a_response_that_is_no_decision_is_refused(content: bytes) -> None:
    with pytest.raises(UnexpectedResponseError):
        RoutedMessage.from_json(content)
