"""The document of a message, which learning and routing use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from models.mail.language import detect_language

MAIL_VERSION: Final = 2
"""Incremented if the same bytes would give different learning parts. A model stores its version."""

QUOTED_WEIGHT: Final = 0.5
"""Weight of quoted text, which is less relevant to the topic of a message than new text."""

MIN_NEW_CHARS: Final = 20
"""Characters of new text. With fewer, as in a forward with "FYI", quoted text counts like new text."""


@dataclass(frozen=True)
class MailDocument:
    """The content of a message.

    Attributes:
        subject: decoded subject on one line.
        sender_domain: domain of the author, in lower case; empty if unknown.
        recipient_domains: distinct domains of To and Cc.
        new_text: text that the author wrote.
        quoted_text: text that is quoted or forwarded, including attached messages.
        attachments: file name (may be empty) and content type of each attachment; the content is not read.
        automated: whether a program sent the message, so that an automatic reply could start a loop.
        mailing_list: the mailing list that delivered the message, or None.
        message_id: the Message-ID without brackets, or None.
        body_digest: SHA-256 (hexadecimal) of author, date, subject and body, which do not change in transit.
        defects: descriptions of what is malformed or was not read.
        truncated: whether some content was not read because it exceeds a limit.
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
        """ISO 639-1 code of the language, or None if it is uncertain. Detected on first access."""
        return detect_language(self.new_text) or detect_language(
            f"{self.subject}\n{self.new_text}\n{self.quoted_text}"
        )

    @property
    def quoted_weight(self) -> float:
        """Weight of the quoted text."""
        return QUOTED_WEIGHT if len(self.new_text) >= MIN_NEW_CHARS else 1.0

    def learning_parts(self) -> list[tuple[str, float]]:
        """Return the texts that a learner uses, each with the weight of its words.

        The names of attachments ("invoice-2291.pdf") are included. Addresses and domains are not: a learner
        would route by who wrote earlier messages instead of by the topic.

        >>> MailDocument(new_text="It is wrong, please help.", quoted_text="Hello").learning_parts()
        [('It is wrong, please help.', 1.0), ('Hello', 0.5)]
        """
        names = " ".join(name for name, _ in self.attachments)
        parts = [
            (self.subject, 1.0),
            (self.new_text, 1.0),
            (names, 1.0),
            (self.quoted_text, self.quoted_weight),
        ]
        return [(text, weight) for text, weight in parts if text]
