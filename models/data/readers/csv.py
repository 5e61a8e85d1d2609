"""Reads CSV: a header row, then one row for each example (RFC 4180)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from io import BufferedReader
from typing import Annotated, Literal, Self, cast

from pydantic import Field, model_validator

from models.data.advice import Advice, Suggestion
from models.data.files.input_file import InputFile
from models.data.files.lines import BOM, as_utf8, guess_utf16
from models.data.limits import IngestLimits
from models.data.options import Name, Names, TableOptions
from models.data.record import Declarations, Items, RecordError, join_first
from models.data.record_mapper import RecordMapper, Table, ValueSyntax
from models.errors import BadDataError, BadRecord

_DELIMITERS: tuple[str, ...] = (",", ";", "\t", "|")
_QUOTED = re.compile(r'"[^"]*"')
_MAX_LISTED = 10
_SEPARATOR_LINE = re.compile(r'"?sep=([\t !#-~])"?\r?\n?', re.IGNORECASE)

# Generators of clients make names of constants from values that are words; other values need names.
Delimiter = Annotated[
    Literal[",", ";", "\t", "|"],
    Field(json_schema_extra={"x-enum-varnames": ["COMMA", "SEMICOLON", "TAB", "PIPE"]}),
]
DecimalOption = Annotated[Literal[".", ","], Field(json_schema_extra={"x-enum-varnames": ["POINT", "COMMA"]})]


class CSVOptions(TableOptions):
    """Options of a CSV file."""

    format: Literal["csv"]
    labels_in: Names | None = None
    """Several columns that each contain labels, such as a first and a second department. Set only one of
    ``labels``, ``labels_in`` and ``label_columns``."""
    columns: Annotated[list[Name | None], Field(min_length=1)] | None = None
    """The names of the columns of a file without a header row, in their order; null for a column to omit."""
    delimiter: Delimiter | None = None
    """The delimiter between cells. By default, the delimiter in the line ``sep=``, which Excel writes, or
    else the delimiter that occurs most often in the header row."""
    decimal: DecimalOption = "."
    """The decimal mark of numbers."""
    encoding: Literal["utf-8", "utf-16", "cp1252", "latin-1"] = "utf-8"
    """The character encoding, unless the file has a byte order mark. Older spreadsheets use ``cp1252``."""

    @model_validator(mode="after")
    def _labels_in_one_way(self) -> Self:
        if self.labels_in is not None and (self.labels is not None or self.label_columns is not None):
            raise ValueError("set only one of labels, labels_in and label_columns")
        return self


def read_csv(file: InputFile, options: CSVOptions, limits: IngestLimits) -> Items:
    """Yield the records of a CSV file. Empty lines are skipped."""
    # The csv module has one field limit for the process, 128 KiB by default. _Lines limits the records.
    csv.field_size_limit(max(csv.field_size_limit(), limits.record_bytes))
    lines = _Lines(file, options.encoding, limits.record_bytes)
    first = lines.read_first()
    delimiter: str | None = options.delimiter
    if separator := _SEPARATOR_LINE.fullmatch(first):
        delimiter = delimiter or separator[1]
        first = lines.read_first()
    delimiter = delimiter or _find_delimiter(first, options.columns)
    lines.push_back(first)
    table = csv.reader(lines, delimiter=delimiter, strict=True)
    if options.columns is None:
        names = _read_header(table)
    else:
        _reject_header(first, delimiter, options.columns)
        names = [name or "" for name in options.columns]
    syntax = ValueSyntax(
        empty_features="empty feature cells",
        empty_flags="empty cells in label columns",
        unknown="-1 or ?",
        no="0",
        decimal=options.decimal,
    )
    mapper = RecordMapper(options, limits, syntax, Table(names, range(len(names))))
    yield mapper.declarations
    header = _Header(names)
    while True:
        line = lines.begin_record()
        try:
            cells = next(table)
            if cells:
                if lines.decoding_error is not None:
                    raise RecordError(lines.decoding_error, _undecoded_column(names, cells))
                if len(cells) != len(names) or header.unnamed:
                    cells = header.fit(cells)
                yield mapper.record(cells, line)
        except StopIteration:
            break
        except csv.Error as error:
            yield BadRecord(line, f"invalid quotes: {error}")
        except RecordError as error:
            yield error.at_line(line)
    yield mapper.final_declarations()
    yield Declarations(warnings=header.warnings())


def _find_delimiter(first: str, columns: Sequence[str | None] | None) -> str:
    """Return the most frequent delimiter, or the one that cuts a row into the columns that the user names."""
    if columns is not None:
        for delimiter in _DELIMITERS:
            if len(_cells(first, delimiter)) == len(columns):
                return delimiter
    return max(_DELIMITERS, key=_QUOTED.sub("", first).count)


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # the reader of all rows reports the line
        return []


def _read_header(table: Iterator[list[str]]) -> list[str]:
    try:
        return [name.strip() for name in next(table)]
    except (csv.Error, StopIteration) as error:
        raise BadDataError(f"the header row cannot be read: {error}") from error


def _reject_header(first: str, delimiter: str, columns: Sequence[str | None]) -> None:
    """Reject a header row in a file for which the user names the columns: it would be read as an example."""
    cells = _cells(first, delimiter)
    names = [(cell.strip(), name) for cell, name in zip(cells, columns, strict=False) if name is not None]
    if names and all(cell.casefold() == name.casefold() for cell, name in names):
        raise BadDataError(
            "the first row contains the names in the option columns; omit this option, "
            "which is for files without a header row"
        )


def _undecoded_column(names: Sequence[str], cells: Sequence[str]) -> str | None:
    return next((name for name, cell in zip(names, cells, strict=False) if not _is_text(cell)), None)


def _is_text(cell: str) -> bool:
    """Return whether a cell has no surrogates, which stand for bytes that cannot be decoded."""
    return cell.isascii() or not any("\udc80" <= c <= "\udcff" for c in cell)


class _Header:
    """Fits rows to the columns, and watches the columns without a name.

    Args:
        names: the names of the columns, empty for a column without a name.

    Attributes:
        unnamed: the positions of the columns without a name.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._n_columns = len(names)
        self._n_named = max((j for j, name in enumerate(names, 1) if name), default=0)
        self.unnamed = [j for j, name in enumerate(names) if not name]
        self._unnamed_with_content: set[int] = set()

    def fit(self, cells: list[str]) -> list[str]:
        """Add or remove cells at the end that spreadsheets omit or add: those without a name or content.

        Raises:
            RecordError: the row has too few or too many cells.
        """
        if len(cells) != self._n_columns:
            if len(cells) < self._n_named or any(cells[self._n_columns :]):
                raise RecordError(
                    f"the row has {len(cells)} cells, but the table has {self._n_columns} columns; "
                    "check the delimiter, and cells with a delimiter that are not in quotes"
                )
            cells = (cells + [""] * (self._n_columns - len(cells)))[: self._n_columns]
        self._unnamed_with_content.update(j for j in self.unnamed if cells[j])
        return cells

    def warnings(self) -> list[str]:
        """Return the warning about columns without a name."""
        if not self._unnamed_with_content:
            return []
        numbers = [j + 1 for j in sorted(self._unnamed_with_content)]
        warning = (
            f"columns without a name, which were not read: {join_first(numbers, _MAX_LISTED)}; "
            "if they are not row numbers, name them in the header row"
        )
        return [warning]


class _Lines:
    """Decodes lines for the csv module, which cannot limit bytes or continue after a decoding error.

    Attributes:
        decoding_error: why the last record cannot be decoded, or None.
    """

    def __init__(self, file: InputFile, encoding: str, max_bytes: int) -> None:
        self._stream = file.stream
        self._encoding = encoding
        if encoding == "utf-16":
            start = cast("BufferedReader", file.stream).peek(2**16)
            self._encoding = "utf-8"
            if not start.startswith(BOM):
                self._stream = as_utf8(file.stream, guess_utf16(start))
        self._max_bytes = max_bytes
        self._number = 0
        self._n_bytes = 0
        self._first_line = 1
        self._pushed_back = ""
        self.decoding_error: str | None = None

    def read_first(self) -> str:
        """Read the next line before the first record.

        Raises:
            BadDataError: the file is empty, or the line cannot be decoded.
        """
        line = self._stream.readline(self._max_bytes)
        if not line:
            raise BadDataError("the file is empty; it needs a header row and at least one example")
        self._number += 1
        if line.startswith(BOM):
            self._encoding = "utf-8"
            line = line.removeprefix(BOM)
        try:
            return line.decode(self._encoding)
        except UnicodeDecodeError as error:
            message = f"the first line is not valid {self._encoding}: {error}; set the option encoding"
            raise BadDataError(self._advise(message)) from error

    def push_back(self, line: str) -> None:
        """Let the rows begin with a line that has been read."""
        self._number -= 1
        self._pushed_back = line

    def __iter__(self) -> Iterator[str]:
        """Yield all lines that are left."""
        self._number += 1
        yield self._pushed_back
        while line := self._stream.readline(self._max_bytes + 1):
            self._number += 1
            self._n_bytes += len(line)
            if self._n_bytes > self._max_bytes:
                raise BadDataError(
                    f"line {self._first_line}: the record is longer than the limit of {self._max_bytes:,} "
                    "bytes; check for a missing closing quote"
                )
            try:
                yield line.decode(self._encoding)
            except UnicodeDecodeError as error:
                column = len(line[: error.start].decode(self._encoding)) + 1
                byte = line[error.start]
                self.decoding_error = self._advise(
                    f"line {self._number}, column {column}: byte 0x{byte:02x} is not valid {self._encoding}; "
                    "save the file as UTF-8, or set the option encoding"
                )
                yield line.decode(self._encoding, "surrogateescape")

    def _advise(self, error: str) -> str:
        """Suggest the usual encoding of files that are not in UTF-8."""
        suggestion = Suggestion("options/encoding", "cp1252")
        return Advice(error, suggestion) if self._encoding == "utf-8" else error

    def begin_record(self) -> int:
        """Reset the state for the next record. Return the 1-based line in which it begins."""
        self._n_bytes = 0
        self.decoding_error = None
        self._first_line = self._number + 1
        return self._first_line
