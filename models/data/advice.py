"""Warnings and errors about a file that suggest another way to read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from models.errors import BadDataError

MAX_CHOICES = 1000
"""Maximum number of values that a suggestion lists. A file can have any number of columns."""

MAX_CHOICE_CHARS = 1000
"""Maximum length of such a value, that of a name in the options."""


@dataclass(frozen=True)
class Suggestion:
    """Another way to read a file.

    Attributes:
        field: the field of the request for a data set, such as ``options/label_separator``.
        value: the value to set; None if a person must choose it.
        choices: the values to choose from: the first ones, without very long ones.
    """

    field: str
    value: Any = None
    choices: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Keep the choices small, which are stored with the data set."""
        choices = (choice for choice in self.choices if len(choice) <= MAX_CHOICE_CHARS)
        object.__setattr__(self, "choices", list(islice(choices, MAX_CHOICES)))


class Advice(str):
    """A warning or an error with the suggestion that it makes in words.

    Args:
        text: the words.
        suggestion: the suggestion.
    """

    __slots__ = ("suggestion",)

    suggestion: Suggestion

    def __new__(cls, text: str, suggestion: Suggestion) -> Self:
        """Create the text."""
        advice = super().__new__(cls, text)
        advice.suggestion = suggestion
        return advice

    def __getnewargs__(self) -> tuple[str, Suggestion]:  # type: ignore[override]
        """Return what a copy is made from."""
        return str(self), self.suggestion


def suggestions_in(texts: Iterable[str]) -> dict[str, Suggestion]:
    """Return the suggestions in warnings or errors, each once, by the first text that makes it."""
    suggestions: dict[str, Suggestion] = {}
    for text in texts:
        if isinstance(text, Advice) and text.suggestion not in suggestions.values():
            suggestions[text] = text.suggestion
    return suggestions


def suggestions_of(error: BadDataError) -> dict[str, Suggestion]:
    """Return the suggestions of an error and of its records, by their texts."""
    return suggestions_in([error.message, *(record.reason for record in error.records)])


def with_prefix(prefix: str, text: str) -> str:
    """Return a warning or an error that begins with the name of its file."""
    return Advice(prefix + text, text.suggestion) if isinstance(text, Advice) else prefix + text
