"""Read raw messages."""

from __future__ import annotations

from dataclasses import replace

from models.mail import MailDocument, read_message


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
