"""Reads Parquet: a table with the same column roles as CSV, and with lists of labels and maps of features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from models.data.limits import IngestLimits
from models.data.readers.cells import LabelNumbers, build_email, join_texts, parse_flag
from models.data.readers.input_file import DecompressionGuard, InputFile
from models.data.readers.options import Name, TableOptions
from models.data.readers.parquet_schema import (
    find_class_names,
    find_index_columns,
    is_bytes,
    is_number,
    value_type,
    with_floats,
)
from models.data.readers.row_numbers import RowNumberFinder, is_row_number
from models.data.readers.table import assign_columns
from models.data.readers.values import (
    ParsedLabels,
    parse_fold,
    parse_id,
    parse_labels,
    parse_split,
    parse_weight,
    split_words,
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
from models.extras import require
from models.mail.email import Email

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ModuleNotFoundError:
    pa = None  # type: ignore[assignment]

_BATCH_ROWS = 256
_MAX_KNOWN = 20_000
_MAX_GROUP_BYTES = 2**30
_UNLIMITED_RATIO = 2**40  # a harmless column of equal values compresses by any ratio


class ParquetOptions(TableOptions):
    """Options of a Parquet file."""

    format: Literal["parquet"]
    raw_email: Name | None = None
    """The column of bytes with raw messages. By default, the column ``raw_email`` if there is one."""


def read_parquet(file: InputFile, options: ParquetOptions, limits: IngestLimits) -> Items:
    """Yield the records of a Parquet file, numbered by row from 1.

    Labels are a list of strings or whole numbers, a map of labels to 1 or 0, a string with separators, or
    columns of 0 and 1. Features are all numeric columns without another role, or a column ``features`` that
    maps names to numbers.
    """
    require(pa, "pyarrow", "reading Parquet")
    with file.open_seekable() as seekable, _arrow_errors_as_bad_data():
        size = seekable.seek(0, 2)
        guard = DecompressionGuard(lambda: size, replace(limits, compression_ratio=_UNLIMITED_RATIO))
        with pq.ParquetFile(seekable, pre_buffer=False, buffer_size=2**20) as table:
            _reject_large_row_groups(table.metadata)
            rows = _RowReader(table.schema_arrow, options, limits)
            yield rows.declarations()
            number = 0
            for batch in table.iter_batches(batch_size=_BATCH_ROWS, columns=rows.needed, use_threads=False):
                guard.count(batch.nbytes)
                for cells in _rows_of(with_floats(batch)):
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
        needed: names of the columns to read.
    """

    def __init__(self, schema: pa.Schema, options: ParquetOptions, limits: IngestLimits) -> None:
        self._limits = limits
        self._separator = options.label_separator
        self._split_words = split_words(options.split_words or {})
        self._ignored = options.ignore or ()
        self._n_missing = 0
        self._n_missing_flags = 0
        self._known: set[str] = set()
        types = {field.name: value_type(field.type) for field in schema}
        others = {name: type_ for name, type_ in types.items() if name not in self._ignored}
        self._raw = _find_document_column(options.raw_email, "raw_email", others, is_bytes)
        name = options.features[0] if options.features and len(options.features) == 1 else None
        self._map = None if self._raw else _find_document_column(name, "features", others, pa.types.is_map)
        document_column = self._raw or self._map
        if document_column == self._map and document_column is not None:
            options = options.model_copy(update={"features": None})
        index_columns = find_index_columns(schema)
        columns = assign_columns(
            schema.names,
            options,
            limits,
            is_row_number=lambda name: name in index_columns or is_row_number(name),
            can_be_feature=lambda name: is_number(types[name]),
            document_column=document_column,
            types={name: str(type_) for name, type_ in types.items()},
        )
        if columns.labels is not None and columns.label_numbers is None:
            class_names = find_class_names(schema, columns.labels, limits)
            columns = replace(columns, label_numbers=LabelNumbers(class_names, 0) if class_names else None)
        self._columns = columns
        self._labels_are_map = columns.labels is not None and pa.types.is_map(types[columns.labels])
        self._row_numbers = RowNumberFinder([] if options.features else columns.features)
        unused = set(columns.unused)
        self.needed = [name for name in schema.names if name not in unused]

    def declarations(self) -> Declarations:
        """Return what the names of the columns declare."""
        return self._columns.declarations(self._ignored)

    def record(self, row: Mapping[str, Any], number: int) -> Record:
        """Return the record of one row.

        Raises:
            RecordError: a cell is invalid (names the column), or the document is too long.
        """
        columns, limits = self._columns, self._limits
        labels: Sequence[str]
        unknown: Sequence[str]
        if columns.labels is not None:
            labels, unknown = row[columns.labels], ()
            if not self._are_known(labels):
                labels, unknown = self._parse_labels(labels, columns.labels)
        else:
            labels, unknown = self._parse_flags(row)
        record = Record(number, labels, unknown=unknown)
        if columns.id is not None:
            record.id = parse_id(row[columns.id], columns.id, limits)
        if columns.split is not None:
            record.split = parse_split(row[columns.split], columns.split, self._split_words)
        if columns.weight is not None:
            record.weight = parse_weight(row[columns.weight], columns.weight)
        if columns.fold is not None:
            record.fold = parse_fold(row[columns.fold], columns.fold)
        if self._raw is not None:
            record.email = Email(raw=row[self._raw] or b"")
            size = len(row[self._raw] or b"")
        elif self._map is not None:
            record.features = self._map_features(row[self._map] or [], self._map)
            size = 16 * len(record.features)
        elif columns.text:
            texts = [_text(row[name], name) for name in columns.text]
            record.text = texts[0] if len(texts) == 1 else join_texts(texts)
            size = len(record.text)
        elif columns.email:
            parts = {part: _text(row[name], name) for part, name in columns.email.items()}
            record.email = build_email(parts)
            size = sum(map(len, parts.values()))
        else:
            record.features = features = {name: self._number(row[name], name) for name in columns.features}
            if self._row_numbers.is_watching:
                self._row_numbers.add(features)
            size = 0
        if size > limits.record_bytes:
            raise RecordError(f"the document is longer than the limit of {limits.record_bytes:,} bytes")
        return record

    def final_declarations(self) -> Declarations:
        """Return the warnings that are known only after the last row."""
        warnings = []
        if self._n_missing:
            warnings.append(f"missing feature values: {self._n_missing:,}; they were read as 0")
        if self._n_missing_flags:
            warnings.append(
                f"missing values in label columns: {self._n_missing_flags:,}; they were read as no; "
                "write -1 if nobody knows"
            )
        return Declarations(warnings=[*warnings, *self._row_numbers.warnings()])

    def _parse_labels(self, value: Any, column: str) -> ParsedLabels:
        if self._labels_are_map and value is not None:
            pairs, value = value, dict(value)
            if len(value) < len(pairs):
                raise RecordError("a label occurs twice in the map", column)
        parsed = parse_labels(value, column, self._separator, self._limits)
        numbers = self._columns.label_numbers
        if numbers is not None:
            return numbers.name_all(parsed, column)
        if parsed.labels is value and len(self._known) < _MAX_KNOWN:
            self._known.update(parsed.labels)
        return parsed

    def _are_known(self, value: Any) -> bool:
        """Return whether a value is a list of names that have been checked. Most lists are so."""
        try:
            return type(value) is list and self._known.issuperset(value)
        except TypeError:  # a member is a list or an object
            return False

    def _parse_flags(self, row: Mapping[str, Any]) -> ParsedLabels:
        labels, unknown = [], []
        for name in self._columns.label_columns:
            value = row[name]
            if value == 0:
                continue
            if value == 1:
                labels.append(name)
            elif value is None or value != value:  # noqa: PLR0124 - NaN differs from itself
                self._n_missing_flags += 1
            elif (flag := parse_flag(str(value), name)) is None:
                unknown.append(name)
            elif flag:
                labels.append(name)
        return ParsedLabels(labels, unknown)

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


def _text(value: object, column: str) -> str:
    if type(value) is str:
        return value
    if value is None:
        return ""
    if type(value) is bytes:
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise RecordError(f"byte 0x{value[error.start]:02x} is not valid UTF-8", column) from error
    raise RecordError(f"must be a string, not {json_type(value)}", column)
