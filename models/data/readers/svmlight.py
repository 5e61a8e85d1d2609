"""Reads multi-label svmlight (LIBSVM): ``label,label index:value index:value # comment``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from models.data.files.input_file import InputFile
from models.data.files.lines import decode_utf8, numbered_lines
from models.data.limits import IngestLimits
from models.data.options import FormatOptionsBase, Name
from models.data.record import Declarations, Items, Record, RecordError, check_name, quoted
from models.errors import BadDataError, BadRecord

_MAX_INDEX = 2**31 - 1
_TOKEN = re.compile(rb"\S+")
_HEAD = re.compile(rb"\s*(\d{1,12})\s+\d{1,12}\s+\d{1,12}\s*")
_MATRIX_HEAD = re.compile(rb"\s*\d{1,12}\s+\d{1,12}\s*")
_DECIMAL = re.compile(rb"[+-]?\d{1,15}\.\d{0,40}(?:[eE][+-]?\d{1,2})?")
_QUERY = b"qid:"


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
    line of a document without a label begins with white space or with its first feature. A query (``qid:7``)
    is ignored. The first line may state the numbers of examples, features and labels, as in the files of the
    extreme classification repository.

    Raises:
        BadDataError: the file is a matrix of features or of labels alone.
    """
    reader = _LineReader(options, limits)
    yield Declarations(labels=options.label_names or (), features=options.feature_names or ())
    n_announced: int | None = None
    n_lines = 0
    for item in numbered_lines(file.stream, limits.record_bytes):
        if isinstance(item, BadRecord):
            yield item
            continue
        number, line = item
        if b"#" in line:
            line = line.partition(b"#")[0]
        tokens = line.split()
        if not tokens:
            continue
        n_lines += 1
        if n_lines == 1 and (head := _HEAD.fullmatch(line)):
            n_announced = int(head[1])
            continue
        if n_lines == 1 and _MATRIX_HEAD.fullmatch(line):
            raise BadDataError(
                f"line {number}: this is the head line of a matrix without labels; begin each line with the "
                "labels of the example, such as 0,2, and delete the head line"
            )
        try:
            yield reader.record(line, tokens, number)
        except RecordError as error:
            yield error.at_line(number)
    warnings = reader.warnings()
    if n_announced is not None and n_announced != n_lines - 1:
        warnings.append(
            f"the first line announces {n_announced:,} examples, but the file has {n_lines - 1:,} lines with "
            "labels or features; check that the file is complete"
        )
    yield Declarations(warnings=warnings)


class _LineReader:
    """Reads lines, and counts what a warning must state."""

    def __init__(self, options: SVMLightOptions, limits: IngestLimits) -> None:
        self._labels = _NameTable(options.label_names, options.first_label, "label", limits)
        self._features = _NameTable(options.feature_names, options.first_feature, "feature", limits)
        self._n_queries = 0

    def record(self, line: bytes, tokens: Sequence[bytes], number: int) -> Record:
        """Return the record of a line with at least one token.

        Raises:
            RecordError: a label or a pair is invalid; names the column.
        """
        has_labels = not line[:1].isspace() and b":" not in tokens[0]
        labels = _parse_labels(tokens[0], self._labels) if has_labels else []
        pairs = tokens[1:] if has_labels else tokens
        features = _parse_fast(line, pairs, self._features)
        if features is None:
            if has_labels and pairs and b":" not in pairs[0]:
                more = _more_labels(line, tokens)
                labels += _parse_labels(b",".join(more), self._labels)
                pairs = pairs[len(more) :]
            if pairs and pairs[0].startswith(_QUERY):
                self._n_queries += 1
                pairs = pairs[1:]
                features = _parse_fast(line, pairs, self._features)
        if features is None:
            features = _parse_strict(line, pairs, self._features)
        return Record(line=number, labels=labels, features=features)

    def warnings(self) -> list[str]:
        """Return the warnings about all lines so far."""
        warnings = []
        if self._n_queries:
            warnings.append(f"lines with a query (qid): {self._n_queries:,}; the queries were ignored")
        if set(self._labels.known.values()) == {"-1", "1"}:
            warnings.append(
                "the labels are 1 and -1, as in a file with two classes; they were read as two labels; "
                "if -1 means that the label does not apply, delete -1 from the beginning of each line"
            )
        return warnings


def _parse_fast(line: bytes, pairs: Sequence[bytes], features: _NameTable) -> dict[str, float] | None:
    """Return the features of a valid line whose indices are all known; None if ``_parse_strict`` must run."""
    known = features.known
    try:
        values = {known[index]: float(value) for index, _, value in (pair.partition(b":") for pair in pairs)}
    except (KeyError, ValueError):
        return None
    is_valid = len(values) == len(pairs) and math.isfinite(sum(values.values())) and b"_" not in line
    return values if is_valid else None


def _more_labels(line: bytes, tokens: Sequence[bytes]) -> list[bytes]:
    """Return the labels after the first token, in a line with white space after the commas.

    Raises:
        RecordError: a token without a colon is not separated by a comma from the label before it.
    """
    labels: list[bytes] = []
    for position, token in enumerate(tokens[1:], 1):
        if b":" in token:
            break
        if not tokens[position - 1].endswith(b",") and not token.startswith(b","):
            raise _error_at(
                line,
                position,
                token,
                "a feature needs a colon, as in 2:1, and a label a comma before it, as in 0,2",
            )
        labels.append(token)
    return labels


def _parse_strict(line: bytes, pairs: Sequence[bytes], features: _NameTable) -> dict[str, float]:
    """Return the features of a line.

    Raises:
        RecordError: a pair is invalid; names the column.
    """
    values: dict[str, float] = {}
    for position, pair in enumerate(pairs):
        index, colon, value = pair.partition(b":")
        try:
            if not colon and position == 0 and line[:1].isspace():
                raise RecordError(
                    "a feature needs a colon, as in 2:1; if this is a label, delete the white space at the "
                    "beginning of the line"
                )
            name = features.name_of(index)
            values[name] = _parse_value(value if colon else b"", name, values)
        except RecordError as error:
            raise _error_at(line, position - len(pairs), pair, error.reason) from error
    return values


def _error_at(line: bytes, position: int, token: bytes, reason: str) -> RecordError:
    column = list(_TOKEN.finditer(line))[position].start() + 1
    return RecordError(f"column {column}: {quoted(token.decode('latin-1'))}: {reason}")


def _parse_labels(token: bytes, labels: _NameTable) -> list[str]:
    known = labels.known
    parts = token.split(b",")
    try:
        return [known[part] for part in parts]
    except KeyError:
        return [labels.name_of(part) for part in parts if part]


def _plain_number(text: bytes) -> bytes:
    """Return a label without what makes a difference only in writing: ``+1`` and ``1.0`` are ``1``.

    Raises:
        RecordError: the label is a fraction.
    """
    if not _DECIMAL.fullmatch(text):
        return text.removeprefix(b"+") if text[1:].isdigit() else text
    value = float(text)
    if not value.is_integer():
        raise RecordError(
            f"the label {quoted(text.decode())} is a fraction; a label must be a whole number or a name"
        )
    return b"%d" % value


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
        if self._what == "label":
            text = _plain_number(text)
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
