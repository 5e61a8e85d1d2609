"""The document of a message, which learning and routing use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from models.mail.addresses import find_addresses
from models.mail.fields import DEFAULT_FIELDS, FieldName, MailFields, Part
from models.mail.language import detect_language

MAIL_VERSION: Final = 2
"""Incremented if the same bytes would give different learning parts. A model stores its version."""

MIN_NEW_CHARS: Final = 20
"""Characters of new text. With fewer, as in a forward with "FYI", quoted text counts like new text."""


@dataclass(frozen=True)
class MailDocument:
    """The content of a message.

    Attributes:
        subject: decoded subject on one line.
        sender_domain: domain of the author, in lower case; empty if unknown.
        sender_line: the field From or Sender, from which ``sender`` reads the address.
        recipient_domains: distinct domains of To and Cc.
        recipient_lines: the fields To and Cc, from which ``recipients`` reads the addresses.
        new_text: text that the author wrote.
        quoted_text: text that is quoted or forwarded, including attached messages.
        attachments: file name (may be empty) and content type of each attachment; the content is not read.
        automated: whether a program sent the message, so that an automatic reply could start a loop.
        mailing_list: the mailing list that delivered the message, or None.
        message_id: the Message-ID without brackets, or None.
        body_digest: SHA-256 (hexadecimal) of author, date, subject and body, which do not change in transit.
        defects: descriptions of what is malformed or was not read.
        truncated: whether some content was not read because it exceeds a limit.
        has_content: whether it has a subject or a body, even one without text.
    """

    subject: str = ""
    sender_domain: str = ""
    recipient_domains: tuple[str, ...] = ()
    recipient_lines: str = ""
    new_text: str = ""
    quoted_text: str = ""
    attachments: tuple[tuple[str, str], ...] = ()
    automated: bool = False
    mailing_list: str | None = None
    message_id: str | None = None
    body_digest: str = ""
    defects: tuple[str, ...] = ()
    truncated: bool = False
    sender_line: str = ""
    has_content: bool = True

    @property
    def sender(self) -> str | None:
        """Address of the author in lower case; None if it is unknown.

        >>> MailDocument(sender_line="Ann <Ann@Example.org>").sender
        'ann@example.org'
        """
        return next(iter(find_addresses(self.sender_line)), None)

    @cached_property
    def language(self) -> str | None:
        """ISO 639-1 code of the language, or None if it is uncertain. Detected on first access."""
        return detect_language(self.new_text) or detect_language(
            f"{self.subject}\n{self.new_text}\n{self.quoted_text}"
        )

    @cached_property
    def recipients(self) -> tuple[str, ...]:
        """Distinct addresses of To and Cc, in lower case. Read on first access, because few models need them.

        >>> MailDocument(recipient_lines="Billing <billing@example.org>, ann@example.org").recipients
        ('billing@example.org', 'ann@example.org')
        """
        return find_addresses(self.recipient_lines)

    def field_text(self, name: FieldName) -> str:
        """Return a field as text; empty if the message does not have it.

        >>> MailDocument(attachments=(("a.pdf", "application/pdf"),)).field_text("attachment_types")
        'application/pdf'
        """
        return _TEXTS[name](self)

    def learning_parts(self, fields: MailFields = DEFAULT_FIELDS) -> list[Part]:
        """Return the texts that a learner uses, each with the weight of its words.

        By default, the names of attachments ("invoice-2291.pdf") are included. Addresses and domains are not:
        a learner would route by who wrote earlier messages instead of by the topic. If there is hardly any
        new text, quoted text is used like new text.

        Args:
            fields: which fields are read.

        >>> mail = MailDocument(new_text="It is wrong, please help.", quoted_text="Hello")
        >>> [(part.text, part.weight) for part in mail.learning_parts()]
        [('It is wrong, please help.', 1.0), ('Hello', 0.5)]
        """
        uses = fields.usual if len(self.new_text) >= MIN_NEW_CHARS else fields.short
        return [
            Part(text, weight, name, prefix) for name, weight, prefix in uses if (text := _TEXTS[name](self))
        ]

    def learning_text(self) -> str:
        r"""Return the message as one text, for a pipeline that is trained on texts.

        >>> MailDocument(subject="Invoice", new_text="It is wrong, please help.").learning_text()
        'Invoice\nIt is wrong, please help.'
        """
        return "\n".join(part.text for part in self.learning_parts())


_TEXTS: Final[Mapping[str, Callable[[MailDocument], str]]] = {
    "subject": lambda mail: mail.subject,
    "new_text": lambda mail: mail.new_text,
    "attachment_names": lambda mail: " ".join(name for name, _ in mail.attachments),
    "quoted_text": lambda mail: mail.quoted_text,
    "sender_domain": lambda mail: mail.sender_domain,
    "recipients": lambda mail: " ".join(mail.recipients),
    "list_id": lambda mail: mail.mailing_list or "",
    "attachment_types": lambda mail: " ".join(content_type for _, content_type in mail.attachments),
}
"""The text of each field."""
