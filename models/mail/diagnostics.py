"""Collects the defects of a message. Defects never stop the reader."""

from __future__ import annotations

from collections.abc import Callable
from email.errors import MessageError
from typing import TypeVar

from models.mail.limits import MAX_DEFECTS

T = TypeVar("T")

PARSER_ERRORS = (
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    AssertionError,
    RecursionError,
    MessageError,
)
"""Exceptions that the header code of the standard library and the text libraries raise on malformed input."""


class Diagnostics:
    """The distinct defects of one message, in the order in which they occur."""

    def __init__(self) -> None:
        self.defects: list[str] = []
        self.truncated = False

    def add_defect(self, text: str) -> None:
        """Add a description of malformed content."""
        if text not in self.defects and len(self.defects) < MAX_DEFECTS:
            self.defects.append(text)

    def add_truncation(self, text: str) -> None:
        """Add a description of content that was not read because it exceeds a limit."""
        self.truncated = True
        self.add_defect(text)

    def guard(self, what: str, read: Callable[[], T], default: T) -> T:
        """Return the result of ``read``. If it raises a parser error, add a defect and return the default.

        >>> diagnostics = Diagnostics()
        >>> diagnostics.guard("the count", lambda: int("forty-two"), 0), diagnostics.defects
        (0, ['the count cannot be read (ValueError)'])
        """
        try:
            return read()
        except PARSER_ERRORS as error:
            self.add_defect(f"{what} cannot be read ({type(error).__name__})")
            return default
