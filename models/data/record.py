"""One example as a reader hands it on, and what may stand in it."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from models.data.examples import Kind, Split
from models.errors import BadRecord
from models.mail.email import Email


@dataclass(slots=True)
class Record:
    """One labelled document. Exactly one of ``text``, ``features`` and ``email`` is given.

    Attributes:
        line: 1-based line, row or message number in the file.
        labels: its relevant labels as they stand in the file.
        id: its id, where the file gives one.
        split: the part it belongs to, where the file gives one.
    """

    line: int
    labels: Sequence[str]
    text: str | None = None
    features: Mapping[str, float] | None = None
    email: Email | None = None
    id: str | None = None
    split: Split | None = None

    @property
    def kind(self) -> Kind:
        """What the document is."""
        if self.text is not None:
            return "text"
        return "features" if self.features is not None else "email"


@dataclass(frozen=True)
class Declarations:
    """What the head of a file says of all its records.

    Attributes:
        labels: labels that exist even where no record bears them.
        features: features that exist even where every record has a zero there.
        parents: the label tree, child to parent.
        remarks: sentences for the report.
    """

    labels: Sequence[str] = ()
    features: Sequence[str] = ()
    parents: Mapping[str, str] = field(default_factory=dict)
    remarks: Sequence[str] = ()


Item: TypeAlias = Record | BadRecord | Declarations
"""What readers yield; a record that is refused does not end the reading."""

Items: TypeAlias = Iterator[Item]


class RecordError(Exception):
    """One record cannot be used; caught by the reader, which knows the line."""

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.field = field

    def at(self, line: int) -> BadRecord:
        """The record to report."""
        return BadRecord(line=line, reason=self.reason, field=self.field)


def check_name(value: object, what: str, field: str, max_length: int) -> str:
    """A label, a feature name or an id, unchanged.

    Raises:
        RecordError: not a string, blank, too long, or with control characters.
    """
    if type(value) is not str:
        raise RecordError(f"{what} must be a string, not {json_type(value)}", field)
    if not value or value.isspace():
        raise RecordError(f"{what} must not be empty", field)
    if len(value) > max_length:
        raise RecordError(f"{what} has {len(value):,} characters; at most {max_length:,} are allowed", field)
    if not value.isprintable() and any(unicodedata.category(c) in {"Cc", "Cs"} for c in value):
        raise RecordError(f"{what} must not have control characters or lone surrogates", field)
    return value


def check_number(value: object, what: str, field: str) -> float:
    """A finite number as float64.

    Raises:
        RecordError: not a number, or not a finite one.
    """
    if type(value) is not float and type(value) is not int:
        raise RecordError(f"{what} must be a number, not {json_type(value)}", field)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RecordError(f"{what} must be a finite number that fits in 64 bits", field)
    return number


def check_split(value: object, field: str) -> Split:
    """``"train"`` or ``"test"``.

    Raises:
        RecordError: anything else.
    """
    if value == "train":
        return "train"
    if value == "test":
        return "test"
    raise RecordError(f'the split must be "train" or "test", not {quoted(value)}', field)


def json_type(value: object) -> str:
    """What a decoded JSON value is, in a word or two."""
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return "null" if value is None else names.get(type(value), type(value).__name__)


def quoted(value: object) -> str:
    """A value quoted for a message, cut after 40 characters.

    >>> quoted("b" * 50)
    "'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb..."
    """
    quoted = repr(value) if isinstance(value, (str, int, float, bool)) or value is None else json_type(value)
    return quoted if len(quoted) <= 40 else quoted[:40] + "..."


def pointer(*parts: str | int) -> str:
    """A JSON pointer (RFC 6901).

    >>> pointer("features", "a/b")
    '/features/a~1b'
    """
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
