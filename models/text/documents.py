"""What a text pipeline reads: a plain string, or a document with weighted fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from models.mail.language import detect_language


class FieldedDocument(Protocol):
    """A document of several fields, such as a mail with its subject, new text and quoted text."""

    @property
    def language(self) -> str | None:
        """The language of the document, as a code (``"de"``) or a name (``"german"``); None if unknown."""
        ...

    def learning_parts(self) -> Sequence[tuple[str, float]]:
        """The texts to learn from, each with the weight that its words have; 0 leaves a text out."""
        ...


TextDocument: TypeAlias = "str | FieldedDocument"


def parts_of(document: TextDocument) -> list[tuple[str, float]]:
    """The texts of a document and their weights; those of weight 0 (or less) are left out.

    >>> parts_of("my invoice is wrong")
    [('my invoice is wrong', 1.0)]
    """
    if isinstance(document, str):
        return [(document, 1.0)]
    return [(text, weight) for text, weight in document.learning_parts() if weight > 0]


def language_of(document: TextDocument) -> str | None:
    """The language of a document: what it says itself; that of a plain string is guessed, None if in doubt.

    >>> language_of("Guten Tag, die Rechnung vom Mai stimmt leider nicht.")
    'de'
    """
    return detect_language(document) if isinstance(document, str) else document.language
