"""Reads the fields of forms: ``multipart/form-data`` and ``application/x-www-form-urlencoded``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from app.errors import BadRequest, Invalid

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MAX_FIELDS: Final = 500
"""Maximum number of fields of a form. The providers send about twenty."""

FORM_TYPES: Final = frozenset({"multipart/form-data", "application/x-www-form-urlencoded"})


def read_form(content_type: str, body: bytes) -> dict[str, bytes]:
    """Return the values of a form by name. If a name occurs several times, the first value counts.

    The values are the bytes of the body: a message need not be valid in any charset.

    Args:
        content_type: the header ``Content-Type``, one of ``FORM_TYPES``.
        body: the body.

    Raises:
        BadRequest: the body is not such a form, or has more than ``MAX_FIELDS`` fields.
    """
    kind, options = parse_options_header(content_type)
    if kind == b"multipart/form-data":
        return _read_multipart(options.get(b"boundary", b""), body)
    return _read_urlencoded(body)


def required_field(form: dict[str, bytes], name: str, remedy: str) -> bytes:
    """Return a field of a form.

    Raises:
        Invalid: the form does not have the field.
    """
    value = form.get(name)
    if value is None:
        raise Invalid(f"the form has no field {name}; {remedy}", errors=[(f"/{name}", "is missing")])
    return value


class _Part:
    """The part of a multipart body that is being read."""

    def __init__(self) -> None:
        self.header_name = self.header_value = b""
        self.name: str | None = None
        self.pieces: list[bytes] = []


def _read_multipart(boundary: bytes, body: bytes) -> dict[str, bytes]:
    form: dict[str, bytes] = {}
    part = _Part()
    n_parts = 0
    ended = False

    def begin() -> None:
        nonlocal part, n_parts
        part = _Part()
        n_parts += 1
        if n_parts > MAX_FIELDS:
            raise _too_many()

    def header_name(data: bytes, start: int, end: int) -> None:
        part.header_name += data[start:end]

    def header_value(data: bytes, start: int, end: int) -> None:
        part.header_value += data[start:end]

    def header_end() -> None:
        if part.header_name.lower() == b"content-disposition":
            name = parse_options_header(part.header_value)[1].get(b"name")
            part.name = None if name is None else name.decode("utf-8", "replace")
        part.header_name = part.header_value = b""

    def data(content: bytes, start: int, end: int) -> None:
        part.pieces.append(content[start:end])

    def end() -> None:
        if part.name is not None:
            form.setdefault(part.name, b"".join(part.pieces))

    def finish() -> None:
        nonlocal ended
        ended = True

    callbacks: MultipartCallbacks = {
        "on_part_begin": begin,
        "on_header_field": header_name,
        "on_header_value": header_value,
        "on_header_end": header_end,
        "on_part_data": data,
        "on_part_end": end,
        "on_end": finish,
    }
    if not boundary:
        raise _malformed("its Content-Type has no boundary")
    try:
        parser = MultipartParser(boundary, callbacks)
        parser.write(body)
        parser.finalize()
    except FormParserError as error:
        raise _malformed(str(error)) from error
    if not ended:
        raise _malformed("its last boundary is missing")
    return form


def _read_urlencoded(body: bytes) -> dict[str, bytes]:
    pairs = body.split(b"&", MAX_FIELDS)
    if len(pairs) > MAX_FIELDS:
        raise _too_many()
    form: dict[str, bytes] = {}
    for pair in pairs:
        name, _, value = pair.replace(b"+", b" ").partition(b"=")
        form.setdefault(unquote_to_bytes(name).decode("utf-8", "replace"), unquote_to_bytes(value))
    return form


def _malformed(reason: str) -> BadRequest:
    return BadRequest(f"the body is not a form: {reason}", errors=[("", reason)])


def _too_many() -> BadRequest:
    return _malformed(f"it has more than {MAX_FIELDS} fields")
