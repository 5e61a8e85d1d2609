"""From a message to its document. Whatever the bytes are, there is a document."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from models.mail.charsets import clean
from models.mail.diagnostics import Diagnostics
from models.mail.document import MailDocument
from models.mail.email import Email
from models.mail.headers import Headers, find_domains
from models.mail.html_text import html_to_text
from models.mail.limits import MAX_ADDRESSES_CHARS, MAX_BYTES, MAX_FIELD_CHARS, MAX_TEXT_CHARS
from models.mail.mime import Part, normalize_newlines, walk_parts
from models.mail.quoting import split_quoted_text

_HTML = frozenset({"text/html", "text/enriched", "text/richtext"})
_REPORTS = frozenset({"multipart/report", "message/delivery-status", "message/disposition-notification"})
_IDENTITY = ("from", "date", "subject")


def read_message(raw: bytes) -> MailDocument:
    r"""Reads an RFC 5322 message; malformed ones as far as they can be read.

    Args:
        raw: any bytes. Beyond the limits of :mod:`models.mail.limits` they are not looked at.

    Returns:
        A document for every input, its defects listed. The same bytes always give the same document.

    >>> read_message(b"Subject: Invoice\n\nIt is wrong.\n\n> Here it is.").new_text
    'It is wrong.'
    """
    diagnostics = Diagnostics()
    if len(raw) > MAX_BYTES:
        diagnostics.add_truncation(f"message beyond {MAX_BYTES} bytes")
    data = b"\n" + normalize_newlines(raw[:MAX_BYTES])
    if not data.strip():
        diagnostics.add_defect("empty message")
    found = list(walk_parts(data, diagnostics))
    headers = found[0].headers
    body = _body(found, diagnostics)
    return MailDocument(
        subject=headers.text("subject"),
        sender_domain=next(iter(headers.domains("from") or headers.domains("sender")), ""),
        recipient_domains=headers.domains("to", "cc"),
        new_text=body.new,
        quoted_text=body.quoted,
        attachments=body.attachments,
        automated=headers.automated or any(part.content_type in _REPORTS for part in found),
        mailing_list=headers.mailing_list,
        message_id=headers.message_id,
        body_digest=_digest(headers, data, found[0].start, raw[MAX_BYTES:]),
        defects=tuple(diagnostics.defects),
        truncated=diagnostics.truncated,
    )


def read_email(email: Email) -> MailDocument:
    """Reads a message given raw or in parts; both ways the same text gives the same learning parts.

    >>> read_email(Email(subject="Hi", from_="Ann <ann@example.org>", html="<p>Hello</p>")).sender_domain
    'example.org'
    """
    if email.raw is not None:
        return read_message(email.raw)
    diagnostics = Diagnostics()
    text = clean(email.text)
    if not _has_words(text) and email.html:
        text = clean(html_to_text(email.html, diagnostics))
    new, quoted = split_quoted_text(_shortened(text, diagnostics))
    fields = [email.subject, email.from_, email.to, email.text, email.html]
    return MailDocument(
        subject=" ".join(clean(email.subject[:MAX_FIELD_CHARS]).split()),
        sender_domain=next(iter(find_domains(email.from_[:MAX_ADDRESSES_CHARS])), ""),
        recipient_domains=find_domains(email.to[:MAX_ADDRESSES_CHARS]),
        new_text=new,
        quoted_text=quoted,
        body_digest=hashlib.sha256(json.dumps(fields).encode()).hexdigest(),
        defects=tuple(diagnostics.defects),
        truncated=diagnostics.truncated,
    )


@dataclass(frozen=True)
class _Body:
    """What the parts of a message add up to."""

    new: str
    quoted: str
    attachments: tuple[tuple[str, str], ...]


def _body(found: list[Part], diagnostics: Diagnostics) -> _Body:
    """Text and attachments of all parts; of an alternative the plain text, if there are words in it."""
    plain = {
        number: clean(part.text(diagnostics))
        for number, part in enumerate(found)
        if part.is_text and part.content_type not in _HTML
    }
    told_plainly = {found[number].alternative for number, text in plain.items() if _has_words(text)} - {None}
    own: list[str] = []
    forwarded: list[str] = []
    attachments: list[tuple[str, str]] = []
    for number, part in enumerate(found):
        texts = forwarded if part.forwarded else own
        if part.forwarded:
            texts.append(part.headers.text("subject"))
        if number in plain:
            texts.append(plain[number])
        elif part.is_text and part.alternative not in told_plainly:
            texts.append(clean(html_to_text(part.text(diagnostics), diagnostics)))
        elif part.is_attachment:
            attachments.append((part.headers.filename, part.content_type))
    new, quoted = split_quoted_text(_shortened(_joined(own), diagnostics))
    return _Body(new, _shortened(_joined([quoted, *forwarded]), diagnostics), tuple(attachments))


def _joined(texts: list[str]) -> str:
    return "\n\n".join(text.strip() for text in texts if text.strip())


def _shortened(text: str, diagnostics: Diagnostics) -> str:
    if len(text) <= MAX_TEXT_CHARS:
        return text
    diagnostics.add_truncation(f"text beyond {MAX_TEXT_CHARS} characters")
    return text[:MAX_TEXT_CHARS]


def _has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _digest(headers: Headers, data: bytes, body: int, beyond: bytes) -> str:
    """The same for every copy of a message, whatever the stations on its way added to headers or end."""
    digest = hashlib.sha256(json.dumps([headers.text(name) for name in _IDENTITY]).encode())
    digest.update(data[body:].rstrip())
    digest.update(beyond)
    return digest.hexdigest()
