"""An e-mail as a client submits it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Email:
    """Either a raw message, or the parts of a message that the client has already parsed.

    Attributes:
        raw: the bytes of an RFC 5322 message; if set, the other fields are empty.
        subject: decoded subject line.
        from_: decoded From line.
        to: decoded To line.
        text: plain-text body.
        html: HTML body.
    """

    raw: bytes | None = None
    subject: str = ""
    from_: str = ""
    to: str = ""
    text: str = ""
    html: str = ""
