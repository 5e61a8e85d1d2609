"""Malicious messages are truncated at a limit, and every sequence of bytes gives a document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from corpora import FOLDER
from hypothesis import given, settings
from hypothesis import strategies as st

from models.mail import MailDocument, read_message
from models.mail.diagnostics import Diagnostics
from models.mail.limits import (
    MAX_BYTES,
    MAX_DEFECTS,
    MAX_DOMAINS,
    MAX_PARTS,
    MAX_TEXT_BYTES,
    MAX_TEXT_CHARS,
)
from models.mail.mime import normalize_newlines, walk_parts

HTML = b"Content-Type: text/html\n\n"


def nested(levels: int) -> bytes:
    opening = b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (level, level)
        for level in range(levels)
    )
    return b"Subject: nested\n" + opening + b"Content-Type: text/plain\n\ndeep down\n"


# fmt: off
MALICIOUS: dict[str, Callable[[], bytes]] = {
    "1,500 nested multiparts": lambda: nested(1500),
    "20,000 addresses": lambda: (
        b"To: " + b", ".join(b"P <p%d@example.org>" % n for n in range(20_000)) + b"\n\nx"
    ),
    "20,000 folded addresses": lambda: b"To: " + b"p@example.org,\n " * 20_000 + b"\n\nx",
    "unclosed quotes": lambda: b"To: " + b'"\\' * 100_000 + b"\n\nx",
    "nested messages": lambda: b"Content-Type: message/rfc822\n\n" * 5000,
    "too many parts": lambda: b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 20_000,
    "too many headers": lambda: b"a:\n" * 100_000 + b"\nx",
    "unclosed encoded words": lambda: b"Subject: " + b"=?a?q?" * 10_000 + b"\n\nx",
    "a huge parameter": lambda: b'Content-Type: text/plain; a="' + b'\\"' * 20_000 + b"\n\nx",
    "a huge message": lambda: b"\n" * 3 + b"Subject: x\n\n" + b"word " * (MAX_BYTES // 4),
    "one very long line": lambda: b"\xe4" * 300_000,
    "open elements": lambda: HTML + b"<ul><li>" * 60_000,
    "formatting elements": lambda: HTML + b"".join(b"<b a=%d>" % n for n in range(5000)) + b"<p>" * 20_000,
    "tags": lambda: HTML + b"<p>x" * 60_000,
}
# fmt: on


@pytest.mark.parametrize("make", MALICIOUS.values(), ids=MALICIOUS.keys())
def test_malicious_messages_are_truncated_with_a_defect(make: Callable[[], bytes]) -> None:
    mail = read_message(make())
    assert mail.truncated
    assert mail.defects
    assert_within_limits(mail)


def test_ordinary_nesting_is_read_completely() -> None:
    mail = read_message(nested(10))
    assert mail.new_text == "deep down"
    assert not mail.truncated


def test_the_body_is_read_even_if_the_headers_are_truncated() -> None:
    for separator in (b", ", b",\n "):
        addresses = separator.join([b"person@example.org"] * 20_000)
        mail = read_message(b"To: " + addresses + b"\nSubject: late\n\nThe body.")
        assert (mail.subject, mail.new_text) == ("late", "The body.")


def test_fields_that_cause_recursion_in_other_parsers() -> None:
    mail = read_message(b"To: " + b"(" * 30_000 + b"\nFrom: " + b"(" * 20_000 + b")" * 20_000 + b"\n\nx")
    assert mail.new_text == "x"


def test_the_text_limit_covers_all_parts_together() -> None:
    part_bytes = b"--b\n\n" + b"word " * (MAX_TEXT_BYTES // 20) + b"\n"
    diagnostics = Diagnostics()
    message = b"\n" + normalize_newlines(
        b"Content-Type: multipart/mixed; boundary=b\n\n" + part_bytes * 10 + b"--b--"
    )
    bodies = [len(part.body) for part in walk_parts(message, diagnostics)]
    assert sum(bodies) <= MAX_TEXT_BYTES
    assert diagnostics.truncated


def test_unknown_charsets_are_not_cached_in_the_codec_registry() -> None:
    import encodings

    def read(number: int) -> None:
        read_message(f"Content-Type: text/plain; charset=nowhere-{number}\n\ncaf\xe9".encode("latin-1"))

    read(0)  # imports the codecs that are candidates
    before = len(encodings._cache)
    for number in range(50):
        read(number)
    assert len(encodings._cache) == before


HEADER_LINES = st.sampled_from(
    [
        b"Content-Type: multipart/mixed; boundary=b",
        b'Content-Type: multipart/alternative; boundary="b"',
        b"Content-Type: multipart/report; boundary=",
        b"Content-Type: message/rfc822",
        b"Content-Type: text/html; charset=utf-8",
        b"Content-Type: text/plain; charset=x-none",
        b"Content-Type: text/plain; charset*=utf-7''%ff; name*0*=a; name*1=\xff",
        b"Content-Type: ;;;=",
        b"Content-Type: a\x00\xff/b\x00",
        b"Content-Disposition: attachment; filename*=utf-8'x'%E4%",
        b"Content-Transfer-Encoding: base64",
        b"Content-Transfer-Encoding: quoted-printable",
        b"Subject: =?utf-8?b?4pi?= =?x?q?=4?=\xff",
        b"From: (((\"@[x]",
        b"To: a@b, <<>>, (c):;",
        b"Message-ID: <[x]@y>",
        b"List-Id: <",
        b"Return-Path:<>",
        b" continued",
        b"no colon",
        b": no name",
        b"",
    ]
)  # fmt: skip
BODY_LINES = st.sampled_from(
    [b"--b", b"--b--", b"", b"> quoted", b"On Monday, Ann wrote:", b"From: a\nSent: b", b"4pi=\xe2=",
     b"=E2=\n=", b"<p>hidden<div style=display:none>", b"<!-- <b", b"\x00\x1b$B\xff", b"text"]
)  # fmt: skip
BROKEN = st.lists(HEADER_LINES | BODY_LINES | st.binary(max_size=12), max_size=25).flatmap(
    lambda lines: st.sampled_from([b"\n", b"\r\n", b"\r"]).map(lambda end: end.join(lines))
)


@settings(max_examples=200, deadline=None)
@given(BROKEN | st.binary(max_size=200))
def test_every_sequence_of_bytes_gives_a_document(raw: bytes) -> None:
    mail = read_message(raw)
    assert_within_limits(mail)
    assert read_message(raw) == mail


def corpus() -> list[Path]:
    return sorted(path for path in (FOLDER / "eml").glob("*/*") if path.is_file())


@pytest.mark.corpora("eml")
def test_each_message_of_the_corpus_gives_a_document_within_the_limits() -> None:
    messages = corpus()
    assert len(messages) == 480
    documents = [read_message(path.read_bytes()) for path in messages]
    for mail in documents:
        assert_within_limits(mail)
    assert [mail.body_digest for mail in documents] == [
        read_message(p.read_bytes()).body_digest for p in messages
    ]
    assert sum(bool(mail.subject) for mail in documents) > 250
    assert sum(bool(mail.new_text or mail.quoted_text) for mail in documents) > 400
    truncated = {
        path.name.rpartition("__")[2]
        for path, mail in zip(messages, documents, strict=True)
        if mail.truncated
    }
    assert truncated == {"very-very-long-boundary.msg", "stack-overflow.txt"}


def assert_within_limits(mail: MailDocument) -> None:
    """Check that every field is within its limit and can be stored in a database and serialized."""
    assert len(mail.new_text) <= MAX_TEXT_CHARS
    assert len(mail.quoted_text) <= MAX_TEXT_CHARS
    assert len(mail.attachments) <= MAX_PARTS
    assert len(mail.defects) <= MAX_DEFECTS
    assert len(mail.recipient_domains) <= MAX_DOMAINS
    assert len(bytes.fromhex(mail.body_digest)) == 32
    for field in fields(mail):
        for text in _texts(getattr(mail, field.name)):
            assert "\x00" not in text
            assert text.encode("utf-8").decode() == text
            assert "\r" not in text


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for item in value for text in _texts(item)] if isinstance(value, tuple) else []
