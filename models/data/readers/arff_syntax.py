"""The grammar of ARFF: its head, and how a row is cut into cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from models.data.readers.lines import decode
from models.data.readers.table import parse_number
from models.data.record import RecordError, quoted
from models.errors import BadDataError, BadRecord

AttributeType: TypeAlias = Literal["numeric", "string", "nominal", "hierarchical"]

YES = frozenset({"1", "1.0", "yes", "true", "y", "t"})
NO = frozenset({"0", "0.0", "no", "false", "n", "f"})
MISSING = "?"

_QUOTED = r"""'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+\""""
_CELL = re.compile(rf"""((?:[^,'"]++|{_QUOTED})*+)(,|$)""")
_ATTRIBUTE = re.compile(rf"({_QUOTED}|\S+)\s+(\S.*)")
_ESCAPE = re.compile(r"\\(.)")


@dataclass(frozen=True)
class Attribute:
    """One column.

    Attributes:
        name: as the head calls it.
        type: what its cells are.
        values: of a nominal attribute, or the paths of a hierarchical one.
    """

    name: str
    type: AttributeType
    values: Sequence[str] = ()

    @cached_property
    def is_flag(self) -> bool:
        """Whether it is nominal with a yes and a no."""
        words = {value.lower() for value in self.values}
        return self.type == "nominal" and len(words) == 2 and bool(words & YES) and bool(words & NO)

    @property
    def omitted(self) -> str:
        """The cell that a sparse row leaves out: zero, or the first value of a nominal attribute."""
        return self.values[0] if self.type == "nominal" and self.values else "0"

    @property
    def feature_names(self) -> list[str]:
        """The features it becomes: itself, or one a value where it is nominal and not a flag."""
        if self.type == "numeric" or self.is_flag:
            return [self.name]
        return list(self._feature_by_value.values())

    @cached_property
    def _feature_by_value(self) -> dict[str, str]:
        return {value: f"{self.name}={value}" for value in self.values}

    def feature(self, cell: str) -> tuple[str, float]:
        """The one feature that a cell sets, and its value.

        Raises:
            RecordError: the cell is not of the attribute's type.
        """
        if self.type == "numeric":
            return self.name, parse_number(cell, self.name)
        feature = self._feature_by_value.get(cell)
        if feature is None:
            raise RecordError(f"{quoted(cell)} is not one of its values in the head", self.name)
        if self.is_flag:
            return self.name, float(cell.lower() in YES)
        return feature, 1.0


def read_header(lines: Iterator[tuple[int, bytes] | BadRecord]) -> list[Attribute]:
    """The attributes, up to and with the line ``@data``.

    Raises:
        BadDataError: a line of the head cannot be read, or ``@data`` is missing.
    """
    attributes: list[Attribute] = []
    for item in lines:
        if isinstance(item, BadRecord):
            raise BadDataError(f"line {item.line}: {item.reason}", [item])
        number, line = item
        try:
            keyword, definition = _declaration(decode(line))
            if keyword == "@data":
                return attributes
            if keyword == "@attribute":
                attributes.append(_attribute(definition))
        except RecordError as error:
            raise BadDataError(f"line {number}: {error.reason}", [error.at(number)]) from error
    raise BadDataError("the file has no line @data")


def _declaration(line: str) -> tuple[str, str]:
    """Keyword and rest of a line of the head; nothing for an empty line or a comment."""
    line = line.strip()
    if not line or line.startswith("%"):
        return "", ""
    keyword, *rest = line.split(None, 1)
    if keyword.lower() not in {"@relation", "@attribute", "@data"}:
        raise RecordError(f"{quoted(keyword)} is none of @relation, @attribute and @data")
    return keyword.lower(), rest[0] if rest else ""


def _attribute(definition: str) -> Attribute:
    match = _ATTRIBUTE.match(definition)
    if match is None:
        raise RecordError("an attribute has a name and a type")
    name, type_ = unquote(match[1]), match[2].strip()
    if type_.startswith("{"):
        if not type_.endswith("}"):
            raise RecordError(f"the values of {quoted(name)} have no closing brace")
        return Attribute(name, "nominal", parse_cells(type_[1:-1]))
    word, *rest = type_.split(None, 1)
    match word.lower():
        case "numeric" | "real" | "integer":
            return Attribute(name, "numeric")
        case "string":
            return Attribute(name, "string")
        case "hierarchical":
            paths = rest[0] if rest else ""
            return Attribute(name, "hierarchical", [path.strip() for path in paths.split(",")])
        case _:
            raise RecordError(f"attribute {quoted(name)}: the type {quoted(word)} cannot be read")


def unquote(word: str) -> str:
    r"""A word without its quotes.

    >>> unquote(r"'it\'s'")
    "it's"
    """
    if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0]:
        return _ESCAPE.sub(r"\1", word[1:-1])
    return word


def parse_cells(text: str) -> list[str]:
    """The cells of a row or the values of a nominal attribute.

    Raises:
        RecordError: a quote is not closed.

    >>> parse_cells("1, 'a, b' ,?")
    ['1', 'a, b', '?']
    """
    return [unquote(piece) for piece in _pieces(text)]


def parse_sparse_cells(text: str) -> Iterator[tuple[int, str]]:
    """Index and cell of each pair in a sparse row, braces taken off.

    Raises:
        RecordError: not such pairs.

    >>> list(parse_sparse_cells("1 X, 3 'a, b'"))
    [(1, 'X'), (3, 'a, b')]
    """
    for piece in _pieces(text) if text.strip() else ():
        words = piece.split(None, 1)
        if len(words) != 2 or not words[0].isascii() or not words[0].isdigit() or len(words[0]) > 10:
            raise RecordError(f"{quoted(piece)} is not an index and a value")
        yield int(words[0]), unquote(words[1])


def _pieces(text: str) -> list[str]:
    if "'" not in text and '"' not in text:
        return [piece.strip() for piece in text.split(",")]
    pieces = []
    position = 0
    while True:
        match = _CELL.match(text, position)
        if match is None:
            raise RecordError(f"quotes are out of order after {quoted(text[position : position + 30])}")
        pieces.append(match[1].strip())
        if not match[2]:
            return pieces
        position = match.end()
