"""Read the tensors of inference requests, as JSON or in the binary extension of the protocol.

With the extension, the body has the JSON text first, whose size is in the header
``Inference-Header-Content-Length``, and then the elements of each tensor that has the parameter
``binary_data_size``: numbers in little-endian byte order, and each element of ``BYTES`` after its size, which
is an unsigned integer of 4 bytes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from app.api.json_body import parse
from app.api.validation import BodyValidator, missing_body
from app.errors import Invalid
from app.protocols.open_inference.schemas import InferenceRequest, RequestInput
from models.arrays import Floats

HEADER_LENGTH: Final = "Inference-Header-Content-Length"

NUMBERS: Final[Mapping[str, str]] = {
    "BOOL": "?",
    **{f"UINT{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
    **{f"INT{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"FP{8 * size}": f"<f{size}" for size in (2, 4, 8)},
}
"""The types of numbers, with their binary format."""

_BODY: Final = BodyValidator(InferenceRequest)


@dataclass(frozen=True)
class Tensor:
    """An input with its elements.

    Attributes:
        name: its name.
        n_rows: number of rows.
        n_columns: number of columns.
        numbers: (n_rows, n_columns) elements; None if they are no numbers.
        strings: elements of type ``BYTES`` in row order; text if the client sent them as JSON.
        pointer: its place in the request.
    """

    name: str
    n_rows: int
    n_columns: int
    numbers: Floats | None
    strings: Sequence[str | bytes]
    pointer: str


def read_request(body: bytes, header_length: str | None) -> tuple[InferenceRequest, list[Tensor]]:
    """Read an inference request.

    Args:
        body: the body.
        header_length: the header with the size of the JSON text; None if the body is a JSON text.

    Raises:
        BadRequest: the JSON text is malformed.
        Invalid: a tensor is invalid; the error has its pointer.
        RequestValidationError: another field is invalid.
        TooLarge: the JSON text has too many values.
    """
    n_json = _json_length(body, header_length)
    if n_json == 0:
        raise missing_body()
    given = parse(body[:n_json], documents=frozenset({"inputs"}), parts=None)
    head, elements = _without_elements(given)
    request: InferenceRequest = _BODY.validate(head)
    return request, _read_tensors(request.inputs, elements, memoryview(body)[n_json:])


def _json_length(body: bytes, header_length: str | None) -> int:
    if header_length is None:
        return len(body)
    if not header_length.isascii() or not header_length.isdigit() or len(header_length) > 18:
        message = f"is not a number of bytes: {header_length[:50]!r}"
        raise Invalid(f"{HEADER_LENGTH} {message}", errors=[(f"/header/{HEADER_LENGTH}", message)])
    if int(header_length) > len(body):
        message = f"states {int(header_length):,} bytes, but the body has {len(body):,}"
        raise Invalid(f"{HEADER_LENGTH} {message}", errors=[(f"/header/{HEADER_LENGTH}", message)])
    return int(header_length)


def _without_elements(given: Any) -> tuple[Any, list[Any]]:
    """Return the request without the elements of its tensors, which can be many, and the elements."""
    if not isinstance(given, dict) or not isinstance(given.get("inputs"), list):
        return given, []
    inputs: list[Any] = given["inputs"]
    heads = [
        {name: value for name, value in item.items() if name != "data"} if isinstance(item, dict) else item
        for item in inputs
    ]
    return {**given, "inputs": heads}, [
        item.get("data") if isinstance(item, dict) else None for item in inputs
    ]


def _read_tensors(
    inputs: Sequence[RequestInput], elements: Sequence[Any], binary: memoryview
) -> list[Tensor]:
    tensors = []
    names: set[str] = set()
    position = 0
    for i, (item, data) in enumerate(zip(inputs, elements, strict=True)):
        pointer = f"/inputs/{i}"
        if item.name in names:
            raise _invalid(f"{pointer}/name", f"the input {item.name!r} occurs twice")
        names.add(item.name)
        size = (item.parameters or {}).get("binary_data_size")
        if size is None:
            tensors.append(_tensor(item, _from_json(item, data, f"{pointer}/data"), pointer))
            continue
        if type(size) is not int or not 0 <= size <= len(binary) - position:
            message = f"the body has {len(binary) - position:,} bytes for this input, not {size!r}"
            raise _invalid(f"{pointer}/parameters/binary_data_size", message)
        part = binary[position : position + size]
        tensors.append(_tensor(item, _from_bytes(item, part, pointer), pointer))
        position += size
    if position < len(binary):
        raise _invalid("/inputs", f"the body has {len(binary) - position:,} bytes that belong to no input")
    return tensors


def _tensor(item: RequestInput, elements: Floats | list[str | bytes], pointer: str) -> Tensor:
    n_rows, n_columns = item.shape[0], prod(item.shape[1:])
    if not isinstance(elements, list):
        return Tensor(item.name, n_rows, n_columns, elements.reshape(n_rows, n_columns), [], pointer)
    if (item.parameters or {}).get("content_type") == "base64":
        elements = [_decode_base64(element, f"{pointer}/data/{i}") for i, element in enumerate(elements)]
    return Tensor(item.name, n_rows, n_columns, None, elements, pointer)


def _from_json(item: RequestInput, data: Any, pointer: str) -> Floats | list[str | bytes]:
    values = _flat(data, item.shape, pointer)
    kinds = set(map(type, values))
    if item.datatype == "BYTES":
        if not kinds <= {str}:
            raise _invalid(pointer, "the elements of type BYTES must be strings")
        return values
    _check_datatype(item, pointer)
    if not kinds <= ({bool, int} if item.datatype == "BOOL" else {int, float}):
        raise _invalid(pointer, f"not all elements are of type {item.datatype}")
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError as error:
        raise _invalid(pointer, "an element is too large") from error


def _flat(data: Any, shape: Sequence[int], pointer: str) -> list[Any]:
    """Return the elements of a flat list, or of a list of rows, in row order."""
    if not isinstance(data, list):
        raise _invalid(pointer, "must be a list of elements")
    if data and isinstance(data[0], list):
        rows, sizes = data, shape[1:]
        if len(rows) != shape[0] or len(sizes) != 1:
            raise _invalid(pointer, f"has another shape than {list(shape)}")
        if any(not isinstance(row, list) or len(row) != sizes[0] for row in rows):
            raise _invalid(pointer, f"each row must be a list of {sizes[0]:,} elements")
        return [element for row in rows for element in row]
    if len(data) != prod(shape):
        raise _invalid(pointer, f"has {len(data):,} elements, but the shape {list(shape)}")
    return data


def _from_bytes(item: RequestInput, part: memoryview, pointer: str) -> Floats | list[str | bytes]:
    n = prod(item.shape)
    if item.datatype == "BYTES":
        return _read_strings(part, n, pointer)
    kind = np.dtype(_check_datatype(item, pointer))
    if len(part) != n * kind.itemsize:
        message = f"has {len(part):,} bytes, but {item.shape} elements of type {item.datatype}"
        raise _invalid(pointer, message)
    return np.frombuffer(part, dtype=kind).astype(np.float64)


def _read_strings(part: memoryview, n: int, pointer: str) -> list[str | bytes]:
    strings: list[str | bytes] = []
    position = 0
    while position < len(part) and len(strings) < n:
        start = position + 4
        position = start + int.from_bytes(part[position:start], "little")
        if start > len(part) or position > len(part):
            raise _invalid(
                pointer, f"the element {len(strings)} ends after the {len(part):,} bytes of the input"
            )
        strings.append(bytes(part[start:position]))
    if len(strings) != n or position != len(part):
        raise _invalid(pointer, f"the {len(part):,} bytes are not {n:,} elements with their sizes")
    return strings


def _check_datatype(item: RequestInput, pointer: str) -> str:
    kind = NUMBERS.get(item.datatype)
    if kind is None:
        place = f"{pointer.removesuffix('/data')}/datatype"
        raise _invalid(place, f"{item.datatype[:50]!r} is not one of {', '.join(['BYTES', *NUMBERS])}")
    return kind


def _decode_base64(element: str | bytes, pointer: str) -> bytes:
    try:
        return base64.b64decode(element, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid(pointer, "is not valid base64, as content_type states") from error


def _invalid(pointer: str, message: str) -> Invalid:
    return Invalid(f"{pointer}: {message}", errors=[(pointer, message)])
