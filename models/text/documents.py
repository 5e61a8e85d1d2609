"""The documents that text analysis accepts: strings, and documents with weighted fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from models.mail.fields import DEFAULT_FIELDS, MailFields, Part
from models.mail.language import detect_language


class FieldedDocument(Protocol):
    """A document with several fields, such as an e-mail with a subject, new text and quoted text."""

    @property
    def language(self) -> str | None:
        """The language of the document, as a code (``"de"``) or a name (``"german"``); None if unknown."""
        ...

    def learning_parts(self, fields: MailFields) -> Sequence[Part]:
        """Return the texts to learn from. Each has a positive weight."""
        ...


TextDocument: TypeAlias = "str | FieldedDocument"


def parts_of(document: TextDocument, fields: MailFields = DEFAULT_FIELDS) -> Sequence[Part]:
    """Return the texts of a document that are read. A string is one text.

    >>> parts_of("my invoice is wrong")
    [Part(text='my invoice is wrong', weight=1.0, field='text', prefix='')]
    """
    return [Part(document)] if isinstance(document, str) else document.learning_parts(fields)


def language_of(document: TextDocument) -> str | None:
    """Return the language of a document. The language of a string is detected; None means unknown.

    >>> language_of("Guten Tag, die Rechnung vom Mai stimmt leider nicht.")
    'de'
    """
    return detect_language(document) if isinstance(document, str) else document.language
