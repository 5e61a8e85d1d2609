"""Convert input tensors to the documents that a version predicts for.

A version trained on text or e-mail has inputs for the parts of a document, each with one element for each
document. A version trained on numeric features has one matrix, or one input for each feature.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from scipy.sparse import csr_array

from app.errors import Invalid, TooLarge
from app.protocols.open_inference.schemas import MetadataTensor
from app.protocols.open_inference.tensors import Tensor
from app.serving.instances import check_products, to_documents
from app.serving.prediction import Documents
from app.serving.schemas import Instance
from app.settings import Settings
from models.arrays import Floats
from models.data.examples import FeatureRows
from models.features.numeric import NumericFeatures
from models.pipeline import Pipeline

TEXT: Final = "text"
RAW_EMAIL: Final = "raw_email"
MATRIX: Final = "features"
EMAIL_PARTS: Final = (TEXT, "subject", "from", "to", "html", "list_id")
"""Inputs for the parts of an e-mail."""


def input_metadata(pipeline: Pipeline) -> list[MetadataTensor]:
    """Return the inputs of a version, the usual one first."""
    if isinstance(pipeline.features_, NumericFeatures):
        names = pipeline.features_.base_names_
        return [
            MetadataTensor(name=MATRIX, datatype="FP64", shape=[-1, len(names)], parameters={"names": names})
        ]
    names = [TEXT] if pipeline.kind_ == "text" else [TEXT, RAW_EMAIL, *EMAIL_PARTS[1:]]
    return [MetadataTensor(name=name, datatype="BYTES", shape=[-1]) for name in names]


def count_rows(tensors: Sequence[Tensor], settings: Settings) -> int:
    """Return the number of documents.

    Raises:
        Invalid: there are none, or the inputs have different numbers of rows.
        TooLarge: there are too many.
    """
    n = tensors[0].n_rows
    for tensor in tensors:
        place = f"{tensor.pointer}/shape"
        if tensor.n_rows != n:
            raise _invalid(place, f"{tensor.n_rows:,} rows, but the first input has {n:,}")
    if n == 0:
        raise _invalid("/inputs/0/shape", "there are no rows; send at least one")
    if n > settings.max_instances:
        message = f"{n:,} rows; the limit is {settings.max_instances:,}; send several requests"
        raise TooLarge(f"/inputs/0/shape: {message}", errors=[("/inputs/0/shape", message)])
    return n


def read_documents(pipeline: Pipeline, tensors: Sequence[Tensor], settings: Settings) -> Documents:
    """Return the documents of a request for a pipeline.

    Raises:
        Invalid: the pipeline has other inputs, or an element cannot be read.
        TooLarge: a document exceeds a limit.
    """
    if isinstance(pipeline.features_, NumericFeatures):
        rows = _read_rows(pipeline.features_.base_names_, tensors)
        check_products(pipeline, rows, field="inputs")
        return rows
    return to_documents(pipeline, _read_instances(tensors), settings)


def _read_rows(names: Sequence[str], tensors: Sequence[Tensor]) -> FeatureRows:
    first = tensors[0]
    if len(tensors) == 1 and first.name == MATRIX and MATRIX not in names:
        matrix = _finite(first)
        if first.n_columns != len(names):
            message = (
                f"{first.n_columns:,} columns, but the version has {len(names):,} features; the metadata of "
                "the version lists their names in the order of the columns"
            )
            raise _invalid(f"{first.pointer}/shape", message)
        return FeatureRows(names, csr_array(matrix))
    for tensor in tensors:
        _check_one_column(tensor)
    return FeatureRows(
        [tensor.name for tensor in tensors], csr_array(np.hstack([_finite(tensor) for tensor in tensors]))
    )


def _finite(tensor: Tensor) -> Floats:
    if tensor.numbers is None:
        message = "this model was trained on numeric features; send numbers, for example FP64"
        raise _invalid(f"{tensor.pointer}/datatype", message)
    if not np.isfinite(tensor.numbers).all():
        raise _invalid(tensor.pointer, "an element is not a finite number")
    return tensor.numbers


def _read_instances(tensors: Sequence[Tensor]) -> list[Instance]:
    columns: dict[str, Sequence[str | bytes]] = {}
    for tensor in tensors:
        known = tensor.name in EMAIL_PARTS or tensor.name == RAW_EMAIL
        if not known:
            names = ", ".join([TEXT, RAW_EMAIL, *EMAIL_PARTS[1:]])
            raise _invalid(
                f"{tensor.pointer}/name", f"{tensor.name[:100]!r} is not an input; the inputs are {names}"
            )
        if tensor.numbers is not None:
            raise _invalid(f"{tensor.pointer}/datatype", "this model was trained on text; send BYTES")
        _check_one_column(tensor)
        columns[tensor.name] = (
            _encoded(tensor) if tensor.name == RAW_EMAIL else [_text(tensor, i) for i in range(tensor.n_rows)]
        )
    if RAW_EMAIL in columns and len(columns) > 1:
        raise _invalid("/inputs", f"the input {RAW_EMAIL} is a whole message; send no other input with it")
    return [_instance(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def _instance(parts: Mapping[str, Any]) -> Instance:
    if parts.keys() <= {TEXT, RAW_EMAIL}:
        return Instance.model_validate(parts)
    return Instance.model_validate({"email": parts})


def _text(tensor: Tensor, row: int) -> str:
    element = tensor.strings[row]
    if isinstance(element, str):
        return element
    try:
        return element.decode()
    except UnicodeDecodeError as error:
        raise _invalid(f"{tensor.pointer}/data/{row}", f"byte {error.start} is not UTF-8") from error


def _encoded(tensor: Tensor) -> list[str]:
    """Return raw messages in base64."""
    return [
        base64.b64encode(element.encode() if isinstance(element, str) else element).decode()
        for element in tensor.strings
    ]


def _check_one_column(tensor: Tensor) -> None:
    if tensor.n_columns != 1:
        message = f"{tensor.n_columns:,} columns; the input {tensor.name[:100]!r} has one element per row"
        raise _invalid(f"{tensor.pointer}/shape", message)


def _invalid(pointer: str, message: str) -> Invalid:
    return Invalid(f"{pointer}: {message}", errors=[(pointer, message)])
