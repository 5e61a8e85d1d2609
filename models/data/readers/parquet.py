"""Reads Parquet: a table with the same column roles as CSV, and with lists of labels and maps of features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from pydantic_core import from_json

from models.data.files.input_file import DecompressionGuard, InputFile
from models.data.limits import IngestLimits
from models.data.options import Name, TableOptions
from models.data.record import Items, Record, RecordError, check_name, quoted
from models.data.record_mapper import RecordMapper, Table, ValueSyntax
from models.errors import BadDataError, BadRecord
from models.extras import require

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ModuleNotFoundError:
    pa = None  # type: ignore[assignment]

_SYNTAX: Final = ValueSyntax("missing feature values", "missing values in label columns")
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
            schema = table.schema_arrow
            mapper = RecordMapper(options, limits, _SYNTAX, _table_of(schema, limits))
            unused = set(mapper.unused)
            needed = [name for name in schema.names if name not in unused]
            maps = [
                column.name
                for column in schema
                if column.name not in unused and pa.types.is_map(_value_type(column.type))
            ]
            yield mapper.declarations
            number = 0
            for batch in table.iter_batches(batch_size=_BATCH_ROWS, columns=needed, use_threads=False):
                guard.count(batch.nbytes)
                for cells in _rows_of(_with_floats(batch)):
                    number += 1
                    if cells is None:
                        yield BadRecord(number, "a string in the row is not valid UTF-8")
                        continue
                    try:
                        for name in maps:
                            cells[name] = _object(cells[name], name)
                        record = mapper.record(cells, number)
                        _check_size(record, limits.record_bytes)
                        yield record
                    except RecordError as error:
                        yield error.at_line(number)
            yield mapper.final_declarations()


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


def _rows_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any] | None]:
    """Yield each row by column name; None for a row with a string that cannot be decoded."""
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        for i in range(len(batch)):
            try:
                yield from batch.slice(i, 1).to_pylist()
            except UnicodeDecodeError:
                yield None


def _table_of(schema: pa.Schema, limits: IngestLimits) -> Table:
    """Return the columns as the schema states them."""
    types = {field.name: _value_type(field.type) for field in schema}
    return Table(
        schema.names,
        schema.names,
        documents={
            "raw_email": {name for name, type_ in types.items() if _is_bytes(type_)},
            "features": {name for name, type_ in types.items() if pa.types.is_map(type_)},
        },
        types={name: str(type_) for name, type_ in types.items()},
        numbers={name for name, type_ in types.items() if _is_number(type_)},
        row_numbers=_find_index_columns(schema),
        label_names=lambda column: _find_class_names(schema, column, limits),
    )


def _object(pairs: Sequence[tuple[Any, Any]] | None, column: str) -> dict[Any, Any]:
    """Return a map as an object; an empty one for a missing map.

    Raises:
        RecordError: a key occurs twice.
    """
    members = dict(pairs or ())
    if pairs and len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for j, name in enumerate(names) if name in names[:j])
        raise RecordError(f"the name {quoted(twice)} occurs twice", column)
    return members


def _check_size(record: Record, max_bytes: int) -> None:
    """Reject a document that is too long, which a row does not limit.

    Raises:
        RecordError: the document is longer than the limit.
    """
    size = len(record.text or "") + 16 * len(record.features or ())
    if (email := record.email) is not None:
        size = len(email.raw) if email.raw is not None else sum(map(len, email.parts().values()))
    if size > max_bytes:
        raise RecordError(f"the document is longer than the limit of {max_bytes:,} bytes")


def _value_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of the values: a dictionary stands for its values."""
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _is_bytes(type_: pa.DataType) -> bool:
    """Return whether a column contains bytes."""
    return bool(
        pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_binary_view(type_)
        or pa.types.is_fixed_size_binary(type_)
    )


def _is_number(type_: pa.DataType) -> bool:
    """Return whether a column contains numbers or booleans."""
    return bool(
        pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_decimal(type_)
        or pa.types.is_boolean(type_)
    )


def _with_floats(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose decimals, and the decimals and booleans in maps, are float64."""
    for i, column in enumerate(batch.columns):
        type_ = column.type
        if pa.types.is_map(type_) and (
            pa.types.is_decimal(type_.item_type) or pa.types.is_boolean(type_.item_type)
        ):
            type_ = pa.map_(type_.key_type, pa.float64())
        elif pa.types.is_decimal(type_):
            type_ = pa.float64()
        if type_ != column.type:
            batch = batch.set_column(i, batch.schema.field(i).name, column.cast(type_))
    return batch


def _find_index_columns(schema: pa.Schema) -> frozenset[str]:
    """Return the columns that pandas writes as the index of a frame, as its metadata states."""
    columns = _metadata(schema, b"pandas").get("index_columns")
    return (
        frozenset(name for name in columns if isinstance(name, str))
        if isinstance(columns, list)
        else frozenset()
    )


def _find_class_names(schema: pa.Schema, column: str, limits: IngestLimits) -> list[str] | None:
    """Return the names of the numbers in a column of labels, as the library datasets states them.

    The metadata has the form ``{"info": {"features": {"label": {"names": [...], "_type": "ClassLabel"}}}}``;
    a list of classes has this object in ``feature``.
    """
    value: Any = _metadata(schema, b"huggingface")
    for key in ("info", "features", column):
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, Mapping) and isinstance(value.get("feature"), Mapping):
        value = value["feature"]
    if not isinstance(value, Mapping) or value.get("_type") != "ClassLabel":
        return None
    names = value.get("names")
    if not isinstance(names, list) or len({*filter(_is_string, names)}) < len(names):
        return None
    try:
        return [check_name(name, "a label", column, limits.name_length) for name in names] or None
    except RecordError:
        return None


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _metadata(schema: pa.Schema, key: bytes) -> Mapping[str, Any]:
    try:
        value = from_json((schema.metadata or {}).get(key, b"{}"))
    except ValueError:
        return {}
    return value if isinstance(value, Mapping) else {}
