"""CSV: a head line with the columns' names, then one example a row (RFC 4180)."""

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
    """How a CSV file is to be read."""

    format: Literal["csv"]
    delimiter: Literal[",", ";", "\t", "|"] | None = None
    """What stands between two cells; without it the one that the head line has most of."""
    encoding: Literal["utf-8", "cp1252", "latin-1"] = "utf-8"
    """How characters are written; older exports of spreadsheets are ``cp1252``."""


def read_csv(source: InputFile, options: CSVOptions, limits: IngestLimits) -> Items:
    """The records of a CSV file; empty lines are passed over."""
    # The limit belongs to the process; a reader without it stops at 128 KiB. Records are capped by _Lines.
    csv.field_size_limit(max(csv.field_size_limit(), limits.record_bytes))
    lines = _Lines(source, options.encoding, limits.record_bytes)
    head = lines.head()
    delimiter: str = options.delimiter or max(_DELIMITERS, key=head.count)
    table = csv.reader(lines.following(head), delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in next(table)]
    except (csv.Error, StopIteration) as error:
        raise BadDataError(f"the head line cannot be read: {error}") from error
    columns = assign_columns(names, options, limits)
    yield columns.declared()
    rows = RowReader(columns, options.label_separator, limits)
    while True:
        line = lines.begin_record()
        try:
            cells = next(table)
            if cells:
                yield rows.record(_by_name(cells, names, lines), line)
        except StopIteration:
            break
        except csv.Error as error:
            yield BadRecord(line, f"quotes are out of order: {error}")
        except RecordError as error:
            yield error.at(line)
    yield rows.closing()


def _by_name(cells: list[str], names: list[str], lines: _Lines) -> dict[str, str]:
    """The cells of a row by column.

    Raises:
        RecordError: too few, too many, or not text.
    """
    if len(cells) != len(names):
        raise RecordError(f"the row has {len(cells)} cells, the head line {len(names)}")
    if lines.undecoded is not None:
        raise RecordError(
            lines.undecoded, next((n for n, c in zip(names, cells, strict=True) if not _is_text(c)), None)
        )
    return dict(zip(names, cells, strict=True))


def _is_text(cell: str) -> bool:
    return cell.isascii() or not any("\udc80" <= c <= "\udcff" for c in cell)


class _Lines:
    """Lines of text for the csv module, which cannot count bytes or go on after a broken character.

    Attributes:
        undecoded: why the record that was read last is not text, or None.
    """

    def __init__(self, source: InputFile, encoding: str, max_bytes: int) -> None:
        self._stream = source.stream
        self._encoding = encoding
        self._max_bytes = max_bytes
        self._number = 0
        self._n_bytes = 0
        self._begins = 1
        self.undecoded: str | None = None

    def head(self) -> str:
        """The first line.

        Raises:
            BadDataError: there is none, or it is not text.
        """
        line = self._stream.readline(self._max_bytes)
        reject_utf16(line)
        if not line:
            raise BadDataError("the file is empty")
        try:
            return line.removeprefix(BOM).decode(self._encoding)
        except UnicodeDecodeError as error:
            raise BadDataError(f"the head line is not {self._encoding}: {error}") from error

    def following(self, head: str) -> Iterator[str]:
        """All lines, the first being given."""
        self._number = 1
        yield head
        while line := self._stream.readline(self._max_bytes + 1):
            self._number += 1
            self._n_bytes += len(line)
            if self._n_bytes > self._max_bytes:
                raise BadDataError(
                    f"the record that begins in line {self._begins} is longer than {self._max_bytes:,} "
                    "bytes; perhaps a quote is not closed"
                )
            try:
                yield line.decode(self._encoding)
            except UnicodeDecodeError as error:
                column = len(line[: error.start].decode(self._encoding)) + 1
                byte = line[error.start]
                self.undecoded = (
                    f"line {self._number}, column {column}: byte 0x{byte:02x} is not {self._encoding}; "
                    "save the file as UTF-8, or name its encoding in the options"
                )
                yield line.decode(self._encoding, "surrogateescape")

    def begin_record(self) -> int:
        """Forget the record before; the 1-based line in which the next one begins."""
        self._n_bytes = 0
        self.undecoded = None
        self._begins = self._number + 1
        return self._begins
