"""The documents that text analysis accepts: strings, and documents with weighted fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from models.mail.language import detect_language

QUOTE_MARK: Final = ">"
"""Begins the terms of fields with a weight below 1, if these are terms of their own. No word contains it."""


class FieldedDocument(Protocol):
    """A document with several fields, such as an e-mail with a subject, new text and quoted text."""

    @property
    def language(self) -> str | None:
        """The language of the document, as a code (``"de"``) or a name (``"german"``); None if unknown."""
        ...

    def learning_parts(self) -> Sequence[tuple[str, float]]:
        """Return the texts to learn from, each with the weight of its words. Weight 0 omits a text."""
        ...


TextDocument: TypeAlias = "str | FieldedDocument"


def parts_of(document: TextDocument) -> list[tuple[str, float]]:
    """Return the texts of a document with a positive weight, and their weights.

    >>> parts_of("my invoice is wrong")
    [('my invoice is wrong', 1.0)]
    """
    if isinstance(document, str):
        return [(document, 1.0)]
    return [(text, weight) for text, weight in document.learning_parts() if weight > 0]


def language_of(document: TextDocument) -> str | None:
    """Return the language of a document. The language of a string is detected; None means unknown.

    >>> language_of("Guten Tag, die Rechnung vom Mai stimmt leider nicht.")
    'de'
    """
    return detect_language(document) if isinstance(document, str) else document.language
