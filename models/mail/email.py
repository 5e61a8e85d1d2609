"""An e-mail as a client submits it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
        list_id: decoded List-Id line.
        attachments: file name and content type of each attachment; both may be empty.

    >>> Email(subject="Invoice 17", text="The amount is wrong.").subject
    'Invoice 17'
    """

    raw: bytes | None = None
    subject: str = ""
    from_: str = ""
    to: str = ""
    text: str = ""
    html: str = ""
    list_id: str = ""
    attachments: tuple[tuple[str, str], ...] = ()

    def parts(self) -> dict[str, Any]:
        """Return the JSON form of the parts that are not empty.

        >>> Email(from_="Ann", attachments=(("a.pdf", ""),)).parts()
        {'from': 'Ann', 'attachments': [{'name': 'a.pdf'}]}
        """
        parts = {
            "subject": self.subject,
            "from": self.from_,
            "to": self.to,
            "text": self.text,
            "html": self.html,
            "list_id": self.list_id,
            "attachments": [
                {key: value for key, value in (("name", name), ("content_type", type_)) if value}
                for name, type_ in self.attachments
            ],
        }
        return {name: part for name, part in parts.items() if part}
