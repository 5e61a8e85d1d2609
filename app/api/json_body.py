"""Strict parsing of JSON bodies: whatever is ambiguous is rejected."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any, Final, TypeAlias

from app.errors import BadRequest, Invalid, TooLarge

_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Unpaired surrogates, which are no characters, and control characters other than tab and line breaks."""

_SURROGATE = re.compile("[\ud800-\udfff]")

_MAYBE_NOT_TEXT = re.compile(rb"\\(?:u(?:[dD][89a-fA-F]|00(?:[01]|7[fF]))|[bf])")
"""Matches every JSON text in which ``_NOT_TEXT`` matches a string: JSON escapes these characters, except
U+007F."""

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair of surrogates
    r"|(?P<unpaired>u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|.)"
)
"""All alternatives begin with the same character, which the search finds quickly."""

DOCUMENT_PARTS = frozenset({"text", "subject", "from", "to", "html", "list_id"})
"""Fields of documents. Their text comes from elsewhere and can contain control characters."""

MAX_CONTAINERS: Final = 200_000
"""Objects and lists in one body. Python's garbage collector visits all of them at once."""

MAX_FIELDS: Final = 100_000
"""Fields of one object."""

_Fields: TypeAlias = list[tuple[str, Any]]

_FAST_VALUES: Final = 100_000
"""Values that the decoder may read while it holds the interpreter; at most as many as the limits above."""


def parse(
    body: bytes,
    *,
    replace_surrogates: bool = False,
    documents: frozenset[str] = frozenset(),
    parts: frozenset[str] | None = DOCUMENT_PARTS,
    max_entries: int | None = None,
) -> Any:
    """Parse a JSON text.

    Args:
        body: the text.
        replace_surrogates: whether to replace unpaired surrogates instead of rejecting them. Some programs
            write them for bytes that they cannot decode.
        documents: top-level fields that contain documents, whose parts can contain control characters.
        parts: the names of these parts; None for every string in a document.
        max_entries: maximum number of entries of a list; None if there is no limit. It ends the work on a
            body with many values early, and is not checked in others.

    Raises:
        BadRequest: the text is not JSON, or is nested too deeply.
        TooLarge: the text has more than ``MAX_CONTAINERS`` objects and lists, an object has more than
            ``MAX_FIELDS`` fields, or a list has too many entries.
        Invalid: an object contains a field twice, or a string or the name of a field contains an unpaired
            surrogate or a control character other than a tab or a line break.

    >>> parse(b'{"a": [1, {"b": 2}]}')
    {'a': [1, {'b': 2}]}
    >>> parse(b'{"a": [{"b": 1, "b": 2}]}')
    Traceback (most recent call last):
    app.errors.Invalid: /a/0/b occurs twice
    """
    try:
        text = body.decode("utf-8-sig")
        if replace_surrogates and ("\\ud" in text or "\\uD" in text):
            text = _ESCAPE.sub(lambda match: "\\ufffd" if match["unpaired"] else match[0], text)
        is_small = _max_values(body) <= _FAST_VALUES
        try:
            value = (_DECODER if is_small else _PatientDecoder(_unique_fields, max_entries)).decode(text)
        except _RepeatedFieldError:
            decoder = _MARKING_DECODER if is_small else _PatientDecoder(_mark_repeated_field, max_entries)
            value = decoder.decode(text)
            raise _repeated_field(value) from None
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg} at line {error.lineno}, column {error.colno}") from error
    except UnicodeDecodeError as error:
        raise _malformed(f"byte {error.start} is not UTF-8") from error
    except RecursionError as error:
        raise _malformed("it is nested too deeply") from error
    except ValueError as error:  # a number of thousands of digits
        raise _malformed(str(error)) from error
    if b"\x7f" in body or _MAYBE_NOT_TEXT.search(body) is not None:
        _check_strings(value, documents, parts)
    return value


def parse_leniently(body: bytes | str) -> Any:
    """Parse the JSON of another service, which can contain any text.

    A field that occurs twice has its last value.

    Raises:
        ValueError: the text is not JSON.
        RecursionError: it is nested too deeply.
        TooLarge: it has more objects, lists, fields or entries of a list than any service sends.
    """
    content = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    if _max_values(content) <= _FAST_VALUES:
        return json.loads(body)
    text = body if isinstance(body, str) else body.decode(json.detect_encoding(body), "surrogatepass")
    return _PatientDecoder(dict, _FAST_VALUES).decode(text)


def _max_values(body: bytes) -> int:
    """Return how many values a JSON text has, or more: commas and brackets can also be parts of strings."""
    n_bytes = len(body)
    if n_bytes <= _FAST_VALUES:
        return n_bytes
    return 1 + body.count(b",") + body.count(b"[") + body.count(b"{")


class _RepeatedFieldError(Exception):
    """An object contains a field twice."""


class _RepeatingObject(dict[str, Any]):
    """An object that contains a field twice.

    Attributes:
        field: the name of the field.
    """

    field: str


def _unique_fields(pairs: _Fields) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _RepeatedFieldError
    return fields


def _mark_repeated_field(pairs: _Fields) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    marked = _RepeatingObject(fields)
    marked.field = Counter(name for name, _ in pairs).most_common(1)[0][0]
    return marked


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique_fields)
_MARKING_DECODER: Final = json.JSONDecoder(object_pairs_hook=_mark_repeated_field)


class _PatientDecoder(json.JSONDecoder):
    """Decode a text with many values, and let other threads run in between.

    The library's decoder in C holds the interpreter until it returns. This one, in Python, is ten times as
    slow. It also counts objects, lists and fields.

    Args:
        create_object: creates an object from its fields.
        max_entries: maximum number of entries of a list; None if there is no limit.
    """

    def __init__(
        self, create_object: Callable[[_Fields], dict[str, Any]], max_entries: int | None = None
    ) -> None:
        super().__init__(object_pairs_hook=self._object)
        self._create_object = create_object
        self._max_entries = max_entries
        self._n_containers = 0
        decoder: Any = self  # has attributes without documentation
        self._parse_list = decoder.parse_array
        decoder.parse_array = self._list
        decoder.scan_once = py_make_scanner(self)

    def _object(self, pairs: _Fields) -> dict[str, Any]:
        self._count_container()
        if len(pairs) > MAX_FIELDS:
            raise _too_many(f"has an object with more than {MAX_FIELDS:,} fields")
        return self._create_object(pairs)

    def _list(self, place: Any, scan: Callable[[str, int], Any]) -> Any:
        self._count_container()
        limit = self._max_entries
        if limit is None:
            return self._parse_list(place, scan)
        n_entries = 0

        def scan_entry(text: str, start: int) -> Any:
            nonlocal n_entries
            n_entries += 1
            if n_entries > limit:
                raise _too_many(f"has a list with more than {limit:,} entries")
            return scan(text, start)

        return self._parse_list(place, scan_entry)

    def _count_container(self) -> None:
        self._n_containers += 1
        if self._n_containers > MAX_CONTAINERS:
            raise _too_many(f"has more than {MAX_CONTAINERS:,} objects and lists")


def _too_many(reason: str) -> TooLarge:
    message = f"{reason}; send a smaller body"
    return TooLarge(f"the body {message}", errors=[("", message)])


def _repeated_field(value: Any) -> Invalid:
    """Return the error for a value with an object that contains a field twice."""
    path, repeating = next(
        (path, container) for path, container in _containers(value) if isinstance(container, _RepeatingObject)
    )
    place = pointer([*_keys(path), repeating.field])
    return Invalid(f"{place} occurs twice", errors=[(place, "occurs twice")])


def _check_strings(value: Any, documents: frozenset[str], parts: frozenset[str] | None) -> None:
    """Check all strings and all names of fields in a value."""
    if isinstance(value, str):
        _refuse(_NOT_TEXT.search(value), None)
    for path, container in _containers(value):
        is_document = path is not None and path[0] in documents
        for key, inner in _items(container):
            if isinstance(key, str):
                _refuse(_NOT_TEXT.search(key), _below(path, key))
            if isinstance(inner, str):
                is_part = is_document and (parts is None or key in parts)
                _refuse((_SURROGATE if is_part else _NOT_TEXT).search(inner), _below(path, key))


def _refuse(wrong: re.Match[str] | None, path: _Path) -> None:
    if wrong is not None:
        place, message = pointer(_keys(path)), describe(wrong[0])
        raise Invalid(f"{place} {message}", errors=[(place, message)])


_Path: TypeAlias = "tuple[Any, _Path, Any] | None"
"""The first name or index of a path, the path without the last one, and the last one; None at the top."""


def _below(path: _Path, key: Any) -> _Path:
    return (key if path is None else path[0], path, key)


def _keys(path: _Path) -> list[Any]:
    keys = []
    while path is not None:
        _, path, key = path
        keys.append(key)
    return keys[::-1]


def _containers(value: Any) -> Iterator[tuple[_Path, Any]]:
    """Yield all objects and lists in a value in their order, each with its path, in constant time each."""
    pending: list[tuple[_Path, Any]] = [(None, value)] if isinstance(value, dict | list) else []
    while pending:
        path, container = pending.pop()
        yield path, container
        inner = [
            (_below(path, key), part) for key, part in _items(container) if isinstance(part, dict | list)
        ]
        pending += reversed(inner)


def _items(container: Any) -> Iterator[tuple[Any, Any]]:
    return iter(container.items() if isinstance(container, dict) else enumerate(container))


def check_text(text: str, part: str, name: str) -> None:
    """Check a text outside of a body.

    Args:
        text: the text.
        part: the part of the request: path or query.
        name: the name of the parameter.

    Raises:
        Invalid: the text contains a control character other than a tab or a line break.
    """
    if (wrong := _NOT_TEXT.search(text)) is not None:
        place, message = pointer([part, name]), describe(wrong[0])
        raise Invalid(f"{place} {message}", errors=[(place, message)])


def describe(character: str) -> str:
    """Describe a character that a text must not contain.

    >>> describe(chr(0)), describe(chr(0xD800))
    ('contains the control character U+0000', 'contains an unpaired surrogate, which is not a character')
    """
    if _SURROGATE.match(character):
        return "contains an unpaired surrogate, which is not a character"
    return f"contains the control character U+{ord(character):04X}"


def pointer(path: Iterable[Any]) -> str:
    """Return the JSON pointer of a path of names and indices.

    >>> pointer(["a/b", 0])
    '/a~1b/0'
    """
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _malformed(reason: str) -> BadRequest:
    return BadRequest(f"the body is not JSON: {reason}", errors=[("", reason)])
