"""Reads multi-label svmlight (LIBSVM): ``label,label index:value index:value # comment``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from models.data.limits import IngestLimits
from models.data.readers.input_file import InputFile
from models.data.readers.lines import decode_utf8, numbered_lines
from models.data.readers.options import FormatOptionsBase, Name
from models.data.record import Declarations, Items, Record, RecordError, check_name, quoted
from models.errors import BadDataError, BadRecord

_MAX_INDEX = 2**31 - 1
_TOKEN = re.compile(rb"\S+")


class SVMLightOptions(FormatOptionsBase):
    """Names for the numbers in a svmlight file. Without names, each number is its own name."""

    format: Literal["svmlight"]
    label_names: Annotated[list[Name], Field(min_length=1)] | None = None
    """The names of the labels, in the order of their numbers."""
    feature_names: Annotated[list[Name], Field(min_length=1)] | None = None
    """The names of the features, in the order of their indices."""
    first_label: Literal[0, 1] = 0
    """The number of the first name in ``label_names``."""
    first_feature: Literal[0, 1] = 1
    """The index of the first name in ``feature_names``."""


def read_svmlight(file: InputFile, options: SVMLightOptions, limits: IngestLimits) -> Items:
    """Yield the records of a multi-label svmlight file.

    Indices can be in any order, but must not occur twice in a line. Empty lines and comments are skipped. The
    line of a document without a label begins with white space or with its first feature.
    """
    labels = _NameTable(options.label_names, options.first_label, "label", limits)
    features = _NameTable(options.feature_names, options.first_feature, "feature", limits)
    yield Declarations(labels=options.label_names or (), features=options.feature_names or ())
    for item in numbered_lines(file.stream, limits.record_bytes):
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
            yield error.at_line(number)


def _record(line: bytes, number: int, labels: _NameTable, features: _NameTable) -> Record:
    tokens = line.split()
    has_labels = not line[:1].isspace() and b":" not in tokens[0]
    record = Record(line=number, labels=_parse_labels(tokens[0], labels) if has_labels else [])
    pairs = tokens[1:] if has_labels else tokens
    record.features = _parse_fast(line, pairs, features) or _parse_strict(line, pairs, features)
    return record


def _parse_fast(line: bytes, pairs: Sequence[bytes], features: _NameTable) -> dict[str, float] | None:
    """Return the features of a valid line whose indices are all known; None if ``_parse_strict`` must run."""
    known = features.known
    try:
        values = {known[index]: float(value) for index, _, value in (pair.partition(b":") for pair in pairs)}
    except (KeyError, ValueError):
        return None
    is_valid = len(values) == len(pairs) and math.isfinite(sum(values.values())) and b"_" not in line
    return values if is_valid else None


def _parse_strict(line: bytes, pairs: Sequence[bytes], features: _NameTable) -> dict[str, float]:
    """Return the features of a line.

    Raises:
        RecordError: a pair is invalid; names the column.
    """
    values: dict[str, float] = {}
    for position, pair in enumerate(pairs):
        index, colon, value = pair.partition(b":")
        try:
            name = features.name_of(index)
            values[name] = _parse_value(value if colon else b"", name, values)
        except RecordError as error:
            column = list(_TOKEN.finditer(line))[position - len(pairs)].start() + 1
            raise RecordError(f"column {column}: {quoted(pair.decode('latin-1'))}: {error.reason}") from error
    return values


def _parse_labels(token: bytes, labels: _NameTable) -> list[str]:
    return [labels.name_of(part) for part in token.split(b",") if part]


def _parse_value(text: bytes, name: str, values: Mapping[str, float]) -> float:
    if name in values:
        raise RecordError("the index occurs twice in the line")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or b"_" in text:
        raise RecordError("the value after the colon must be a finite number")
    return value


class _NameTable:
    """Maps the numbers in the file to names.

    Attributes:
        known: the names of the numbers so far.

    Args:
        names: the names in the order of their numbers; None uses each number as its own name.
        first: the number of the first name.
        what: ``"label"`` or ``"feature"``.
        limits: limits on names.
    """

    def __init__(self, names: Sequence[str] | None, first: int, what: str, limits: IngestLimits) -> None:
        self._names = names
        self._first = first
        self._what = what
        self._limits = limits
        self.known: dict[bytes, str] = {}
        if names is not None and len(set(names)) < len(names):
            raise BadDataError(f"the option {what}_names contains the same name twice; rename one")

    def name_of(self, text: bytes) -> str:
        """Return the name of a number.

        Raises:
            RecordError: the text is not a number, or the number has no name.
        """
        name = self.known.get(text)
        if name is None:
            name = self.known[text] = self._look_up(text)
        return name

    def _look_up(self, text: bytes) -> str:
        if self._what == "label" and self._names is None:
            return check_name(decode_utf8(text), "a label", "labels", self._limits.name_length)
        if not text.isdigit():
            raise RecordError(
                f"the {self._what} must be a whole number, not {quoted(text.decode('latin-1'))}"
            )
        number = int(text) if len(text) <= 10 else _MAX_INDEX + 1
        if number > _MAX_INDEX:
            raise RecordError(f"the {self._what} number must be at most {_MAX_INDEX:,}")
        if self._names is None:
            return str(number)
        if not 0 <= number - self._first < len(self._names):
            last = self._first + len(self._names) - 1
            raise RecordError(
                f"{self._what} {number} has no name; the option {self._what}_names covers "
                f"{self._first} to {last}"
            )
        return self._names[number - self._first]
