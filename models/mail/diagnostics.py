"""What went wrong while a message was read: nothing of it stops the reading."""

from __future__ import annotations

from collections.abc import Callable
from email.errors import MessageError
from typing import TypeVar

from models.mail.limits import MAX_DEFECTS

T = TypeVar("T")

BROKEN_INPUT = (
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    AssertionError,
    RecursionError,
    MessageError,
)
"""What the standard library's header code and the text libraries are known to raise on malformed input."""


class Diagnostics:
    """Collects the defects of one message, in the order in which they are met, each once."""

    def __init__(self) -> None:
        self.defects: list[str] = []
        self.truncated = False

    def add_defect(self, text: str) -> None:
        """Notes something malformed, in words."""
        if text not in self.defects and len(self.defects) < MAX_DEFECTS:
            self.defects.append(text)

    def add_truncation(self, text: str) -> None:
        """Notes something that was left unread because it goes beyond a limit."""
        self.truncated = True
        self.add_defect(text)

    def guard(self, what: str, read: Callable[[], T], default: T) -> T:
        """The result of ``read``, or the default and a defect where the input breaks it.

        >>> diagnostics = Diagnostics()
        >>> diagnostics.guard("the answer", lambda: int("forty-two"), 0), diagnostics.defects
        (0, ['the answer cannot be read (ValueError)'])
        """
        try:
            return read()
        except BROKEN_INPUT as broken:
            self.add_defect(f"{what} cannot be read ({type(broken).__name__})")
            return default
