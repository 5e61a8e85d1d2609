"""Parquet: a table whose columns are chosen as in CSV, with lists of labels and maps of features besides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from models.data.limits import IngestLimits
from models.data.readers.input_file import DecompressionGuard, InputFile
from models.data.readers.options import Name, TableOptions
from models.data.readers.table import (
    ColumnRoles,
    assign_columns,
    build_email,
    parse_flag,
    parse_split,
    split_labels,
)
from models.data.record import Declarations, Items, Record, RecordError, check_name, check_number, json_type
from models.errors import BadDataError, BadRecord
from models.mail.email import Email

_ROWS = 256
_LARGEST_GROUP = 2**30
_NO_RATIO = 2**40  # a column of equal values shrinks without bounds and means no harm


class ParquetOptions(TableOptions):
    """How a Parquet file is to be read."""

    format: Literal["parquet"]
    raw_email: Name | None = None
    """The column of bytes that holds raw messages; ``raw_email`` where there is such a column."""


def read_parquet(source: InputFile, options: ParquetOptions, limits: IngestLimits) -> Items:
    """The records of a Parquet file, numbered by row from 1.

    Labels are a list of strings, a string with separators, or columns of 0 and 1. Features are all numeric
    columns that are nothing else, or a column ``features`` that maps names to numbers.
    """
    with source.seekable() as file, _arrow_errors_as_bad_data():
        size = file.seek(0, 2)
        growth = DecompressionGuard(lambda: size, replace(limits, ratio=_NO_RATIO))
        with pq.ParquetFile(file, pre_buffer=False, buffer_size=2**20) as table:
            _reject_large_row_groups(table.metadata)
            rows = _Rows(table.schema_arrow, options, limits)
            yield rows.columns.declared()
            number = 0
            for batch in table.iter_batches(batch_size=_ROWS, columns=rows.needed, use_threads=False):
                growth.add(batch.nbytes)
                for cells in _rows_of(batch):
                    number += 1
                    if cells is None:
                        yield BadRecord(number, "a string of the row is not valid UTF-8")
                        continue
                    try:
                        yield rows.record(cells, number)
                    except RecordError as error:
                        yield error.at(number)
            yield rows.closing()


class _arrow_errors_as_bad_data:  # noqa: N801 - reads as the statement it is
    """Arrow tells of damaged files by several exceptions; a fault of the disk is not one of them."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, type_: object, error: BaseException | None, trace: object) -> None:
        told = isinstance(error, (pa.ArrowException, UnicodeDecodeError))
        if told or (isinstance(error, OSError) and error.errno is None):
            raise BadDataError(f"the Parquet file cannot be read: {error}") from error


def _reject_large_row_groups(metadata: pq.FileMetaData) -> None:
    for i in range(metadata.num_row_groups):
        if metadata.row_group(i).total_byte_size > _LARGEST_GROUP:
            raise BadDataError("a row group has more than 1 GiB; write the file with smaller row groups")


def _rows_of(batch: pa.RecordBatch) -> Iterator[Mapping[str, Any] | None]:
    """Each row by column name; None for one with a string that cannot be decoded."""
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        for i in range(len(batch)):
            try:
                yield from batch.slice(i, 1).to_pylist()
            except UnicodeDecodeError:
                yield None


class _Rows:
    """Turns rows into records.

    Attributes:
        columns: the part that every column plays.
        needed: names of the columns to read.
    """

    def __init__(self, schema: pa.Schema, options: ParquetOptions, limits: IngestLimits) -> None:
        self._limits = limits
        self._separator = options.label_separator
        self._n_missing = 0
        types = {field.name: field.type for field in schema}
        self._raw = self._whole(options.raw_email, "raw_email", types, _is_bytes)
        given = options.features[0] if options.features and len(options.features) == 1 else None
        self._map = None if self._raw else self._whole(given, "features", types, pa.types.is_map)
        whole = self._raw or self._map
        if whole == self._map and whole is not None:
            options = options.model_copy(update={"features": None})
        self.columns: ColumnRoles = assign_columns(
            schema.names, options, limits, whole=whole, may_be_feature=lambda name: _is_number(types[name])
        )
        self.needed = [name for name in schema.names if name not in self.columns.unused]

    def _whole(
        self, given: str | None, default: str, types: Mapping[str, pa.DataType], is_right: Callable[..., bool]
    ) -> str | None:
        """The column that holds whole documents of a kind, if it is there and of the right type."""
        name = given or default
        return name if name in types and is_right(types[name]) else None

    def record(self, row: Mapping[str, Any], number: int) -> Record:
        """The record of one row.

        Raises:
            RecordError: names the column.
        """
        columns, limits = self.columns, self._limits
        record = Record(line=number, labels=self._labels(row))
        if columns.id is not None:
            id_ = row[columns.id]
            id_ = str(id_) if type(id_) is int else id_
            record.id = check_name(id_, "the id", columns.id, limits.name_length)
        if columns.split is not None:
            record.split = parse_split(_text(row, columns.split), columns.split)
        if self._raw is not None:
            record.email = Email(raw=row[self._raw] or b"")
            size = len(row[self._raw] or b"")
        elif self._map is not None:
            record.features = self._mapped(row[self._map] or [], self._map)
            size = 16 * len(record.features)
        elif columns.text is not None:
            record.text = _text(row, columns.text)
            size = len(record.text)
        elif columns.email:
            parts = {part: _text(row, name) for part, name in columns.email.items()}
            record.email = build_email(parts)
            size = sum(map(len, parts.values()))
        else:
            record.features = {name: self._number(row[name], name) for name in columns.features}
            size = 0
        if size > limits.record_bytes:
            raise RecordError(f"the document is longer than {limits.record_bytes:,} bytes")
        return record

    def _labels(self, row: Mapping[str, Any]) -> list[str]:
        column = self.columns.labels
        if column is None:
            return [name for name in self.columns.label_columns if parse_flag(str(row[name] or ""), name)]
        labels = row[column]
        if isinstance(labels, str):
            return split_labels(labels, self._separator, column, self._limits)
        if not isinstance(labels, list):
            raise RecordError(
                f"labels must be a list of strings or a string, not {json_type(labels)}", column
            )
        return [check_name(name, "a label", column, self._limits.name_length) for name in labels]

    def _mapped(self, items: Any, column: str) -> dict[str, float]:
        features: dict[str, float] = {}
        for name, value in items:
            check_name(name, "a feature name", column, self._limits.name_length)
            if name in features:
                raise RecordError(f"the feature {name!r} stands twice", column)
            features[name] = self._number(value, column)
        return features

    def _number(self, value: object, column: str) -> float:
        if value is None:
            self._n_missing += 1
            return 0.0
        return check_number(int(value) if type(value) is bool else value, "a feature", column)

    def closing(self) -> Declarations:
        """What is to be said after the last row."""
        if not self._n_missing:
            return Declarations()
        return Declarations(
            remarks=[f"{self._n_missing:,} values of features are missing and were read as 0"]
        )


def _text(row: Mapping[str, Any], column: str) -> str:
    value = row[column]
    if value is None:
        return ""
    if type(value) is not str:
        raise RecordError(f"must be a string, not {json_type(value)}", column)
    return value


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_))
