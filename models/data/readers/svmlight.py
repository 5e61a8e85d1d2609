"""Multi-label svmlight (LIBSVM): ``label,label index:value index:value # comment``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from models.data.limits import IngestLimits
from models.data.readers.input_file import InputFile
from models.data.readers.lines import decode, numbered_lines
from models.data.readers.options import FormatOptions, Name
from models.data.record import Declarations, Items, Record, RecordError, check_name, quoted
from models.errors import BadDataError, BadRecord

_LARGEST_INDEX = 2**31 - 1
_TOKEN = re.compile(rb"\S+")


class SVMLightOptions(FormatOptions):
    """What the numbers of a svmlight file mean; without names, labels and features are called by number."""

    format: Literal["svmlight"]
    label_names: Annotated[list[Name], Field(min_length=1)] | None = None
    """The labels' names, in the order of their numbers."""
    feature_names: Annotated[list[Name], Field(min_length=1)] | None = None
    """The features' names, in the order of their indices."""
    first_label: Literal[0, 1] = 0
    """The number of the first of ``label_names``."""
    first_feature: Literal[0, 1] = 1
    """The index of the first of ``feature_names``."""


def read_svmlight(source: InputFile, options: SVMLightOptions, limits: IngestLimits) -> Items:
    """The records of a multi-label svmlight file.

    Indices may stand in any order; one that stands twice in a line is refused. Empty lines and lines of
    comment are passed over; a document without a label begins with white space or with its first feature.
    """
    labels = _Names(options.label_names, options.first_label, "label", limits)
    features = _Names(options.feature_names, options.first_feature, "feature", limits)
    yield Declarations(labels=options.label_names or (), features=options.feature_names or ())
    for item in numbered_lines(source.stream, limits.record_bytes):
        if isinstance(item, BadRecord):
            yield item
            continue
        number, line = item
        line = line.partition(b"#")[0]
        if not line or line.isspace():
            continue
        try:
            yield _record(line, number, labels, features)
        except RecordError as error:
            yield error.at(number)


def _record(line: bytes, number: int, labels: _Names, features: _Names) -> Record:
    tokens = line.split()
    labelled = not line[:1].isspace() and b":" not in tokens[0]
    record = Record(line=number, labels=_labels(tokens[0], labels) if labelled else [])
    pairs = tokens[1:] if labelled else tokens
    record.features = _at_once(line, pairs, features) or _one_by_one(line, pairs, features)
    return record


def _at_once(line: bytes, pairs: Sequence[bytes], features: _Names) -> dict[str, float] | None:
    """The features of a line without faults or names not met before; None sends it the slow way."""
    known = features.known
    try:
        values = {known[index]: float(value) for index, _, value in (pair.partition(b":") for pair in pairs)}
    except (KeyError, ValueError):
        return None
    is_plain = len(values) == len(pairs) and math.isfinite(sum(values.values())) and b"_" not in line
    return values if is_plain else None


def _one_by_one(line: bytes, pairs: Sequence[bytes], features: _Names) -> dict[str, float]:
    """The features of a line.

    Raises:
        RecordError: names the column.
    """
    values: dict[str, float] = {}
    for position, pair in enumerate(pairs):
        index, colon, value = pair.partition(b":")
        try:
            name = features.of(index)
            values[name] = _new_value(value if colon else b"", name, values)
        except RecordError as error:
            column = list(_TOKEN.finditer(line))[position - len(pairs)].start() + 1
            raise RecordError(f"column {column}: {quoted(pair.decode('latin-1'))}: {error.reason}") from error
    return values


def _labels(token: bytes, labels: _Names) -> list[str]:
    return [labels.of(part) for part in token.split(b",") if part]


def _new_value(text: bytes, name: str, values: Mapping[str, float]) -> float:
    if name in values:
        raise RecordError("the index stands twice")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or b"_" in text:
        raise RecordError("the value after the colon must be a finite number")
    return value


class _Names:
    """From what stands in the file to names.

    Attributes:
        known: those met so far.

    Args:
        names: in the order of their numbers; None calls everything as it stands in the file.
        first: the number of the first name.
        what: ``"label"`` or ``"feature"``.
        limits: caps on names.
    """

    def __init__(self, names: Sequence[str] | None, first: int, what: str, limits: IngestLimits) -> None:
        self._names = names
        self._first = first
        self._what = what
        self._limits = limits
        self.known: dict[bytes, str] = {}
        if names is not None and len(set(names)) < len(names):
            raise BadDataError(f"two of the {what} names given are the same")

    def of(self, text: bytes) -> str:
        """The name that a number stands for.

        Raises:
            RecordError: not a number, or one that has no name.
        """
        name = self.known.get(text)
        if name is None:
            name = self.known[text] = self._find(text)
        return name

    def _find(self, text: bytes) -> str:
        if self._what == "label" and self._names is None:
            return check_name(decode(text), "a label", "labels", self._limits.name_length)
        if not text.isdigit():
            raise RecordError(f"a {self._what} must be a whole number, not {quoted(text.decode('latin-1'))}")
        number = int(text) if len(text) <= 10 else _LARGEST_INDEX + 1
        if number > _LARGEST_INDEX:
            raise RecordError(f"a {self._what} number is at most {_LARGEST_INDEX:,}")
        if self._names is None:
            return str(number)
        if not 0 <= number - self._first < len(self._names):
            last = self._first + len(self._names) - 1
            raise RecordError(
                f"{self._what} {number} has no name; the names given are for {self._first} to {last}"
            )
        return self._names[number - self._first]
