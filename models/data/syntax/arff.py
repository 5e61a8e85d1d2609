"""Parses the syntax of ARFF: the attribute declarations, and the cells of a row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeAlias, cast

from models.data.files.lines import decode_utf8
from models.data.record import RecordError, quoted
from models.data.values.scalars import number_of_text
from models.errors import BadDataError, BadRecord

AttributeType: TypeAlias = Literal["numeric", "string", "nominal", "hierarchical", "date", "relational"]

YES = frozenset({"1", "1.0", "yes", "true", "y", "t"})
NO = frozenset({"0", "0.0", "no", "false", "n", "f"})
MISSING = "?"

_TYPES: dict[str, AttributeType] = {
    "numeric": "numeric",
    "real": "numeric",
    "integer": "numeric",
    "string": "string",
    "date": "date",
    "relational": "relational",
    "hierarchical": "hierarchical",
}
_QUOTED = r"""'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+\""""
_QUOTED_CELL = re.compile(_QUOTED, re.DOTALL)
_CELL = re.compile(rf"""((?:[^,'"]++|{_QUOTED})*+)(,|$)""")
_ATTRIBUTE = re.compile(rf"""({_QUOTED}|[^\s'"]\S*)\s+(\S.*)""")
_ATTRIBUTE_WITHOUT_SPACE = re.compile(rf"""({_QUOTED}|[^\s{{'"][^\s{{]*)(\{{.*)""")
_NOMINAL = re.compile(rf"""\{{((?:[^{{}}'"]++|{_QUOTED})*+)\}}\s*(?:\{{[\s\d.eE+-]*\}}\s*)?(?:%.*)?""")
_BEFORE_COMMENT = re.compile(rf"""(?:[^%'"]++|{_QUOTED}|(?<![\s,])%)*+(?=%)""")
_WEIGHT = re.compile(r"\{\s*[+-]?[\d.]{1,30}(?:[eE][+-]?\d{1,5})?\s*\}")
# The escapes of Java's StreamTokenizer, which Weka uses, and \uXXXX, which Weka writes.
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


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
            return self.name, number_of_text(cell, self.name)
        feature = self._feature_by_value.get(cell)
        if feature is None:
            raise RecordError(f"{quoted(cell)} is not a value that the header declares", self.name)
        if self.is_flag:
            return self.name, float(cell.lower() in YES)
        return feature, 1.0


@dataclass(frozen=True)
class Header:
    """The part of a file before its rows.

    Attributes:
        relation: the name of the relation; empty if there is none.
        attributes: the columns.
    """

    relation: str
    attributes: Sequence[Attribute]

    def n_labels_of_meka(self) -> int | None:
        """Return the value of the option ``-C`` that MEKA writes into the name of the relation.

        If it is positive, so many attributes at the beginning are labels; if it is negative, at the end.

        Returns:
            None if the name has no such option.

        >>> Header("music: -V -C -6", ()).n_labels_of_meka()
        -6
        """
        words = self.relation.partition(":")[2].split()
        for word, value in pairwise(words):
            if word == "-C" and re.fullmatch(r"[+-]?\d{1,9}", value, re.ASCII):
                return int(value)
        return None


def read_header(lines: Iterator[tuple[int, bytes] | BadRecord]) -> Header:
    """Read the header up to and including the line ``@data``.

    Raises:
        BadDataError: a line of the header is invalid, or ``@data`` is missing.
    """
    relation = ""
    attributes: list[Attribute] = []
    open_relations = 0
    for item in lines:
        if isinstance(item, BadRecord):
            raise BadDataError(f"line {item.line}: {item.reason}", [item])
        number, line = item
        try:
            keyword, definition = _parse_declaration(decode_utf8(line))
            if keyword == "@data":
                return Header(relation, attributes)
            if keyword == "@relation":
                quotation = _QUOTED_CELL.match(definition)
                relation = definition if quotation is None else unquote(quotation[0])
            elif keyword == "@end":
                open_relations -= open_relations > 0
            elif keyword == "@attribute":
                attribute = _parse_attribute(definition)
                if not open_relations:
                    attributes.append(attribute)
                open_relations += attribute.type == "relational"
        except RecordError as error:
            raise BadDataError(f"line {number}: {error.reason}", [error.at_line(number)]) from error
    raise BadDataError("the file has no line @data; add it between the attributes and the rows")


def _parse_declaration(line: str) -> tuple[str, str]:
    """Return the keyword and the rest of a header line; empty strings for an empty line or a comment."""
    line = line.strip()
    if not line or line.startswith("%"):
        return "", ""
    keyword, *rest = line.split(None, 1)
    if keyword.lower() not in {"@relation", "@attribute", "@data", "@end"}:
        raise RecordError(
            f"unknown keyword {quoted(keyword)}; the keywords are @relation, @attribute, @end and @data"
        )
    return keyword.lower(), rest[0] if rest else ""


def _parse_attribute(definition: str) -> Attribute:
    name, type_ = _name_and_type(definition)
    if type_.startswith("{"):
        values = parse_cells(_values(name, type_).strip().removesuffix(","))
        return Attribute(name, "nominal", values)
    word, *rest = type_.split(None, 1)
    known = _TYPES.get(word.lower())
    if known is None:
        raise RecordError(
            f"attribute {quoted(name)}: the type {quoted(word)} is not supported; "
            "use numeric, string, nominal or hierarchical"
        )
    paths = [path.strip() for path in (rest[0] if rest else "").split(",")]
    return Attribute(name, known, paths if known == "hierarchical" else ())


def _name_and_type(definition: str) -> tuple[str, str]:
    """Split a definition. The space before the values of a nominal attribute may be missing."""
    match = _ATTRIBUTE.match(definition)
    has_brace = match is not None and "{" in match[1] and not _QUOTED_CELL.fullmatch(match[1])
    if match is None or has_brace:
        without_space = _ATTRIBUTE_WITHOUT_SPACE.match(definition)
        if without_space is not None and (match is None or _NOMINAL.fullmatch(without_space[2].strip())):
            match = without_space
    if match is None:
        raise RecordError("an attribute needs a name and a type")
    return unquote(match[1]), match[2].strip()


def _values(name: str, type_: str) -> str:
    """Return the list of values without its braces, a weight and a comment."""
    match = _NOMINAL.fullmatch(type_)
    if match is not None:
        return cast("str", match[1])
    if not type_.endswith("}"):
        raise RecordError(f"attribute {quoted(name)}: the list of values has no closing brace")
    return type_[1:-1]


def unquote(word: str) -> str:
    r"""Remove the quotes and escapes of a word. A word without quotes has no escapes.

    Raises:
        RecordError: the word begins with a quotation, but does not end with it.

    >>> unquote(r"'it\'s\n50\% \u00fc'")
    "it's\n50% ü"
    """
    if not word or word[0] not in "'\"":
        return word
    if _QUOTED_CELL.fullmatch(word) is None:
        raise RecordError(f"invalid quotes in {quoted(word)}; write a quote inside a text as \\{word[0]}")
    text = word[1:-1]
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(_unescape, text)
    if text.isascii() or text.isprintable():
        return text
    # Java writes a character beyond U+FFFF as a pair of surrogates.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _ESCAPED.get(code, code)


def parse_cells(text: str) -> list[str]:
    """Split a row into cells, or a list of nominal values into values.

    Raises:
        RecordError: the quotes are invalid.

    >>> parse_cells("1, 'a, b' ,?")
    ['1', 'a, b', '?']
    """
    if "'" not in text and '"' not in text:
        return [piece.strip() for piece in text.split(",")]
    return [unquote(piece) for piece in _split_by_commas(text)]


def parse_row(line: str, n_attributes: int) -> tuple[list[str], bool]:
    r"""Split a dense row into cells.

    Weka accepts more than a comma between two cells: a comma after the last cell, white space instead of
    commas, and a weight in braces at the end.

    Returns:
        The cells, and whether the row has a weight.

    Raises:
        RecordError: the quotes are invalid.

    >>> parse_row("1, red, {0.5}", 2)
    (['1', 'red'], True)
    >>> parse_row("1\tred", 2)
    (['1', 'red'], False)
    """
    cells = parse_cells(line)
    if len(cells) == n_attributes:
        return cells, False
    if len(cells) == n_attributes + 1:
        if not cells[-1] and line.endswith(","):
            return cells[:-1], False
        if _WEIGHT.fullmatch(cells[-1]) and line.endswith("}"):
            return cells[:-1], True
    if len(cells) == 1 and "'" not in line and '"' not in line and len(words := line.split()) == n_attributes:
        return words, False
    return cells, False


def split_weight(line: str) -> tuple[str, bool]:
    """Return a sparse row without its weight, and whether it has one.

    >>> split_weight("{0 1, 2 5}, {0.5}")
    ('{0 1, 2 5}', True)
    """
    start = line.rfind("{")
    row = line[:start].rstrip(" \t,")
    if start > 0 and row.endswith("}") and _WEIGHT.fullmatch(line, start):
        return row, True
    return line, False


def without_comment(line: str) -> str:
    """Return a line without the comment at its end: from a ``%`` that follows white space or a comma.

    >>> without_comment("1, '50 % off' % a comment")
    "1, '50 % off'"
    """
    match = _BEFORE_COMMENT.match(line)
    return line if match is None else match[0].strip()


def parse_sparse_cells(text: str) -> Iterator[tuple[int, str]]:
    """Yield the index and the cell of each pair in a sparse row without its braces.

    Raises:
        RecordError: a pair is invalid.

    >>> list(parse_sparse_cells("1 X, 3 'a, b',"))
    [(1, 'X'), (3, 'a, b')]
    """
    text = text.strip().removesuffix(",")
    for piece in _split_by_commas(text) if text else ():
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
            raise RecordError(
                f"invalid quotes after {quoted(text[position : position + 30])}; "
                "put a text with quotes between quotes, and write a quote inside it as \\' or \\\""
            )
        pieces.append(match[1].strip())
        if not match[2]:
            return pieces
        position = match.end()
