"""Read the fields of forms: ``multipart/form-data`` and ``application/x-www-form-urlencoded``."""

from __future__ import annotations

from math import inf
from typing import Final
from urllib.parse import unquote_to_bytes

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import File, FormParser, parse_options_header

from app.errors import BadRequest, Invalid

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


def _read_multipart(boundary: bytes, body: bytes) -> dict[str, bytes]:
    form: dict[str, bytes] = {}
    n_fields = 0
    ended = False

    def add(name: bytes | None, value: bytes | None) -> None:
        nonlocal n_fields
        n_fields += 1
        if n_fields > MAX_FIELDS:
            raise _too_many()
        form.setdefault((name or b"").decode("utf-8", "replace"), value or b"")

    def add_file(file: File) -> None:
        file.file_object.seek(0)
        add(file.field_name, file.file_object.read())

    def end() -> None:
        nonlocal ended
        ended = True

    if not boundary:
        raise _malformed("its Content-Type has no boundary")
    try:
        parser = FormParser(
            "multipart/form-data",
            lambda field: add(field.field_name, field.value),
            add_file,
            end,
            boundary,
            config={"MAX_MEMORY_FILE_SIZE": inf},  # no temporary files
        )
        parser.write(body)
        parser.finalize()
    except FormParserError as error:
        raise _malformed(str(error)) from error
    if not ended:
        raise _malformed("its last boundary is missing")
    return form


def _read_urlencoded(body: bytes) -> dict[str, bytes]:
    # The parser of the library takes 23 s for the longest body of separators, and a body comes from anybody.
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
