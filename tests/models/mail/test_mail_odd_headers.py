"""A header block with lines that are not fields keeps its other fields."""

from __future__ import annotations

import pytest

from models.mail import MailDocument, read_message
from models.mail.header_lines import remove_odd_lines

ODD = "the headers contain a line that is not a header field"


def read(headers: bytes) -> MailDocument:
    return read_message(headers + b"\n<p>Please refund</p>\n")


@pytest.mark.parametrize(
    "headers",
    [
        b"Subject : Invoice\nContent-Type \t: text/html\n",
        b"From: a@b\nthis line lost its indent\nSubject: Invoice\nContent-Type: text/html\n",
        b"From: a@b\n\x01\xff\n folded\nSubject: Invoice\nno colon\nContent-Type: text/html\n",
        b">From a@b Mon Aug  5 10:00:00 2024\nSubject: Invoice\nContent-Type: text/html\n",
        b"From a@b Mon Aug  5 10:00:00 2024\n>From b@c\nSubject: Invoice\nContent-Type: text/html\n",
        b"117\nSubject: Invoice\nContent-Type: text/html\n",
        b"DATA\nSubject: Invoice\nContent-Type: text/html\nTo:\n folded@b\n",
        b"Subject: Invoice\nContent-Type: text/html;\ncharset=utf-8\n",
        b"To: a@b,\nC D <c@d>\nSubject: Invoice\nContent-Type: text/html\n",
        b"Subject: Invoice\nReceived: by a\nwith b\nReceived: by c\nfor d;\nContent-Type: text/html\n",
    ],
)
def test_odd_lines_are_skipped_if_known_fields_follow(headers: bytes) -> None:
    mail = read(headers)
    assert (mail.subject, mail.new_text) == ("Invoice", "Please refund")
    assert mail.defects == (ODD,)


def test_lines_that_lost_their_indentation_belong_to_their_field() -> None:
    mail = read_message(
        b"To: a@b.example,\nC D <c@d.example>\n"
        b'Content-Type: multipart/mixed;\nboundary="b"\n\n--b\n\nx\n--b--\n'
    )
    assert mail.recipient_domains == ("b.example", "d.example")
    assert mail.new_text == "x"


@pytest.mark.parametrize(
    ("raw", "subject", "text"),
    [
        (
            b"Subject: x\nPlease help.\nFrom: Berlin\nTo: Hamburg\n",
            "x",
            "Please help.\nFrom: Berlin\nTo: Hamburg",
        ),
        (b"Subject: x\nHelp: me\nPlease help.\nSubject: y\n", "x", "Please help.\nSubject: y"),
        (b"Subject: x\nPlease help.\nNote : z\n", "x", "Please help.\nNote : z"),
        (b"Hello,\nSubject: x\nis what I wrote\n", "", "Hello,\nSubject: x\nis what I wrote"),
        (b">From here on it is broken.\n\nBye\n", "", "From here on it is broken."),
        (b"4711\nis my number\n", "", "4711\nis my number"),
        (b"Subject: x\nodd\n--b\nContent-Type: text/html\n", "x", "odd\n--b\nContent-Type: text/html"),
        (b"Subject: x\n" + b"text\n" * 101 + b"X-A: b\n", "x", "text\n" * 101 + "X-A: b"),
    ],
)
def test_text_after_the_fields_is_the_body(raw: bytes, subject: str, text: str) -> None:
    mail = read_message(raw)
    assert mail.subject == subject
    assert text in (mail.new_text, mail.quoted_text)


def test_no_line_is_lost_or_read_twice() -> None:
    block = b"Subject: x\nodd\n folded\nFrom: a@b\nThe body\nX: y\n"
    kept, n_left_over, is_odd = remove_odd_lines(block)
    assert kept == b"Subject: x\nFrom: a@b\n"
    assert block[len(block) - n_left_over :] == b"The body\nX: y\n"
    assert is_odd


@pytest.mark.parametrize("end", [b"\r\r\n", b"\r\r\r\n"])
def test_a_line_end_that_was_converted_twice_is_one_line_end(end: bytes) -> None:
    raw = b"From: a@b\nSubject: Invoice\nContent-Type: text/html\n\n<p>Please refund</p>\n"
    mail = read_message(raw.replace(b"\n", end))
    assert (mail.subject, mail.new_text) == ("Invoice", "Please refund")
    assert mail.body_digest == read_message(raw).body_digest


def test_an_emlx_file_ends_before_its_property_list() -> None:
    message = b"Subject: Invoice\n\nPlease refund\n"
    plist = b'<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0"></plist>\n'
    for end in (b"\n", b"\r\n"):
        content = message.replace(b"\n", end)
        mail = read_message(b"%d" % len(content) + b"   " + end + content + plist)
        assert (mail.subject, mail.new_text) == ("Invoice", "Please refund")
    assert read_message(b"5\n" + message + plist).new_text.startswith("Please refund\n<?xml")
