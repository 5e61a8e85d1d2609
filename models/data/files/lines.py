"""Reads numbered lines from a byte stream in bounded memory, and converts UTF-16 to UTF-8."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal, cast

from models.data.record import RecordError
from models.errors import BadDataError, BadRecord

BOM = b"\xef\xbb\xbf"

WideEncoding = Literal["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]

_BYTE_ORDER_MARKS: tuple[tuple[bytes, WideEncoding], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def numbered_lines(stream: BinaryIO, max_bytes: int) -> Iterator[tuple[int, bytes] | BadRecord]:
    r"""Yield the lines of a stream with their 1-based numbers, without line ends.

    A UTF-8 byte order mark is removed. Lines end in LF or CRLF. A line of more than ``max_bytes`` is skipped
    without being kept in memory, and yields a :class:`BadRecord`.

    >>> import io
    >>> list(numbered_lines(io.BytesIO(b"a\r\nb"), 10))
    [(1, b'a'), (2, b'b')]
    """
    number = 0
    while line := stream.readline(max_bytes + 2):
        number += 1
        if number == 1:
            line = line.removeprefix(BOM)
        complete = line.endswith(b"\n")
        line = line.removesuffix(b"\n").removesuffix(b"\r") if complete else line
        if len(line) > max_bytes:
            while not complete and (rest := stream.readline(2**16)):
                complete = rest.endswith(b"\n")
            yield BadRecord(number, f"the line is longer than the limit of {max_bytes:,} bytes")
        else:
            yield number, line


def decode_utf8(line: bytes) -> str:
    """Decode a line of UTF-8.

    Raises:
        RecordError: the line is not UTF-8; names the column.
    """
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        raise RecordError(f"column {column}: byte 0x{line[error.start]:02x} is not valid UTF-8") from error


def find_wide_encoding(start: bytes) -> WideEncoding | None:
    r"""Return the encoding of a text in UTF-16 or UTF-32; None for other content.

    A text has a byte order mark, or begins with two ASCII characters, which have a NUL byte each in UTF-16.

    Args:
        start: the first bytes of the file, at least four if it has so many.

    >>> find_wide_encoding("labels".encode("utf-16-le")), find_wide_encoding(b"labels")
    ('utf-16-le', None)
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if start.startswith(mark):
            return encoding
    if len(start) >= 4:
        low, high = start[:4:2], start[1:4:2]
        if high == b"\0\0" and 0 not in low:
            return "utf-16-le"
        if low == b"\0\0" and 0 not in high:
            return "utf-16-be"
    return None


def guess_utf16(start: bytes) -> WideEncoding:
    """Return the byte order of a text in UTF-16, from the NUL bytes that ASCII characters have."""
    return "utf-16-be" if start[::2].count(0) > start[1::2].count(0) else "utf-16-le"


def as_utf8(stream: BinaryIO, encoding: WideEncoding | None = None) -> BinaryIO:
    """Return a text stream in UTF-8: converted from UTF-16 or UTF-32, or else the stream itself.

    A converted stream begins with a byte order mark. Half of a surrogate pair becomes bytes that are not
    valid UTF-8, so that the reader can reject the line.

    Args:
        stream: a buffered stream at its beginning.
        encoding: the encoding; None detects it.

    Raises:
        BadDataError: while reading: the stream contains bytes that are no characters, or is truncated.
    """
    encoding = encoding or find_wide_encoding(cast("io.BufferedReader", stream).peek(4))
    if encoding is None:
        return stream
    return cast("BinaryIO", io.BufferedReader(_Utf8Stream(stream, encoding), 2**18))


class _Utf8Stream(io.RawIOBase):
    """Converts UTF-16 or UTF-32 to UTF-8."""

    def __init__(self, stream: BinaryIO, encoding: WideEncoding) -> None:
        self._stream = stream
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
        self._started = False
        self._ended = False
        self._pending = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._pending and not self._ended:
            self._pending = self._convert(self._stream.read(2**16))
        data, self._pending = self._pending[: len(buffer)], self._pending[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def _convert(self, chunk: bytes) -> bytes:
        self._ended = not chunk
        try:
            text = self._decoder.decode(chunk, final=self._ended)
        except UnicodeDecodeError as error:
            raise BadDataError(
                f"the file is not valid {self._encoding.upper()}: {error.reason}; "
                "upload the complete file, or save it as UTF-8"
            ) from error
        if text and not self._started:
            self._started = True
            text = "\ufeff" + text.removeprefix("\ufeff")
        return text.encode("utf-8", "surrogatepass")
