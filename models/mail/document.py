"""What is left of a message for learning and routing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from models.mail.language import detect_language

MAIL_VERSION: Final = 1
"""Raised whenever the same bytes would give other learning parts; a model keeps the one it learned from."""

QUOTED_WEIGHT: Final = 0.5
"""What was written before tells what a message is about, but less than what was written now."""


@dataclass(frozen=True)
class MailDocument:
    """A message, read.

    Attributes:
        subject: decoded, on one line.
        sender_domain: domain of the author, in lower case; empty if unknown.
        recipient_domains: domains of To and Cc, each once.
        new_text: what the author wrote.
        quoted_text: what was quoted or forwarded, attached messages included.
        attachments: for each its file name (may be empty) and content type; contents are not read.
        automated: whether a program sent it: answering it may start a loop.
        mailing_list: the list it came through.
        message_id: without brackets.
        body_digest: SHA-256 (hexadecimal) of author, date, subject and body, none of which change on the way.
        defects: what was malformed or cut, in words.
        truncated: whether a part was left unread because it goes beyond a limit.
    """

    subject: str = ""
    sender_domain: str = ""
    recipient_domains: tuple[str, ...] = ()
    new_text: str = ""
    quoted_text: str = ""
    attachments: tuple[tuple[str, str], ...] = ()
    automated: bool = False
    mailing_list: str | None = None
    message_id: str | None = None
    body_digest: str = ""
    defects: tuple[str, ...] = ()
    truncated: bool = False

    @cached_property
    def language(self) -> str | None:
        """ISO 639-1 code of the author's language, None if in doubt; looked for when first asked."""
        return detect_language(self.new_text) or detect_language(
            f"{self.subject}\n{self.new_text}\n{self.quoted_text}"
        )

    def learning_parts(self) -> list[tuple[str, float]]:
        """What a learner sees: texts, each with the weight of its words.

        Names of attachments are words of the message too ("invoice-2291.pdf"). Addresses and domains are left
        out: a learner would route by who wrote in the past rather than by what is asked.

        >>> MailDocument(subject="Invoice", quoted_text="Hello").learning_parts()
        [('Invoice', 1.0), ('Hello', 0.5)]
        """
        names = " ".join(name for name, _ in self.attachments)
        parts = [(self.subject, 1.0), (self.new_text, 1.0), (names, 1.0), (self.quoted_text, QUOTED_WEIGHT)]
        return [(text, weight) for text, weight in parts if text]
