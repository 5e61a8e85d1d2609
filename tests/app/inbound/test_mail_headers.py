"""The header fields of a decision, and what a sender cannot do with them."""

from __future__ import annotations

import email
import email.policy
import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import app.inbound
from app.inbound.mail_headers import MAX_LINE, add_fields, decision_fields, field_lines
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


@pytest.mark.parametrize(
    "labels", [["billing", "Rückgabe", "請求書", "sales"], ["ü" * 200, "billing", "=?a"]]
)
def test_labels_that_are_not_ascii_are_encoded_alone(labels: list[str]) -> None:
    lines = field_lines(decision_fields(decision(*labels)))
    assert lines.isascii()
    assert max(map(len, lines.splitlines())) <= MAX_LINE
    assert parsed(lines + b"\n")["X-Covey-Departments"] == ", ".join(labels)
    # A filter of a mail server sees the other labels.
    assert re.search(rb"X-Covey-Departments:([^:]*,)?\s*billing\s*(,|$)", lines)


def test_addresses_stay_ascii() -> None:
    routed = decision("Rückgabe")
    routed = routed._replace(destinations=("rück@example.org", "desk@büro.example", "a@example.org"))
    fields = dict(decision_fields(routed))
    expected = "=?utf-8?b?csO8Y2tAZXhhbXBsZS5vcmc=?=, desk@xn--bro-hoa.example, a@example.org"
    assert fields["X-Covey-Destinations"] == expected


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
    assert add_fields(b"A: 1\n" + forged + b"B: 2\n\nX-Covey-Departments: text\n", []) == (
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
    assert add_fields(body, []) == body


def test_the_line_of_a_mailbox_file_stays_first() -> None:
    message = add_fields(b"From ann Mon Jan 1\nSubject: Hello\n\nBody\n", [("X-Covey-Score", "1")])
    assert message == b"From ann Mon Jan 1\nX-Covey-Score: 1\nSubject: Hello\n\nBody\n"


PIECES = [
    b"\n",
    b"\r\n",
    b"\r",
    b"\r" * 1000,
    b" ",
    b"a",
    b"X-Covey-A: 9",
    b"X-",
    b"Covey-",
    b":",
    b"\t",
    b"From ",
]
RECEIVERS = {
    "LF": re.compile(rb"\r*\n"),
    "CR LF": re.compile(rb"\r\n"),
    "CR, LF and CR LF": re.compile(rb"\r\n|\r|\n"),
}
"""What common receivers take for the end of a line."""


@given(st.lists(st.sampled_from(PIECES)).map(b"".join))
def test_no_receiver_finds_a_field_of_the_sender(message: bytes) -> None:
    changed = add_fields(message, [("X-Covey-Score", "1")])
    for receiver, end in RECEIVERS.items():
        for number, line in enumerate(lines := end.split(changed)):
            if not line:
                break
            if line.lower().startswith(b"x-covey-"):
                assert (lines[0].startswith(b"From "), number) in ((False, 0), (True, 1)), receiver
                following = lines[number + 1] if number + 1 < len(lines) else b""
                assert line.split(b"\n")[0].strip() == b"X-Covey-Score: 1", receiver
                assert not following.startswith((b" ", b"\t")), receiver


@given(st.lists(st.sampled_from([b"\n", b"\r", b" ", b"a", b"x-covey", b":", b"From "])).map(b"".join))
def test_a_message_without_these_fields_stays_as_it_is(message: bytes) -> None:
    if not message.startswith((b" ", b"\r")) and b"\r" not in message[: message.find(b"\n\n")]:
        assert add_fields(message, []) == message


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{}", b"<html>", b'{"decision_id": 1}', b"\xff"])
def test_a_response_that_is_no_decision_is_refused(content: bytes) -> None:
    with pytest.raises(UnexpectedResponseError):
        RoutedMessage.from_json(content)


def repeated_groups(pattern: Any) -> Iterator[Any]:
    """Yield the groups of a parsed pattern that keep a point to return to for each repetition."""
    for operation, value in pattern:
        if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            _, most, body = value
            if most is sre.MAXREPEAT and not (len(body) == 1 and body[0][0] in CHARACTERS):
                yield body
        for part in value if isinstance(value, (tuple, list)) else [value]:
            for inner in part if isinstance(part, list) else [part]:
                if isinstance(inner, sre_parser.SubPattern):
                    yield from repeated_groups(inner)


sre, sre_parser = importlib.import_module("re._constants"), importlib.import_module("re._parser")
CHARACTERS = (sre.IN, sre.LITERAL, sre.NOT_LITERAL, sre.ANY)


def test_patterns_for_messages_repeat_no_group_that_costs_memory_for_each_byte() -> None:
    """A group needs a possessive quantifier, such as ``*+``: a header can be as long as a message."""
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(app.inbound.__path__, "app.inbound.")
    ]
    patterns = {
        f"{module.__name__}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern)
    }
    assert "app.inbound.mail_headers._FIELD" in patterns
    assert list(repeated_groups(sre_parser.parse("(?:ab|c)*")))
    assert list(repeated_groups(sre_parser.parse("x|(y(?=(z.)+))")))
    assert not list(repeated_groups(sre_parser.parse("(?:ab|c)*+c*[de]+?")))
    costly = [
        name for name, value in patterns.items() if any(repeated_groups(sre_parser.parse(value.pattern)))
    ]
    assert costly == []
