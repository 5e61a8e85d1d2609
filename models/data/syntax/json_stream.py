"""Finds the values in a stream of JSON in bounded memory: one per line, in an array, or one after another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Final, Literal, TypeAlias, cast

from models.data.files.lines import BOM, numbered_lines
from models.errors import BadDataError, BadRecord

Layout: TypeAlias = Literal["lines", "array", "values"]
"""One value per line; the elements of one array; or values over several lines, one after another."""

NumberedValue: TypeAlias = "tuple[int, bytes] | BadRecord"
"""The line in which a value begins, and its JSON."""

# All quantifiers are possessive, thus linear. A string ends at a line end, which JSON does not allow in it.
_STRING: Final = rb'"(?:[^"\\\n]++|\\.)*+"'
_UNTIL_BRACKET: Final = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+([\[\]{}]?)")
_SCALAR: Final = re.compile(rb"(?:[^\s,\"\[\]{}]++|" + _STRING + rb")*+")
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_PAIR: Final = re.compile(rb'\[[ \t]*+"')
_OPEN: Final = frozenset(b"[{")
_MIN_READ: Final = 2**16


def find_layout(start: bytes) -> Layout:
    r"""Return how the values of a file are arranged.

    Args:
        start: the first bytes of the file.

    >>> find_layout(b'{"text": "a"}\n'), find_layout(b'[{"text": "a"}]'), find_layout(b'{\n  "text": "a"\n}')
    ('lines', 'array', 'values')
    """
    start = start.removeprefix(BOM).lstrip()
    first, line_end, _ = start.partition(b"\n")
    first = first.rstrip()
    if first.startswith(b"[") and not _PAIR.match(first):
        return "array"
    is_open = first.startswith(b"{") and bool(line_end) and first.endswith((b"{", b"[", b",", b":"))
    return "values" if is_open else "lines"


def numbered_values(stream: BinaryIO, layout: Layout, max_bytes: int) -> Iterator[NumberedValue]:
    r"""Yield the values of a stream. They need not be valid JSON.

    Args:
        stream: the bytes of the file.
        layout: how the values are arranged.
        max_bytes: maximum size of a value.

    Raises:
        BadDataError: the end of a value cannot be found, or a value is too large; names the line.

    >>> import io
    >>> list(numbered_values(io.BytesIO(b'[{"a": 1},\n "b"]'), "array", 100))
    [(1, b'{"a": 1}'), (2, b'"b"')]
    """
    if layout == "lines":
        return numbered_lines(stream, max_bytes)
    return _array(stream, max_bytes) if layout == "array" else _concatenated(stream, max_bytes)


def _array(stream: BinaryIO, max_bytes: int) -> Iterator[NumberedValue]:
    window = _Window(stream, max_bytes)
    window.skip_space()
    window.skip_byte()
    while (byte := window.skip_space()) != b"]":
        if not byte:
            raise BadDataError(
                f"line {window.line}: the file ends before the end of the array; upload the complete file"
            )
        if byte == b",":
            raise BadDataError(f"line {window.line}: a comma without an example before it; delete the comma")
        yield window.read_value()
        byte = window.skip_space()
        if byte == b",":
            line = window.line
            window.skip_byte()
            if window.skip_space() == b"]":
                raise BadDataError(f"line {line}: a comma after the last example; delete the comma")
        elif byte and byte != b"]":
            raise BadDataError(f"line {window.line}: a comma is missing before this example")
    window.skip_byte()
    if window.skip_space():
        raise BadDataError(
            f"line {window.line}: text after the end of the array; upload one array, or write one example "
            "per line without brackets around them"
        )


def _concatenated(stream: BinaryIO, max_bytes: int) -> Iterator[NumberedValue]:
    window = _Window(stream, max_bytes)
    while byte := window.skip_space():
        if byte == b",":
            raise BadDataError(
                f"line {window.line}: a comma between examples; put all examples in brackets [ ], or delete "
                "the commas"
            )
        yield window.read_value()


class _Window:
    """The part of a stream from the beginning of a value.

    Attributes:
        line: 1-based line of the next byte.
    """

    def __init__(self, stream: BinaryIO, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._bytes = stream.read(_MIN_READ).removeprefix(BOM)
        self._start = 0
        self.line = 1

    def skip_space(self) -> bytes:
        """Skip white space. Return the byte after it without skipping it; no byte at the end."""
        while True:
            match = _SPACE.match(self._bytes, self._start)
            self._advance(self._start if match is None else match.end())
            if self._start < len(self._bytes) or not self._fill():
                return self._bytes[self._start : self._start + 1]

    def skip_byte(self) -> None:
        """Skip one byte that is not a line end."""
        self._start += 1

    def read_value(self) -> tuple[int, bytes]:
        """Read the value that begins here.

        Raises:
            BadDataError: the end of the value cannot be found, or the value is too large.
        """
        line = self.line
        end = self._find_bracket() if self._bytes[self._start] in _OPEN else self._find_scalar_end()
        value = self._bytes[self._start : end]
        if len(value) > self._max_bytes:
            raise self._too_large()
        self._advance(end)
        return line, value

    def _find_bracket(self) -> int:
        """Return the end of the object or list that begins here."""
        position, depth = self._start, 0
        while True:
            match = cast("re.Match[bytes]", _UNTIL_BRACKET.match(self._bytes, position))
            position = match.end()
            if not match[1]:
                position = self._read_on(position)
                continue
            depth += 1 if match[1][0] in _OPEN else -1
            if depth == 0:
                return position

    def _find_scalar_end(self) -> int:
        """Return the end of the text, number or word that begins here."""
        position = self._start
        while True:
            position = cast("re.Match[bytes]", _SCALAR.match(self._bytes, position)).end()
            if position < len(self._bytes) and self._bytes[position] != ord('"'):
                return max(position, self._start + 1)
            position = self._read_on(position)

    def _read_on(self, position: int) -> int:
        """Read more of a value that is complete up to a position. Return the new place of this position."""
        offset = position - self._start
        is_in_text = position < len(self._bytes)
        if self._bytes.find(b"\n", position) < 0 and self._fill():
            return offset
        if is_in_text:
            line = self.line + self._bytes.count(b"\n", self._start, self._start + offset)
            raise BadDataError(
                f"line {line}: a text has no closing quote in its line; write a line break in a text as \\n"
            )
        raise BadDataError(
            f"the example that begins in line {self.line} has no end; a closing bracket is missing, or the "
            "file is not complete"
        )

    def _advance(self, position: int) -> None:
        self.line += self._bytes.count(b"\n", self._start, position)
        self._start = position

    def _fill(self) -> bool:
        """Read more, and drop the bytes before the value. Return whether there was more.

        Raises:
            BadDataError: the value is too large.
        """
        kept = self._bytes[self._start :]
        if len(kept) > self._max_bytes:
            raise self._too_large()
        # Twice as much each time, so that the bytes of a large value are copied only a few times.
        more = self._stream.read(min(max(_MIN_READ, len(kept)), self._max_bytes + 1))
        self._bytes, self._start = kept + more, 0
        return bool(more)

    def _too_large(self) -> BadDataError:
        return BadDataError(
            f"line {self.line}: the example is longer than the limit of {self._max_bytes:,} bytes; if it "
            "contains a list of examples, upload only this list"
        )
