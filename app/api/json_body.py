"""Strict parsing of JSON bodies: whatever is ambiguous is rejected."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any, Final

from pydantic_core import from_json

from app.errors import BadRequest, Invalid, TooLarge

_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Unpaired surrogates, which are no characters, and control characters other than tab and line breaks."""

_SURROGATE = re.compile("[\ud800-\udfff]")

_MAYBE_NOT_TEXT = re.compile(rb"\\(?:u(?:[dD][89a-fA-F]|00(?:[01]|7[fF]))|[bf])")
"""Matches every JSON text in which ``_NOT_TEXT`` matches a string: JSON escapes these characters, except
U+007F."""

_CONTAINERS = {dict, list}

_NAME_END = re.compile(rb'"[ \t\n\r]*:')

_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair of surrogates
    r"|(?P<unpaired>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|\\."
)

DOCUMENT_PARTS = frozenset({"text", "subject", "from", "to", "html", "list_id"})
"""Fields of documents. Their text comes from elsewhere and can contain control characters."""

MAX_CONTAINERS: Final = 200_000
"""Objects and lists in one body. Python's garbage collector visits all of them at once."""

MAX_FIELDS: Final = 100_000
"""Fields of one object."""

_FAST_VALUES: Final = 100_000
"""Values that decoders which hold the interpreter read at once."""


def parse(
    body: bytes,
    *,
    replace_surrogates: bool = False,
    documents: frozenset[str] = frozenset(),
    parts: frozenset[str] | None = DOCUMENT_PARTS,
) -> Any:
    """Parse a JSON text.

    Args:
        body: the text.
        replace_surrogates: whether to replace unpaired surrogates instead of rejecting them. Some programs
            write them for bytes that they cannot decode.
        documents: top-level fields that contain documents, whose parts can contain control characters.
        parts: the names of these parts; None for every string in a document.

    Raises:
        BadRequest: the text is not JSON, or is nested too deeply.
        TooLarge: the text has more than ``MAX_CONTAINERS`` objects and lists, or an object has more than
            ``MAX_FIELDS`` fields.
        Invalid: an object contains a field twice, or a string or the name of a field contains an unpaired
            surrogate or a control character other than a tab or a line break.

    >>> parse(b'{"a": [1, {"b": 2}]}')
    {'a': [1, {'b': 2}]}
    >>> parse(b'{"a": [{"b": 1, "b": 2}]}')
    Traceback (most recent call last):
    app.api.errors.Invalid: /a/0/b occurs twice
    """
    may_not_be_text = b"\x7f" in body or _MAYBE_NOT_TEXT.search(body) is not None
    few_values = min(_FAST_VALUES, MAX_CONTAINERS, MAX_FIELDS)
    n_values = len(body)  # or fewer
    if n_values > few_values:
        n_values = body.count(b",") + body.count(b"[") + body.count(b"{")
    if n_values <= few_values and not may_not_be_text:
        value, is_certain = _parse_fast(body)
        if is_certain:
            return value
    repeated: list[tuple[dict[str, Any], str]] = []
    n_containers = 0

    def count_container() -> None:
        nonlocal n_containers
        n_containers += 1
        if n_containers > MAX_CONTAINERS:
            message = f"has more than {MAX_CONTAINERS:,} objects and lists; send a smaller body"
            raise TooLarge(f"the body {message}", errors=[("", message)])

    def fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        count_container()
        if len(pairs) > MAX_FIELDS:
            message = f"has an object with more than {MAX_FIELDS:,} fields; send a smaller body"
            raise TooLarge(f"the body {message}", errors=[("", message)])
        given = dict(pairs)
        if len(given) < len(pairs) and not repeated:
            names = Counter(name for name, _ in pairs)
            repeated.append((given, names.most_common(1)[0][0]))
        return given

    try:
        text = body.decode("utf-8-sig")
        if replace_surrogates:
            text = _ESCAPE.sub(lambda match: "\\ufffd" if match["unpaired"] else match[0], text)
        value = _decoder(n_values, fields, count_container).decode(text)
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg} at line {error.lineno}, column {error.colno}") from error
    except UnicodeDecodeError as error:
        raise _malformed(f"byte {error.start} is not UTF-8") from error
    except RecursionError as error:
        raise _malformed("it is nested too deeply") from error
    except ValueError as error:  # a number of thousands of digits
        raise _malformed(str(error)) from error
    for object_, name in repeated:
        place = next(_pointer([*path, name]) for path, part, is_name in _walk(value) if part is object_)
        raise Invalid(f"{place} occurs twice", errors=[(place, "occurs twice")])
    if may_not_be_text:
        _check_strings(value, documents, parts)
    return value


def _parse_fast(body: bytes) -> tuple[Any, bool]:
    """Parse a JSON text without a call for each object.

    Returns:
        The value, and whether no object contains a field twice. If not, the text can still be correct.
    """
    try:
        value = from_json(body)
    except ValueError:
        return None, False  # the other parser describes the error
    # A name ends with a quotation mark before a colon, and so can parts of strings. If there are no more such
    # places than names in the value, then no name has replaced an equal one.
    return value, len(_NAME_END.findall(body)) == _count_names(value)


def _count_names(value: Any) -> int:
    """Return the number of fields of all objects in a value."""
    count = 0
    parts = [value] if type(value) in _CONTAINERS else []
    for part in parts:
        if isinstance(part, dict):
            count += len(part)
        inner = part.values() if isinstance(part, dict) else part
        parts += [each for each in inner if type(each) in _CONTAINERS]
    return count


def _decoder(
    n_values: int, fields: Callable[[list[tuple[str, Any]]], Any], count_container: Callable[[], None]
) -> json.JSONDecoder:
    """Return a decoder that lets other threads run at least every hundred milliseconds.

    The decoder in C holds the interpreter until it returns. For a body with many values, this function
    returns the decoder in Python, which is ten times as slow.
    """
    decoder: Any = json.JSONDecoder(object_pairs_hook=fields)
    if n_values > _FAST_VALUES:
        parse_array = decoder.parse_array

        def parse_list(*arguments: Any) -> Any:
            count_container()
            return parse_array(*arguments)

        decoder.parse_array = parse_list
        decoder.scan_once = py_make_scanner(decoder)
    return decoder  # type: ignore[no-any-return]


def _check_strings(value: Any, documents: frozenset[str], parts: frozenset[str] | None) -> None:
    for path, part, is_name in _walk(value):
        if not isinstance(part, str) or (wrong := _NOT_TEXT.search(part)) is None:
            continue
        is_inside = not is_name and len(path) > 1 and path[0] in documents
        if is_inside and (parts is None or path[-1] in parts):
            wrong = _SURROGATE.search(part)
        if wrong is not None:
            message = describe(wrong[0])
            raise Invalid(f"{_pointer(path)} {message}", errors=[(_pointer(path), message)])


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
        pointer, message = f"/{part}/{escape(name)}", describe(wrong[0])
        raise Invalid(f"{pointer} {message}", errors=[(pointer, message)])


def describe(character: str) -> str:
    """Describe a character that a text must not contain.

    >>> describe(chr(0)), describe(chr(0xD800))
    ('contains the control character U+0000', 'contains an unpaired surrogate, which is not a character')
    """
    if _SURROGATE.match(character):
        return "contains an unpaired surrogate, which is not a character"
    return f"contains the control character U+{ord(character):04X}"


def escape(part: Any) -> str:
    """Escape a name or an index for a JSON pointer."""
    return str(part).replace("~", "~0").replace("/", "~1")


def _pointer(path: Sequence[Any]) -> str:
    return "".join(f"/{escape(part)}" for part in path)


def _malformed(reason: str) -> BadRequest:
    return BadRequest(f"the body is not JSON: {reason}", errors=[("", reason)])


def _walk(value: Any) -> Iterator[tuple[Sequence[Any], Any, bool]]:
    """Yield every value and every field name inside a value, in constant time each.

    Yields:
        The path, valid only until the next step; the value or name; and whether it is a name.
    """
    path: list[Any] = []
    yield path, value, False
    waiting = [_items(value)]
    while waiting:
        for key, inner in waiting[-1]:
            path.append(key)
            if isinstance(key, str):
                yield path, key, True
            yield path, inner, False
            if isinstance(inner, dict | list):
                waiting.append(_items(inner))
                break
            path.pop()
        else:
            waiting.pop()
            if path:
                path.pop()


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        return iter(value.items())
    return iter(enumerate(value)) if isinstance(value, list) else iter(())
