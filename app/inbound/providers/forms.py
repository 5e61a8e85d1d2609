"""Find the fields of forms: ``multipart/form-data`` and ``application/x-www-form-urlencoded``.

A provider can put its signature into the form, so a form comes from anybody until that field is read. To find
the fields costs one pass over the body and no memory; only a field that is asked for is copied or decoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote_to_bytes

from app.errors import BadRequest, Invalid

MAX_FIELDS: Final = 500
"""Maximum number of fields of a form. The providers send about twenty."""

MAX_HEADER_BYTES: Final = 8192
"""Maximum size of the header of a field. The providers send about 100 bytes."""

MAX_NAME_BYTES: Final = 200
"""Maximum size of a name of a pair. The providers have no longer names."""

FORM_TYPES: Final = frozenset({"multipart/form-data", "application/x-www-form-urlencoded"})

_PIECE_BYTES: Final = 64 * 1024
"""Bytes that are decoded at once: the function of the standard library needs a list of all escapes."""

_PARAMETER: Final = re.compile(rb';\s*+([\w*-]++)\s*+=\s*+(?:"((?:[^"\\]++|\\.)*+)"|([^\s;"]++))', re.DOTALL)
_DISPOSITION: Final = re.compile(rb"^content-disposition[ \t]*+:([^\r\n]*+)", re.IGNORECASE | re.MULTILINE)


class Form:
    """The places of the fields in a body.

    Args:
        body: the body.
        places: where the value of each field begins and ends, by name.
        decode: returns the first bytes of a value, given the body, its begin and end, and their number.
    """

    def __init__(
        self,
        body: bytes,
        places: dict[bytes, tuple[int, int]],
        decode: Callable[[bytes, int, int, int], bytes],
    ) -> None:
        self._body = body
        self._places = places
        self._decode = decode

    def get(self, name: str, limit: int) -> bytes | None:
        """Return a field; None if the form does not have it.

        The value is bytes, because a message need not be valid in any charset.

        Args:
            name: name of the field. If it occurs several times, the first value counts.
            limit: maximum number of bytes to return; the rest is not decoded.
        """
        place = self._places.get(name.encode())
        return None if place is None else self._decode(self._body, *place, limit)

    def required(self, name: str, limit: int, hint: str) -> bytes:
        """Return a field; see ``get``.

        Raises:
            Invalid: the form does not have the field.
        """
        value = self.get(name, limit)
        if value is None:
            raise Invalid(f"the form has no field {name}; {hint}", errors=[(f"/{name}", "is missing")])
        return value


def find_fields(content_type: str, body: bytes) -> Form:
    """Return the form in a body.

    Args:
        content_type: the header ``Content-Type``, one of ``FORM_TYPES``.
        body: the body.

    Raises:
        BadRequest: the body is not such a form, or has more than ``MAX_FIELDS`` fields.
    """
    kind, _, parameters = content_type.partition(";")
    if kind.strip().lower() == "multipart/form-data":
        boundary = _parameter(b";" + parameters.encode("latin-1", "replace"), b"boundary")
        if not boundary:
            raise _malformed("its Content-Type has no boundary")
        return Form(body, _first_of_each(_parts(boundary, body)), _decode_part)
    return Form(body, _first_of_each(_pairs(body)), _decode_urlencoded)


def _first_of_each(fields: Iterator[tuple[bytes, int, int]]) -> dict[bytes, tuple[int, int]]:
    places: dict[bytes, tuple[int, int]] = {}
    for number, (name, start, end) in enumerate(fields):
        if number == MAX_FIELDS:
            raise _malformed(f"it has more than {MAX_FIELDS} fields")
        places.setdefault(name, (start, end))
    return places


def _parts(boundary: bytes, body: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, begin and end of each part. Text that only begins like a boundary belongs to its part."""
    line = rb"--%b(?:(--)|[ \t]*+\r\n)" % re.escape(boundary)
    # A pattern that begins with fixed bytes is found twenty times as fast, during which no other thread runs.
    boundary_line = re.compile(rb"\r\n" + line)
    found = re.match(line, body) or boundary_line.search(body)
    while found is not None and found[1] is None:
        header = body[found.end() : found.end() + MAX_HEADER_BYTES]
        header_end = 0 if header.startswith(b"\r\n") else header.find(b"\r\n\r\n") + 2
        if header_end == 1:
            raise _malformed(f"the header of a field does not end within {MAX_HEADER_BYTES:,} bytes")
        start = found.end() + header_end + 2
        # The line break after the header can be the one of the next boundary.
        found = boundary_line.search(body, start - 2)
        if found is not None:
            disposition = _DISPOSITION.search(header, 0, header_end)
            name = b"" if disposition is None else _parameter(disposition[1], b"name")
            yield name, start, max(start, found.start())
    if found is None:
        raise _malformed("its last boundary is missing")


def _pairs(body: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, begin and end of each pair."""
    start = 0
    while start <= len(body):
        end = body.find(b"&", start)
        end = len(body) if end < 0 else end
        equals = body.find(b"=", start, min(end, start + MAX_NAME_BYTES))
        if equals >= 0:
            yield _decode_urlencoded(body, start, equals, MAX_NAME_BYTES), equals + 1, end
        else:
            yield b"", end, end
        start = end + 1


def _parameter(header: bytes, name: bytes) -> bytes:
    """Return a parameter of a header field; empty if it is missing."""
    for parameter in _PARAMETER.finditer(header):
        if parameter[1].lower() == name:
            return parameter[3] or re.sub(rb"\\(.)", rb"\1", parameter[2] or b"", flags=re.DOTALL)
    return b""


def _decode_part(body: bytes, start: int, end: int, limit: int) -> bytes:
    return body[start : min(end, start + limit)]


def _decode_urlencoded(body: bytes, start: int, end: int, limit: int) -> bytes:
    value = bytearray()
    while start < end and len(value) < limit:
        piece_end = min(end, start + _PIECE_BYTES)
        if piece_end < end and (escape := body.rfind(b"%", piece_end - 2, piece_end)) >= 0:
            piece_end = escape
        value += unquote_to_bytes(body[start:piece_end].replace(b"+", b" "))
        start = piece_end
    return bytes(value[:limit])


def _malformed(reason: str) -> BadRequest:
    return BadRequest(f"the body is not a form: {reason}", errors=[("", reason)])
