"""Reads Parquet: a table with the same column roles as CSV, and with lists of labels and maps of features."""

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
from models.data.record import (
    Declarations,
    Items,
    Record,
    RecordError,
    check_name,
    check_number,
    json_type,
    quoted,
)
from models.errors import BadDataError, BadRecord
from models.mail.email import Email

_BATCH_ROWS = 256
_MAX_GROUP_BYTES = 2**30
_UNLIMITED_RATIO = 2**40  # a harmless column of equal values compresses by any ratio


class ParquetOptions(TableOptions):
    """Options of a Parquet file."""

    format: Literal["parquet"]
    raw_email: Name | None = None
    """The column of bytes with raw messages. By default, the column ``raw_email`` if there is one."""


def read_parquet(file: InputFile, options: ParquetOptions, limits: IngestLimits) -> Items:
    """Yield the records of a Parquet file, numbered by row from 1.

    Labels are a list of strings, a string with separators, or columns of 0 and 1. Features are all numeric
    columns without another role, or a column ``features`` that maps names to numbers.
    """
    with file.open_seekable() as seekable, _arrow_errors_as_bad_data():
        size = seekable.seek(0, 2)
        guard = DecompressionGuard(lambda: size, replace(limits, compression_ratio=_UNLIMITED_RATIO))
        with pq.ParquetFile(seekable, pre_buffer=False, buffer_size=2**20) as table:
            _reject_large_row_groups(table.metadata)
            rows = _RowReader(table.schema_arrow, options, limits)
            yield rows.columns.declarations()
            number = 0
            for batch in table.iter_batches(batch_size=_BATCH_ROWS, columns=rows.needed, use_threads=False):
                guard.count(batch.nbytes)
                for cells in _rows_of(batch):
                    number += 1
                    if cells is None:
                        yield BadRecord(number, "a string in the row is not valid UTF-8")
                        continue
                    try:
                        yield rows.record(cells, number)
                    except RecordError as error:
                        yield error.at_line(number)
            yield rows.final_declarations()


class _arrow_errors_as_bad_data:  # noqa: N801 - a context manager that is used like a function
    """Converts the exceptions that Arrow raises for a damaged file. Errors of the disk pass through.

    Arrow raises OSError without an error number for damaged files.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, type_: object, error: BaseException | None, trace: object) -> None:
        is_damage = isinstance(error, (pa.ArrowException, UnicodeDecodeError))
        if is_damage or (isinstance(error, OSError) and error.errno is None):
            raise BadDataError(f"the Parquet file cannot be read: {error}") from error


def _reject_large_row_groups(metadata: pq.FileMetaData) -> None:
    for i in range(metadata.num_row_groups):
        if metadata.row_group(i).total_byte_size > _MAX_GROUP_BYTES:
            raise BadDataError("a row group is larger than 1 GiB; write the file with smaller row groups")


def _rows_of(batch: pa.RecordBatch) -> Iterator[Mapping[str, Any] | None]:
    """Yield each row by column name; None for a row with a string that cannot be decoded."""
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        for i in range(len(batch)):
            try:
                yield from batch.slice(i, 1).to_pylist()
            except UnicodeDecodeError:
                yield None


class _RowReader:
    """Turns rows into records.

    Attributes:
        columns: the roles of the columns.
        needed: names of the columns to read.
    """

    def __init__(self, schema: pa.Schema, options: ParquetOptions, limits: IngestLimits) -> None:
        self._limits = limits
        self._separator = options.label_separator
        self._n_missing = 0
        types = {field.name: field.type for field in schema}
        self._raw = _find_document_column(options.raw_email, "raw_email", types, _is_bytes)
        name = options.features[0] if options.features and len(options.features) == 1 else None
        self._map = None if self._raw else _find_document_column(name, "features", types, pa.types.is_map)
        document_column = self._raw or self._map
        if document_column == self._map and document_column is not None:
            options = options.model_copy(update={"features": None})
        self.columns: ColumnRoles = assign_columns(
            schema.names,
            options,
            limits,
            document_column=document_column,
            can_be_feature=lambda name: _is_number(types[name]),
        )
        self.needed = [name for name in schema.names if name not in self.columns.unused]

    def record(self, row: Mapping[str, Any], number: int) -> Record:
        """Return the record of one row.

        Raises:
            RecordError: a cell is invalid (names the column), or the document is too long.
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
            record.features = self._map_features(row[self._map] or [], self._map)
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
            raise RecordError(f"the document is longer than the limit of {limits.record_bytes:,} bytes")
        return record

    def final_declarations(self) -> Declarations:
        """Return the warnings that are known only after the last row."""
        if not self._n_missing:
            return Declarations()
        return Declarations(warnings=[f"missing feature values: {self._n_missing:,}; they were read as 0"])

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

    def _map_features(self, items: Any, column: str) -> dict[str, float]:
        features: dict[str, float] = {}
        for name, value in items:
            check_name(name, "a feature name", column, self._limits.name_length)
            if name in features:
                raise RecordError(f"the feature {quoted(name)} occurs twice", column)
            features[name] = self._number(value, column)
        return features

    def _number(self, value: object, column: str) -> float:
        if value is None:
            self._n_missing += 1
            return 0.0
        return check_number(int(value) if type(value) is bool else value, "a feature", column)


def _find_document_column(
    name: str | None, default: str, types: Mapping[str, pa.DataType], has_type: Callable[..., bool]
) -> str | None:
    """Return the column that contains whole documents, if it exists and has the right type."""
    name = name or default
    return name if name in types and has_type(types[name]) else None


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
