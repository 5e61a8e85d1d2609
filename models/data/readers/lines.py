"""Reads numbered lines from a byte stream in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from models.data.record import RecordError
from models.errors import BadDataError, BadRecord

BOM = b"\xef\xbb\xbf"


def numbered_lines(stream: BinaryIO, max_bytes: int) -> Iterator[tuple[int, bytes] | BadRecord]:
    r"""Yield the lines of a stream with their 1-based numbers, without line ends.

    A UTF-8 byte order mark is removed. Lines end in LF or CRLF. A line of more than ``max_bytes`` is skipped
    without being kept in memory, and yields a :class:`BadRecord`.

    Raises:
        BadDataError: the file is encoded in UTF-16.

    >>> import io
    >>> list(numbered_lines(io.BytesIO(b"a\r\nb"), 10))
    [(1, b'a'), (2, b'b')]
    """
    number = 0
    while line := stream.readline(max_bytes + 2):
        number += 1
        if number == 1:
            reject_utf16(line)
            line = line.removeprefix(BOM)
        complete = line.endswith(b"\n")
        line = line.removesuffix(b"\n").removesuffix(b"\r") if complete else line
        if len(line) > max_bytes:
            while not complete and (rest := stream.readline(2**16)):
                complete = rest.endswith(b"\n")
            yield BadRecord(number, f"the line is longer than the limit of {max_bytes:,} bytes")
        else:
            yield number, line


def reject_utf16(line: bytes) -> None:
    """Check that a file does not begin with a UTF-16 byte order mark.

    Raises:
        BadDataError: the file is encoded in UTF-16.
    """
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadDataError("the file is encoded in UTF-16; save it as UTF-8")


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
