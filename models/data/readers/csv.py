"""Reads CSV: a header row, then one row for each example (RFC 4180)."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Literal

from models.data.limits import IngestLimits
from models.data.readers.input_file import InputFile
from models.data.readers.lines import BOM, reject_utf16
from models.data.readers.options import TableOptions
from models.data.readers.table import RowReader, assign_columns
from models.data.record import Items, RecordError
from models.errors import BadDataError, BadRecord

_DELIMITERS: tuple[str, ...] = (",", ";", "\t", "|")


class CSVOptions(TableOptions):
    """Options of a CSV file."""

    format: Literal["csv"]
    delimiter: Literal[",", ";", "\t", "|"] | None = None
    """The delimiter between cells. By default, the delimiter that occurs most often in the header row."""
    encoding: Literal["utf-8", "cp1252", "latin-1"] = "utf-8"
    """The character encoding. Older spreadsheet exports use ``cp1252``."""


def read_csv(file: InputFile, options: CSVOptions, limits: IngestLimits) -> Items:
    """Yield the records of a CSV file. Empty lines are skipped."""
    # The csv module has one field limit for the process, 128 KiB by default. _Lines limits the records.
    csv.field_size_limit(max(csv.field_size_limit(), limits.record_bytes))
    lines = _Lines(file, options.encoding, limits.record_bytes)
    header = lines.read_header()
    delimiter: str = options.delimiter or max(_DELIMITERS, key=header.count)
    table = csv.reader(lines.with_header(header), delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in next(table)]
    except (csv.Error, StopIteration) as error:
        raise BadDataError(f"the header row cannot be read: {error}") from error
    columns = assign_columns(names, options, limits)
    yield columns.declarations()
    rows = RowReader(columns, options.label_separator, limits)
    while True:
        line = lines.begin_record()
        try:
            cells = next(table)
            if cells:
                yield rows.record(_by_column(cells, names, lines), line)
        except StopIteration:
            break
        except csv.Error as error:
            yield BadRecord(line, f"invalid quotes: {error}")
        except RecordError as error:
            yield error.at_line(line)
    yield rows.final_declarations()


def _by_column(cells: list[str], names: list[str], lines: _Lines) -> dict[str, str]:
    """Return the cells of a row by column name.

    Raises:
        RecordError: the row has too few or too many cells, or a cell cannot be decoded.
    """
    if len(cells) != len(names):
        raise RecordError(f"the row has {len(cells)} cells, but the header row has {len(names)}")
    if lines.decoding_error is not None:
        raise RecordError(
            lines.decoding_error,
            next((n for n, c in zip(names, cells, strict=True) if not _is_text(c)), None),
        )
    return dict(zip(names, cells, strict=True))


def _is_text(cell: str) -> bool:
    """Return whether a cell has no surrogates, which stand for bytes that cannot be decoded."""
    return cell.isascii() or not any("\udc80" <= c <= "\udcff" for c in cell)


class _Lines:
    """Decodes lines for the csv module, which cannot limit bytes or continue after a decoding error.

    Attributes:
        decoding_error: why the last record cannot be decoded, or None.
    """

    def __init__(self, file: InputFile, encoding: str, max_bytes: int) -> None:
        self._stream = file.stream
        self._encoding = encoding
        self._max_bytes = max_bytes
        self._number = 0
        self._n_bytes = 0
        self._first_line = 1
        self.decoding_error: str | None = None

    def read_header(self) -> str:
        """Read the first line.

        Raises:
            BadDataError: the file is empty, or the line cannot be decoded.
        """
        line = self._stream.readline(self._max_bytes)
        reject_utf16(line)
        if not line:
            raise BadDataError("the file is empty; it needs a header row and at least one example")
        try:
            return line.removeprefix(BOM).decode(self._encoding)
        except UnicodeDecodeError as error:
            raise BadDataError(
                f"the header row is not valid {self._encoding}: {error}; set the option encoding"
            ) from error

    def with_header(self, header: str) -> Iterator[str]:
        """Yield the header row, then all lines after it."""
        self._number = 1
        yield header
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
                self.decoding_error = (
                    f"line {self._number}, column {column}: byte 0x{byte:02x} is not valid {self._encoding}; "
                    "save the file as UTF-8, or set the option encoding"
                )
                yield line.decode(self._encoding, "surrogateescape")

    def begin_record(self) -> int:
        """Reset the state for the next record. Return the 1-based line in which it begins."""
        self._n_bytes = 0
        self.decoding_error = None
        self._first_line = self._number + 1
        return self._first_line
