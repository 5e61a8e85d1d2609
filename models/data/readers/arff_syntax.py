"""Parses the syntax of ARFF: the attribute declarations, and the cells of a row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from models.data.readers.lines import decode_utf8
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
    """A column of an ARFF file.

    Attributes:
        name: its name in the header.
        type: type of its cells.
        values: values of a nominal attribute, or class paths of a hierarchical one.
    """

    name: str
    type: AttributeType
    values: Sequence[str] = ()

    @cached_property
    def is_flag(self) -> bool:
        """Whether the attribute is nominal with two values, a yes and a no."""
        words = {value.lower() for value in self.values}
        return self.type == "nominal" and len(words) == 2 and bool(words & YES) and bool(words & NO)

    @property
    def omitted(self) -> str:
        """The cell that a sparse row omits: zero, or the first value of a nominal attribute."""
        return self.values[0] if self.type == "nominal" and self.values else "0"

    @property
    def feature_names(self) -> list[str]:
        """Names of its features: its own name, or ``name=value`` for each nominal value if it is no flag."""
        if self.type == "numeric" or self.is_flag:
            return [self.name]
        return list(self._feature_by_value.values())

    @cached_property
    def _feature_by_value(self) -> dict[str, str]:
        return {value: f"{self.name}={value}" for value in self.values}

    def feature(self, cell: str) -> tuple[str, float]:
        """Return the feature that a cell sets, and its value.

        Raises:
            RecordError: the cell does not have the type of the attribute.
        """
        if self.type == "numeric":
            return self.name, parse_number(cell, self.name)
        feature = self._feature_by_value.get(cell)
        if feature is None:
            raise RecordError(f"{quoted(cell)} is not a value that the header declares", self.name)
        if self.is_flag:
            return self.name, float(cell.lower() in YES)
        return feature, 1.0


def read_header(lines: Iterator[tuple[int, bytes] | BadRecord]) -> list[Attribute]:
    """Read the header up to and including the line ``@data``, and return its attributes.

    Raises:
        BadDataError: a line of the header is invalid, or ``@data`` is missing.
    """
    attributes: list[Attribute] = []
    for item in lines:
        if isinstance(item, BadRecord):
            raise BadDataError(f"line {item.line}: {item.reason}", [item])
        number, line = item
        try:
            keyword, definition = _parse_declaration(decode_utf8(line))
            if keyword == "@data":
                return attributes
            if keyword == "@attribute":
                attributes.append(_parse_attribute(definition))
        except RecordError as error:
            raise BadDataError(f"line {number}: {error.reason}", [error.at_line(number)]) from error
    raise BadDataError("the file has no line @data; add it between the attributes and the rows")


def _parse_declaration(line: str) -> tuple[str, str]:
    """Return the keyword and the rest of a header line; empty strings for an empty line or a comment."""
    line = line.strip()
    if not line or line.startswith("%"):
        return "", ""
    keyword, *rest = line.split(None, 1)
    if keyword.lower() not in {"@relation", "@attribute", "@data"}:
        raise RecordError(
            f"unknown keyword {quoted(keyword)}; the keywords are @relation, @attribute and @data"
        )
    return keyword.lower(), rest[0] if rest else ""


def _parse_attribute(definition: str) -> Attribute:
    match = _ATTRIBUTE.match(definition)
    if match is None:
        raise RecordError("an attribute needs a name and a type")
    name, type_ = unquote(match[1]), match[2].strip()
    if type_.startswith("{"):
        if not type_.endswith("}"):
            raise RecordError(f"attribute {quoted(name)}: the list of values has no closing brace")
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
            raise RecordError(
                f"attribute {quoted(name)}: the type {quoted(word)} is not supported; "
                "use numeric, string, nominal or hierarchical"
            )


def unquote(word: str) -> str:
    r"""Remove the quotes and escapes of a word.

    >>> unquote(r"'it\'s'")
    "it's"
    """
    if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0]:
        return _ESCAPE.sub(r"\1", word[1:-1])
    return word


def parse_cells(text: str) -> list[str]:
    """Split a row into cells, or a list of nominal values into values.

    Raises:
        RecordError: the quotes are invalid.

    >>> parse_cells("1, 'a, b' ,?")
    ['1', 'a, b', '?']
    """
    return [unquote(piece) for piece in _split_by_commas(text)]


def parse_sparse_cells(text: str) -> Iterator[tuple[int, str]]:
    """Yield the index and the cell of each pair in a sparse row without its braces.

    Raises:
        RecordError: a pair is invalid.

    >>> list(parse_sparse_cells("1 X, 3 'a, b'"))
    [(1, 'X'), (3, 'a, b')]
    """
    for piece in _split_by_commas(text) if text.strip() else ():
        words = piece.split(None, 1)
        if len(words) != 2 or not words[0].isascii() or not words[0].isdigit() or len(words[0]) > 10:
            raise RecordError(f"{quoted(piece)} is not an index and a value separated by a space")
        yield int(words[0]), unquote(words[1])


def _split_by_commas(text: str) -> list[str]:
    if "'" not in text and '"' not in text:
        return [piece.strip() for piece in text.split(",")]
    pieces = []
    position = 0
    while True:
        match = _CELL.match(text, position)
        if match is None:
            raise RecordError(f"invalid quotes after {quoted(text[position : position + 30])}")
        pieces.append(match[1].strip())
        if not match[2]:
            return pieces
        position = match.end()
