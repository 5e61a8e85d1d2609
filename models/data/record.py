"""One example as a reader yields it, and the checks of names, numbers and splits."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from models.data.digests import Document
from models.data.examples import Kind, SelectedBy, Split
from models.data.limits import IngestLimits
from models.errors import BadRecord
from models.mail.email import Email

MIN_WEIGHT, MAX_WEIGHT = 1e-6, 1e6
"""Limits of the weight of an example. Beyond them, the rounding errors of learners exceed small weights."""

_MAX_QUOTED_CHARS = 40


@dataclass(slots=True)
class Record:
    """One labelled document. Exactly one of ``text``, ``features`` and ``email`` is set.

    Attributes:
        line: 1-based number of the line, row or message in the file.
        labels: its relevant labels as they are written in the file; may contain duplicates.
        text: the document, if it is a text.
        features: the document, if it is numeric: values by feature name.
        email: the document, if it is an e-mail.
        id: its id, if the file has one.
        split: its split, if the file has one.
        unknown: labels of which it is not known whether they apply; may contain duplicates, and no relevant
            label.
        weight: how much it counts in a training, in examples; None for 1.
        file: the name of its file, if several files in a zip are read; otherwise empty.
        fold: its fold for a cross-validation, if the file has one.
        selected_by: what selected it for a review, if its labels are feedback on a decision.
    """

    line: int
    labels: Sequence[str]
    text: str | None = None
    features: Mapping[str, float] | None = None
    email: Email | None = None
    id: str | None = None
    split: Split | None = None
    unknown: Sequence[str] = ()
    weight: float | None = None
    file: str = ""
    fold: int | None = None
    selected_by: SelectedBy | None = None

    @property
    def document(self) -> Document:
        """The document."""
        document = self.email if self.text is None else self.text
        return (self.features or {}) if document is None else document

    @property
    def kind(self) -> Kind:
        """Kind of the document."""
        if self.text is not None:
            return "text"
        return "features" if self.features is not None else "email"


@dataclass(frozen=True)
class Declarations:
    """Facts about the whole file that a reader yields in addition to the records.

    Attributes:
        labels: labels that exist even if no record has them.
        features: features that exist even if they are 0 in every record.
        parents: the label tree as child to parent.
        warnings: warnings for the report.
    """

    labels: Sequence[str] = ()
    features: Sequence[str] = ()
    parents: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()


Item: TypeAlias = Record | BadRecord | Declarations
"""What a reader yields. A rejected record does not stop the reader."""

Items: TypeAlias = Iterator[Item]


class RecordError(Exception):
    """One record cannot be used. The reader catches this error and adds the line."""

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.field = field

    def at_line(self, line: int) -> BadRecord:
        """Return the rejected record for the report."""
        return BadRecord(line=line, reason=self.reason, field=self.field)


def check_name(value: object, what: str, field: str, max_length: int) -> str:
    """Return a label, a feature name or an id unchanged if it is valid.

    Args:
        value: the name.
        what: what the name is, for the error text, such as ``"a label"``.
        field: where the name is, as a JSON pointer or a column name.
        max_length: maximum number of characters.

    Raises:
        RecordError: the value is not a string, is blank or too long, or contains control characters.
    """
    if type(value) is not str:
        raise RecordError(f"{what} must be a string, not {json_type(value)}", field)
    if not value or value.isspace():
        raise RecordError(f"{what} must not be empty or blank", field)
    if len(value) > max_length:
        raise RecordError(f"{what} has {len(value):,} characters; the limit is {max_length:,}", field)
    if not value.isprintable() and any(unicodedata.category(c) in {"Cc", "Cs"} for c in value):
        raise RecordError(f"{what} must not contain control characters or unpaired surrogates", field)
    return value


def is_name(value: object) -> bool:
    r"""Return whether a value is a valid label, feature name or id of at most 512 characters.

    >>> is_name("help desk"), is_name(" "), is_name("a\nb")
    (True, False, False)
    """
    try:
        check_name(value, "a name", "", IngestLimits.name_length)
    except RecordError:
        return False
    return True


def check_number(value: object, what: str, field: str) -> float:
    """Return a finite number as float64.

    Raises:
        RecordError: the value is not a number, or not a finite one.
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


def check_weight(number: float, field: str) -> float | None:
    """Return the weight of an example; None for 1, which is the weight of an example without one.

    Raises:
        RecordError: the weight is outside the limits.

    >>> check_weight(2.0, "weight"), check_weight(1.0, "weight")
    (2.0, None)
    """
    if not MIN_WEIGHT <= number <= MAX_WEIGHT:
        raise RecordError(
            f"the weight must be a number from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}, not {number:g}; "
            "omit an example that must not count",
            field,
        )
    return None if number == 1.0 else number


def json_type(value: object) -> str:
    """Return the JSON type of a value with its article, for error texts.

    >>> json_type([1]), json_type(None)
    ('a list', 'null')
    """
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
    """Return a value in quotes for an error text, cut after 40 characters.

    >>> quoted("b" * 50)
    "'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb..."
    """
    text = repr(value) if isinstance(value, (str, int, float, bool)) or value is None else json_type(value)
    return text if len(text) <= _MAX_QUOTED_CHARS else text[:_MAX_QUOTED_CHARS] + "..."


def join_first(
    names: Sequence[Any],
    limit: int = 5,
    *,
    separator: str = ", ",
    form: Callable[[Any], str] = quoted,
) -> str:
    """Join the first names for an error or a warning, and state how many more there are.

    Args:
        names: the names.
        limit: maximum number of names.
        separator: the text between two names.
        form: returns the text of a name.

    >>> join_first(["a", "b", "c"], 2), join_first(["a", "b"], 2)
    ("'a', 'b', and 1 more", "'a', 'b'")
    """
    more = f", and {len(names) - limit:,} more" if len(names) > limit else ""
    return separator.join(map(form, names[:limit])) + more


def json_pointer(*parts: str | int) -> str:
    """Return a JSON pointer (RFC 6901).

    >>> json_pointer("features", "a/b")
    '/features/a~1b'
    """
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
