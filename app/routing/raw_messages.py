"""Read raw messages."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec

from app.errors import BadRequest
from models.data.files.containers import foreign_file
from models.mail import MailDocument, read_message
from models.mail.reader import has_header

_URLENCODED = re.compile(rb"[\w.%+*\[\]-]++=[^\s&=]++(?:&[\w.%+*\[\]-]++=[^\s&=]*+)*+\s*+\Z")
_MULTIPART = re.compile(
    rb"--[^\r\n]{1,200}+\r?\n(?:[\w-]++:[^\r\n]*+\r?\n){0,5}?Content-Disposition:[ \t]*+form-data",
    re.IGNORECASE,
)
_BLANK = b"\xef\xbb\xbf \t\r\n"
"""A byte order mark, and the white space of JSON."""


def read_raw_body(body: bytes, truncated: bool) -> MailDocument:
    """Read the body of a request that must be a raw message.

    Programs that mean another operation, or label their content wrongly, send JSON or forms. These would be
    messages without text, or with a text that no person wrote.

    Args:
        body: the first bytes of the body.
        truncated: whether it is longer.

    Raises:
        BadRequest: the body is JSON, a form, or a file such as a PDF, or there is neither a header field nor
            a text.
    """
    content = body.lstrip(_BLANK)
    if content.startswith(b"{") or (content.startswith((b"[", b'"')) and _is_json(content)):
        raise _not_a_message(
            'JSON; send it with "Content-Type: application/json", and the parts of the message in email'
        )
    if _URLENCODED.match(content) or _MULTIPART.match(content):
        raise _not_a_message("a form; send the raw message itself as the body")
    kind = foreign_file(body)
    if kind is not None and not has_header(body):
        raise _not_a_message(f"{kind.what}; send the e-mail that contains it")
    mail = read_raw(body, truncated)
    has_text = mail.subject or mail.new_text or mail.quoted_text or mail.attachments
    if not has_text and not has_header(body):
        raise _not_a_message("empty: it has neither a header field nor a text")
    return mail


def read_raw(body: bytes, truncated: bool) -> MailDocument:
    """Read a raw message. A message that is too long is still routed, by its first bytes."""
    mail = read_message(body)
    if truncated:
        mail = replace(
            mail,
            truncated=True,
            defects=(*mail.defects, f"the message is longer than {len(body):,} bytes; the rest was not read"),
        )
    return mail


def _is_json(content: bytes) -> bool:
    try:
        msgspec.json.decode(content, type=msgspec.Raw)
    except (ValueError, RecursionError):
        return False
    return True


def _not_a_message(reason: str) -> BadRequest:
    return BadRequest(
        f"the body is not a raw message (RFC 5322): it is {reason}",
        code="not_a_message",
        errors=[("", "is not a raw message")],
    )
