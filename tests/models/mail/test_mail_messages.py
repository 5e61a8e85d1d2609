"""Messages of every common kind, with their expected documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.mail import Email, MailDocument, read_email, read_message
from models.mail.fields import Part
from models.mail.mail_systems import _NAMES

MESSAGES = Path(__file__).parent / "messages"


def read(name: str) -> MailDocument:
    return read_message((MESSAGES / f"{name}.eml").read_bytes())


def test_a_plain_text_german_reply_below_the_quotation() -> None:
    mail = read("reply_german_plain")
    assert mail.subject == "Re: Ihre Rechnung für Mai"
    assert mail.sender_domain == "example.net"
    assert mail.recipient_domains == ("example.org",)
    assert mail.message_id == "8c1f0a@example.net"
    assert mail.new_text.split("\n\n") == [
        "Guten Tag,",
        "der Betrag stimmt leider immer noch nicht.",
        "Die Kundennummer steht unten.",
        "Lena Vogt",
    ]
    assert "anbei die korrigierte Rechnung." in mail.quoted_text
    assert "schrieb Service" in mail.quoted_text
    assert ">" not in mail.quoted_text.replace("<service@example.org>", "")
    assert mail.language == "de"
    assert not mail.automated
    assert mail.defects == ()
    assert not mail.truncated


def test_an_outlook_reply_in_html() -> None:
    mail = read("reply_outlook")
    assert mail.new_text == "The printer still doesn’t print.\nAlan"
    assert mail.quoted_text.endswith("Please restart the spooler.")
    assert "words" not in mail.new_text + mail.quoted_text


def test_a_gmail_reply_whose_plain_part_is_blank() -> None:
    mail = read("reply_gmail")
    assert mail.new_text == "El paquete llegó roto.\nQuiero devolverlo."
    assert mail.quoted_text.endswith("Su pedido ha sido enviado.")
    assert mail.language == "es"


def test_a_forward_with_an_attached_message_in_a_nonstandard_encoding() -> None:
    mail = read("forward_with_attachments")
    assert mail.new_text == "Who takes this one?"
    assert mail.quoted_text == "Offer for 40 chairs\n\nWe need forty chairs."
    assert mail.attachments == (("Angebot März.pdf", "application/pdf"), ("", "message/rfc822"))
    assert mail.recipient_domains == ("example.org", "example.com")


@pytest.mark.parametrize(
    ("name", "automated", "mailing_list"),
    [
        ("bounce", True, None),
        ("out_of_office", True, None),
        ("mailing_list", True, "users.lists.example.org"),
        ("reply_outlook", False, None),
    ],
)
def test_messages_from_programs_are_flagged(name: str, automated: bool, mailing_list: str | None) -> None:
    mail = read(name)
    assert mail.automated is automated
    assert mail.mailing_list == mailing_list


@pytest.mark.parametrize(
    "field",
    [
        "Auto-Submitted: auto-generated",
        "Precedence: bulk",
        "Precedence: junk",
        "Return-Path: <>",
        "X-Autoreply: yes",
        "Content-Type: message/delivery-status",
        "Content-Type: message/disposition-notification",
    ],
)
def test_each_header_of_a_program_is_sufficient(field: str) -> None:
    assert read_message(f"Subject: x\n{field}\n\nbody".encode()).automated


@pytest.mark.parametrize(
    "field", ["Auto-Submitted: no", "Precedence: first-class", "Return-Path: <a@example.org>"]
)
def test_messages_from_people_are_not_flagged(field: str) -> None:
    assert not read_message(f"Subject: x\n{field}\n\nbody".encode()).automated


@pytest.mark.parametrize(
    "sender",
    [
        "Mail Delivery System <MAILER-DAEMON@example.org>",
        "MAILER-DAEMON",
        "<mailer-daemon>",
        "MAILER-DAEMON (Mail Delivery System)",
        "postmaster@example.org",
        '"Mail Delivery Subsystem" <noreply@example.org>',
        "Mail Delivery <bounce@example.org>",
        *(f"{name} <x@example.org>" for name in _NAMES if name.isascii()),
        "=?utf-8?q?Syst=C3=A8me_de_distribution?= <x@example.org>",
        "MicrosoftExchange329e71ec88ae4615bbc36ab6ce41109e@example.org",
    ],
)
def test_messages_from_mail_servers_are_flagged(sender: str) -> None:
    assert read_message(f"From: {sender}\nSubject: Undelivered\n\nUser unknown".encode()).automated


@pytest.mark.parametrize(
    "sender",
    ["Ann Lee <ann@example.org>", "Royal Mail Delivery <parcels@example.org>", "Ann Postmaster <ann@b.c>",
     "postmasters@example.org", "the-postmaster@example.org", ""],
)  # fmt: skip
def test_messages_from_other_senders_are_not_flagged(sender: str) -> None:
    assert not read_message(f"From: {sender}\nSubject: Undelivered\n\nMy parcel".encode()).automated


def test_fields_that_crash_other_parsers_are_read() -> None:
    mail = read("broken_fields")
    assert mail.message_id == "[x]@y"
    assert "café" in mail.subject
    assert mail.sender_domain == "example.org"
    assert mail.recipient_domains == ()
    assert mail.new_text == "The body is still read."
    assert any("charset" in defect for defect in mail.defects)
    assert "unknown transfer encoding 'uphill'" in mail.defects


def test_8_bit_headers_and_windows_1252_declared_as_latin_1() -> None:
    mail = read("raw_8bit_header")
    assert mail.subject == "Grüße aus Köln"
    assert mail.new_text == "Die Tür ist geöffnet € 5."


def test_utf_8_declared_as_ascii() -> None:
    mail = read("mislabelled_utf8")
    assert mail.new_text == "Das Gerät ist kaputt."
    assert mail.defects == ("the text is not valid in its declared charset 'us-ascii'",)


def test_a_body_without_headers() -> None:
    mail = read("no_headers")
    assert mail.subject == ""
    assert mail.new_text == "Just a bare body\nwith bare\ncarriage returns and [31m controls."


def test_a_truncated_multipart() -> None:
    mail = read("unclosed_multipart")
    assert mail.new_text == "plain text"
    assert mail.attachments == (("photo.png", "image/png"),)
    assert "a multipart has no closing boundary" in mail.defects


def test_a_raw_message_and_its_parts_give_the_same_learning_parts() -> None:
    raw = read("reply_german_plain")
    body = (MESSAGES / "reply_german_plain.eml").read_text("utf-8").partition("\n\n")[2]
    parts = read_email(
        Email(
            subject="Re: Ihre Rechnung für Mai",
            from_="Lena Vogt <lena.vogt@example.net>",
            to="Service <service@example.org>",
            text=body,
        )
    )
    assert parts.learning_parts() == raw.learning_parts()
    assert (parts.sender_domain, parts.recipient_domains) == (raw.sender_domain, raw.recipient_domains)


def test_html_is_used_if_there_is_no_text() -> None:
    assert read_email(Email(html="<p>One</p><p>two</p>")).new_text == "One\ntwo"
    assert read_email(Email(text="plain", html="<p>One</p>")).new_text == "plain"


def test_raw_bytes_take_precedence_over_parts() -> None:
    assert read_email(Email(raw=b"Subject: a\n\nb")) == read_message(b"Subject: a\n\nb")


def test_the_digest_does_not_change_in_transit() -> None:
    raw = (MESSAGES / "reply_german_plain.eml").read_bytes()
    crlf = raw.replace(b"\n", b"\r\n")
    relayed = b"Received: from a by b\r\nX-Spam: no\r\n" + crlf + b"\r\n\r\n"
    digests = {read_message(copy).body_digest for copy in (raw, crlf, relayed)}
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"immer noch", b"jetzt"), (b"=C3=BCr_Mai", b"=C3=BCr_Juni"), (b"Lena Vogt <", b"Max Vogt <")],
)
def test_another_message_has_another_digest(old: bytes, new: bytes) -> None:
    raw = (MESSAGES / "reply_german_plain.eml").read_bytes()
    assert old in raw
    assert read_message(raw).body_digest != read_message(raw.replace(old, new)).body_digest


def test_learning_parts_contain_no_addresses() -> None:
    mail = MailDocument(
        subject="S",
        sender_domain="d.example",
        new_text="n" * 20,
        quoted_text="q",
        attachments=(("a b.pdf", "x/y"),),
    )
    assert [(part.text, part.weight) for part in mail.learning_parts()] == [
        ("S", 1.0),
        ("n" * 20, 1.0),
        ("a b.pdf", 1.0),
        ("q", 0.5),
    ]


def test_quoted_text_of_a_forward_with_hardly_any_new_text_counts_like_new_text() -> None:
    mail = MailDocument(subject="Fwd: Invoice", new_text="FYI", quoted_text="The invoice is wrong.")
    assert mail.learning_parts()[-1] == Part("The invoice is wrong.", 1.0, "quoted_text")
