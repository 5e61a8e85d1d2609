"""Parses one JSON value strictly, and names the cause if it is not valid."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final

from pydantic_core import from_json

from models.data.files.lines import decode_utf8
from models.data.record import RecordError, json_pointer, quoted

_SPACED_COLON: Final = re.compile(rb'"[ \t\r\n]+:')
_POSITION: Final = re.compile(r" at line (\d+) column (\d+)$")
_WORD: Final = re.compile(rb"[-+]?[A-Za-z_]+")
_NUMBERS: Final = frozenset({"nan", "infinity", "inf"})
_PYTHON_WORDS: Final = frozenset({"None", "True", "False"})
_PYTHON: Final = "this is Python, not JSON; write the example with json.dumps"


def parse_json(text: bytes, line: int | None = None) -> Any:
    """Parse a JSON value, strictly by RFC 8259: no NaN, unpaired surrogates or repeated keys.

    Args:
        text: the value.
        line: the line in which a value over several lines begins, for errors; None if it is on one line.

    Raises:
        RecordError: the text is not one JSON value in UTF-8; names the column, and the line if it is another.
    """
    try:
        value = from_json(text, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        decode_utf8(text)  # if the encoding is the fault, this error names the column
        raise _describe(text, str(error), line) from error
    if type(value) is dict or type(value) is list:
        _reject_repeated_keys(text, value)
    return value


def _describe(text: bytes, message: str, first_line: int | None) -> RecordError:
    found = _POSITION.search(message)
    line, column = (int(found[1]), int(found[2])) if found else (1, 1)
    reason = _POSITION.sub("", message)
    start = 0
    for _ in range(line - 1):
        start = text.find(b"\n", start) + 1
    cause = _find_cause(text, start + column - 1, reason) or reason
    place = f"column {column}"
    if first_line is not None and line > 1:
        place = f"line {first_line + line - 1}, {place}"
    return RecordError(f"{place}: not valid JSON: {cause}")


def _find_cause(text: bytes, position: int, reason: str) -> str | None:
    """Return the probable cause of an error, and what to do; None for an unknown cause."""
    byte = text[position : position + 1]
    if reason.startswith("EOF"):
        return f"{reason}; the example is not complete, or has a line break that is not written as \\n"
    if reason.startswith("trailing characters"):
        return {
            b"{": "another object begins here; write each example on a line of its own",
            b"[": "another list begins here; write each example on a line of its own",
            b",": "a comma after the example; delete it, or put all examples in brackets [ ]",
        }.get(byte)
    if byte == b"'":
        return f"a single quote; {_PYTHON}"
    # The parser stops in the middle of a word such as NaN or nul.
    start = position
    while start > 0 and position - start < 10 and text[start - 1 : start].isalpha():
        start -= 1
    start -= text[start - 1 : start] in {b"-", b"+"}
    match = _WORD.match(text, max(start, 0))
    word = match[0].decode() if match else ""
    if word.lstrip("-+").lower() in _NUMBERS:
        return f"{word} is not a number of JSON; write null, or leave the field out"
    if word in _PYTHON_WORDS:
        return f"{word}: {_PYTHON}"
    return f"{reason}: {quoted(word)}" if len(word) > 1 else None


def _reject_repeated_keys(text: bytes, value: dict[str, Any] | list[Any]) -> None:
    """Reject an object with a repeated key, of which parsers silently keep only the last value.

    Every key is followed by a colon, possibly after white space. If a quote and a colon occur only as often
    as keys were parsed, no key was lost, and the slow check is not needed.
    """
    if type(value) is dict:
        n_keys = len(value) + sum(len(nested) for nested in value.values() if type(nested) is dict)
        if text.count(b'":') == n_keys and not _SPACED_COLON.search(text):
            return

    def reject(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            key = next(key for key, _ in pairs if counts[key] > 1)
            raise RecordError("the key occurs twice in one object; remove one", json_pointer(key))
        return members

    json.loads(text, object_pairs_hook=reject)
