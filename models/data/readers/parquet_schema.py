"""What the schema of a Parquet file states: types, the index columns of pandas, and the names of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from models.data.limits import IngestLimits
from models.data.record import RecordError, check_name

try:
    import pyarrow as pa
except ModuleNotFoundError:
    pa = None  # type: ignore[assignment]


def value_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of the values: a dictionary stands for its values."""
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def is_bytes(type_: pa.DataType) -> bool:
    """Return whether a column contains bytes."""
    return bool(
        pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_binary_view(type_)
        or pa.types.is_fixed_size_binary(type_)
    )


def is_number(type_: pa.DataType) -> bool:
    """Return whether a column contains numbers or booleans."""
    return bool(
        pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_decimal(type_)
        or pa.types.is_boolean(type_)
    )


def with_floats(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose decimals are float64."""
    for i, column in enumerate(batch.columns):
        if pa.types.is_decimal(column.type):
            batch = batch.set_column(i, batch.schema.field(i).name, column.cast(pa.float64()))
    return batch


def find_index_columns(schema: pa.Schema) -> frozenset[str]:
    """Return the columns that pandas writes as the index of a frame, as its metadata states."""
    columns = _metadata(schema, b"pandas").get("index_columns")
    return (
        frozenset(name for name in columns if isinstance(name, str))
        if isinstance(columns, list)
        else frozenset()
    )


def find_class_names(schema: pa.Schema, column: str, limits: IngestLimits) -> list[str] | None:
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
