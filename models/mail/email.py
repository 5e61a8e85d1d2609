"""An e-mail as a client gives it, before anything is read into it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Email:
    """Either a raw message, or the parts of one that a client has already taken apart.

    Attributes:
        raw: the bytes of an RFC 5322 message; the other fields are empty then.
        subject: decoded subject line.
        from_: the From line, decoded.
        to: the To line, decoded.
        text: plain-text body.
        html: HTML body.
    """

    raw: bytes | None = None
    subject: str = ""
    from_: str = ""
    to: str = ""
    text: str = ""
    html: str = ""
