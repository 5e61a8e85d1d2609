"""Reads what programs write for a list of labels in one cell of text: lists, tags, objects and quoted labels.

A cell is not code: nothing is evaluated, and each function takes time proportional to the length of the cell.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from models.data.record import RecordError, quoted

_MAX_DEPTH: Final = 8
"""Levels of nested lists and objects. Annotation tools write at most three."""

_LITERALS: Final = {
    "None": None,
    "null": None,
    "NULL": None,
    "nan": None,
    "NaN": None,
    "True": True,
    "true": True,
    "False": False,
    "false": False,
}
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TOKEN: Final = re.compile(
    r"""\s*+(?:
        (?P<mark>[\[\](){},:])
      | [uU]?'(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)'
      | [uU]?"(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)"
      | (?P<bare>[^\s\[\](){},:'"]++)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([\\'\"/abfnrtv])|(\n))", re.DOTALL
)
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CLOSING: Final = {"[": "]", "(": ")", "{": "}"}
_CALL: Final = re.compile(r"(?:[A-Za-z]+\.)?(?:array|set|frozenset|Index)\(")
_FIRST_IS_QUOTED: Final = re.compile(r"\s*+[\[({]*+\s*+[uU]?['\"]")
_TAGS: Final = re.compile(r"(?:<[^<>]++>)++")
_ONE_TAG: Final = re.compile(r"<[a-z0-9.+#-]++>")
_PLACEHOLDERS: Final = frozenset(
    {
        "blank",
        "empty",
        "missing",
        "na",
        "nan",
        "nil",
        "none",
        "null",
        "other",
        "undefined",
        "unk",
        "unknown",
        "unlabeled",
        "unlabelled",
    }
)
_SINGLE_QUOTED: Final = re.compile(r"\s*+'([^']*+)'\s*+")

_WHAT_TO_DO: Final = (
    'write the labels with the separator between them, as a JSON list such as ["a", "b"], '
    "or in one column for each label"
)


def read_syntax(cell: str, separator: str) -> list[Any] | dict[str, Any] | None:
    """Return the list or the object that a cell contains; None for labels that are only separated.

    Args:
        cell: a cell that is not blank, without white space around it.
        separator: the separator between labels that are not quoted.

    Raises:
        RecordError: the cell contains a list or an object that cannot be read.
    """
    first = cell[0]
    value: list[Any] | dict[str, Any] | None = None
    if first in "[{(":
        value = _read_bracketed(cell, separator)
    elif first in "<&":
        value = _read_tags(cell)
    elif first == "|" and cell[-1] == "|" and len(cell) > 2 and separator != "|":
        value = [
            part for part in cell.split("|") if part
        ]  # tags, as newer exports of Stack Overflow write them
    elif cell.startswith(";#") and cell.endswith(";#") and separator not in {";", ";#"}:
        value = [part for part in cell.split(";#") if part]  # several choices, as SharePoint writes them
    elif cell[-1] == ")" and (call := _CALL.match(cell)):
        value = _read_call(cell, call.end(), separator)
    elif cell[-1] == "]" and "[" not in cell and (separator in cell or cell[-2:-1] in {"'", '"'}):
        _reject(cell)
    elif first == "'" and cell[-1] == "'":
        value = _read_single_quoted(cell, separator)
    if value is None and '"' in cell:
        return [label for label in split_quoted(cell, separator) if label]
    return value


def split_quoted(text: str, separator: str) -> Iterator[str]:
    r"""Yield the labels of a text, of which some are in double quotes and can contain the separator.

    Quotes count only around a whole label. Inside them, ``""`` and ``\"`` stand for a quote.

    Raises:
        RecordError: a quote is not closed, or more text follows a quoted label.

    >>> list(split_quoted('"Sales, EMEA", 19" screens,Billing', ","))
    ['Sales, EMEA', '19" screens', 'Billing']
    """
    position = 0
    while position <= len(text):
        start = _skip_space(text, position, separator)
        end = start
        label = None
        if text.startswith('"', start):
            closing = _closing_quote(text, start)
            end = _skip_space(text, closing + 1, separator)
            if end == len(text) or text.startswith(separator, end):
                label = text[start + 1 : closing].replace('""', '"').replace('\\"', '"')
            elif separator in text[start:closing]:
                _reject(text, "a quoted label that is followed by other text")
        if label is None:
            end = text.find(separator, end)
            end = len(text) if end < 0 else end
            label = text[start:end]
        yield label.strip()
        position = end + len(separator)


def _skip_space(text: str, position: int, separator: str = "") -> int:
    """Return the position of the next character that is not white space, or of the next separator."""
    while position < len(text) and text[position].isspace():
        if separator and text.startswith(separator, position):
            break
        position += 1
    return position


def _closing_quote(text: str, start: int) -> int:
    position = text.find('"', start + 1)
    while position >= 0:
        if text[position - 1] == "\\":
            position += 1
        elif text.startswith('"', position + 1):
            position += 2
        else:
            break
        position = text.find('"', position)
    if position < 0:
        _reject(text, "a quote that is not closed")
    return position


def _read_single_quoted(cell: str, separator: str) -> list[str] | None:
    """Return labels that are all in single quotes; None if an apostrophe is only a part of a label."""
    labels = []
    position = 0
    while match := _SINGLE_QUOTED.match(cell, position):
        labels.append(match[1])
        if match.end() == len(cell):
            return labels
        if not cell.startswith(separator, match.end()):
            return None
        position = match.end() + len(separator)
    return None


def _read_tags(cell: str) -> list[str] | None:
    """Return the tags of a cell such as ``<python><pandas>``; None if the brackets are something else."""
    text = cell
    if cell.startswith("&lt;") and cell.endswith("&gt;"):
        text = html.unescape(cell)
    if _TAGS.fullmatch(text):
        tags = text[1:-1].split("><")
        if len(tags) > 1 or (_ONE_TAG.fullmatch(text) and tags[0] not in _PLACEHOLDERS):
            return tags
    elif text[0] == "<" and "><" in text:
        _reject(cell)
    return None


def _read_bracketed(cell: str, separator: str) -> list[Any] | dict[str, Any] | None:
    closing = _CLOSING[cell[0]]
    if cell[-1] != closing:
        if closing not in cell or _FIRST_IS_QUOTED.match(cell):
            _reject_unless_text(cell, separator)
        return None  # a label such as "[EXT] Sales"
    inner = cell[1:-1].strip()
    if not inner:
        return []
    if _FIRST_IS_QUOTED.match(inner) or (cell[0] == "{" and ":" in inner):
        return _read_quoted_list(cell)
    brackets = re.findall(r"[\[\](){}]", inner)
    if inner[0] in "[{" or cell[0] in brackets or closing in brackets:
        if next((mark for mark in brackets if mark in {cell[0], closing}), None) == closing:
            return None  # labels such as "[EXT] Sales, [INT] Sales"
        _reject(cell, "a list inside a list")
    if cell[0] == "(" and separator not in inner:
        return None  # a label such as "(other)"
    words = inner.split()
    if separator not in inner and len(words) > 1 and all(map(_NUMBER.fullmatch, words)):
        return [_value(word) for word in words]  # an array of numbers, as NumPy prints it
    parts = list(split_quoted(inner, separator))
    if any(part.startswith("'") for part in parts):
        _reject(cell)
    return [_value(part) for part in parts if part]


def _reject_unless_text(cell: str, separator: str) -> None:
    """Reject a cell with a bracket that is not closed, unless it begins a label such as ``(other``."""
    if cell[0] != "(" or separator in cell or _FIRST_IS_QUOTED.match(cell):
        _reject(cell)


def _read_call(cell: str, start: int, separator: str) -> list[Any] | dict[str, Any] | None:
    """Return the members of ``array([...], dtype=object)``, ``{...}`` in ``frozenset()``, and the like."""
    inner = cell[start:-1]
    before_type = inner.rfind("dtype=")
    if before_type >= 0:
        inner = inner[:before_type].rstrip().removesuffix(",")
    inner = inner.strip()
    if not inner:
        return []
    return _read_bracketed(inner, separator) if inner[0] in "[{(" else None


def _read_quoted_list(cell: str) -> list[Any] | dict[str, Any]:
    """Return a list, tuple, set or object whose strings are in quotes, as JSON, Python or NumPy writes it."""
    try:
        value = json.loads(
            cell,
            object_pairs_hook=_unique,
            parse_constant=lambda _: None,
            parse_int=_value,
            parse_float=_value,
        )
    except (ValueError, RecursionError):
        value = _Parser(cell).parse()
    return value if isinstance(value, dict) else list(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise RecordError("a key occurs twice in the object in the cell; remove one")
    return members


class _Parser:
    """Parses the lists and dictionaries that Python prints, and NumPy's lists without commas."""

    def __init__(self, cell: str) -> None:
        self._cell = cell
        self._position = 0

    def parse(self) -> Any:
        """Return the value of the whole cell."""
        value = self._value_after(self._next(), 0)
        if self._position < len(self._cell):
            _reject(self._cell)
        return value

    def _next(self) -> re.Match[str]:
        match = _TOKEN.match(self._cell, self._position)
        if match is None:
            _reject(self._cell)
        self._position = match.end()
        return match

    def _value_after(self, token: re.Match[str], depth: int) -> Any:
        if token["mark"] in _CLOSING:
            if depth > _MAX_DEPTH:
                _reject(self._cell, "too many lists inside lists")
            return self._members(_CLOSING[token["mark"]], depth + 1)
        return self._scalar(token)

    def _scalar(self, token: re.Match[str]) -> Any:
        if token["mark"]:
            _reject(self._cell)
        text = token["single"] if token["single"] is not None else token["double"]
        if text is not None:
            return _ESCAPE.sub(_unescape, text) if "\\" in text else text
        if token["bare"] == "...":
            _reject(self._cell, "a list that was cut: '...' stands for members that are missing")
        if token["bare"] not in _LITERALS and not _NUMBER.fullmatch(token["bare"]):
            _reject(self._cell)
        return _value(token["bare"])

    def _members(self, closing: str, depth: int) -> Any:
        members: list[Any] = []
        keys: list[str] = []
        can_have_comma = False
        while True:
            token = self._next()
            if token["mark"] == closing:
                break
            if token["mark"] == ",":
                if not can_have_comma:
                    _reject(self._cell)
                can_have_comma = False
                continue
            can_have_comma = True
            value = self._value_after(token, depth)
            if closing == "}" and self._skip_colon():
                if type(value) is not str:
                    _reject(self._cell)
                keys.append(value)
                value = self._value_after(self._next(), depth)
            members.append(value)
        if not keys:
            return members
        if len(keys) != len(members):
            _reject(self._cell)
        return _unique(list(zip(keys, members, strict=True)))

    def _skip_colon(self) -> bool:
        position = _skip_space(self._cell, self._position)
        if not self._cell.startswith(":", position):
            return False
        self._position = position + 1
        return True


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF else "\ufffd"
    return "" if match[5] else _ESCAPED.get(match[4], match[4])


def _value(text: str) -> Any:
    """Return the value of a member that is not in quotes: a missing value, a boolean, a fraction or a text.

    Whole numbers are texts, because they are names of labels.
    """
    if text in _LITERALS:
        return _LITERALS[text]
    if not _NUMBER.fullmatch(text) or text.isdigit():
        return text
    number = float(text)
    return number if not number.is_integer() or abs(number) >= 2**53 else str(int(number))


def _reject(cell: str, what: str = "a list that is not complete, or that mixes quotes") -> NoReturn:
    raise RecordError(f"the cell contains {what}: {quoted(cell)}; {_WHAT_TO_DO}")
