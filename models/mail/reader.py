"""Reads a message into its document. Every sequence of bytes yields a document."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from models.mail.addresses import find_domains
from models.mail.body import RawBytesDecoder, choose_text, combine
from models.mail.charsets import clean
from models.mail.diagnostics import Diagnostics
from models.mail.document import MailDocument
from models.mail.email import Email
from models.mail.headers import Headers, file_name, list_name
from models.mail.limits import MAX_ADDRESSES_CHARS, MAX_BYTES, MAX_FIELD_CHARS, MAX_PARTS
from models.mail.mime import normalize_newlines, remove_emlx_frame, walk_parts

_REPORTS = frozenset({"multipart/report", "message/delivery-status", "message/disposition-notification"})
_IDENTITY = ("from", "date", "subject")
_to_json = json.JSONEncoder().encode
_NOT_BLANK = re.compile(rb"\S")
_PIECE_BYTES = 2047
"""Bytes up to which hashlib keeps the interpreter's lock."""
_SMALL_BYTES = 2**15
"""Size up to which a switch to another thread and back takes longer than the digest."""


def read_message(raw: bytes) -> MailDocument:
    r"""Read an RFC 5322 message, or as much as possible of a malformed one.

    Args:
        raw: any bytes. Content that exceeds the limits in :mod:`models.mail.limits` is not read.

    Returns:
        The document with its defects. The same bytes always give the same document.

    >>> read_message(b"Subject: Invoice\n\nIt is wrong.\n\n> Here it is.").new_text
    'It is wrong.'
    """
    diagnostics = Diagnostics()
    if len(raw) > MAX_BYTES:
        diagnostics.add_truncation(f"the message is longer than {MAX_BYTES:,} bytes; the rest was not read")
    data = b"\n" + normalize_newlines(remove_emlx_frame(raw[:MAX_BYTES]))
    if data.isspace():
        diagnostics.add_defect("the message is empty")
    parts = list(walk_parts(data, diagnostics))
    headers = parts[0].headers
    decoder = RawBytesDecoder(parts)
    for part in parts:
        part.headers.decode_raw = decoder.decode
    body = combine(parts, diagnostics)
    subject = headers.text("subject")
    senders = find_domains(sender_line) if (sender_line := headers.address_lines("from")) else ()
    if not senders and (sender_line := headers.address_lines("sender")):
        senders = find_domains(sender_line)
    recipients = headers.address_lines("to", "cc")
    return MailDocument(
        subject=subject,
        sender_domain=senders[0] if senders else "",
        recipient_domains=find_domains(recipients) if recipients else (),
        recipient_lines=recipients,
        new_text=body.new,
        quoted_text=body.quoted,
        attachments=body.attachments,
        automated=headers.automated or any(part.content_type in _REPORTS for part in parts),
        mailing_list=headers.mailing_list,
        message_id=headers.message_id,
        body_digest=_digest(headers, data, parts[0].start, raw[MAX_BYTES:]),
        defects=tuple(diagnostics.defects),
        truncated=diagnostics.truncated,
        sender_line=sender_line,
        has_content=bool(subject) or _NOT_BLANK.search(data, parts[0].start) is not None,
    )


def read_email(email: Email) -> MailDocument:
    """Read a message that is raw or in parts. The same text gives the same learning parts in both forms.

    >>> read_email(Email(subject="Hi", from_="Ann <ann@example.org>", html="<p>Hello</p>")).sender_domain
    'example.org'
    """
    if email.raw is not None:
        return read_message(email.raw)
    diagnostics = Diagnostics()
    body = choose_text(email.text, email.html, diagnostics)
    fields: list[Any] = [email.subject, email.from_, email.to, email.text, email.html]
    if email.list_id or email.attachments:
        fields += [email.list_id, email.attachments]
    attachments = [
        (file_name(clean(name[:MAX_FIELD_CHARS])), clean(type_[:MAX_FIELD_CHARS]).strip().lower())
        for name, type_ in email.attachments[:MAX_PARTS]
    ]
    return MailDocument(
        subject=_on_one_line(email.subject),
        sender_domain=next(iter(find_domains(email.from_[:MAX_ADDRESSES_CHARS])), ""),
        recipient_domains=find_domains(email.to[:MAX_ADDRESSES_CHARS]),
        recipient_lines=email.to[:MAX_ADDRESSES_CHARS],
        new_text=body.new,
        quoted_text=body.quoted,
        attachments=(*body.attachments, *attachments)[:MAX_PARTS],
        mailing_list=list_name(_on_one_line(email.list_id)),
        body_digest=hashlib.sha256(_to_json(fields).encode()).hexdigest(),
        defects=tuple(diagnostics.defects),
        truncated=diagnostics.truncated,
        sender_line=email.from_[:MAX_ADDRESSES_CHARS],
        has_content=any(part.strip() for part in (email.subject, email.text, email.html or ""))
        or bool(attachments),
    )


def _on_one_line(field: str) -> str:
    return " ".join(clean(field[:MAX_FIELD_CHARS]).split())


def has_header(raw: bytes) -> bool:
    """Return whether :func:`read_message` finds a header field in a message."""
    data = b"\n" + normalize_newlines(remove_emlx_frame(raw[:MAX_BYTES]))
    return len(next(walk_parts(data, Diagnostics())).headers) > 0


def message_identity(raw: bytes) -> tuple[str | None, str]:
    """Return the Message-ID and the body digest of a message as :func:`read_message` does, in less time."""
    data = b"\n" + normalize_newlines(raw[:MAX_BYTES])
    part = next(walk_parts(data, Diagnostics()))
    return part.headers.message_id, _digest(part.headers, data, part.start, raw[MAX_BYTES:])


def message_key(message_id: str | None, body_digest: str) -> str:
    """Return a key that is equal for equal messages: a digest of the Message-ID and the body digest."""
    return hashlib.sha256(f"{message_id or ''}\n{body_digest}".encode()).hexdigest()


def _digest(headers: Headers, data: bytes, body: int, rest: bytes) -> str:
    """Return a digest that is equal for all copies of a message.

    Mail servers add headers and can change the end of the body in transit; the digest ignores both.
    """
    digest = hashlib.sha256(_to_json([headers.text(name) for name in _IDENTITY]).encode())
    content = data[body:].rstrip()
    if len(content) <= _SMALL_BYTES:
        for start in range(0, len(content), _PIECE_BYTES):
            digest.update(content[start : start + _PIECE_BYTES])
    else:
        digest.update(content)
    digest.update(rest)
    return digest.hexdigest()
