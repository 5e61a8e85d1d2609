"""Lines of a byte stream, numbered, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from models.data.record import RecordError
from models.errors import BadDataError, BadRecord

BOM = b"\xef\xbb\xbf"


def numbered_lines(stream: BinaryIO, max_bytes: int) -> Iterator[tuple[int, bytes] | BadRecord]:
    r"""The lines of a stream with their 1-based numbers, without line ends.

    A byte order mark of UTF-8 is dropped, and lines may end in LF or CRLF. A line of more than ``max_bytes``
    is passed over without being held, and yields a :class:`BadRecord`.

    Raises:
        BadDataError: the file is UTF-16.

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
        ended = line.endswith(b"\n")
        line = line.removesuffix(b"\n").removesuffix(b"\r") if ended else line
        if len(line) > max_bytes:
            while not ended and (rest := stream.readline(2**16)):
                ended = rest.endswith(b"\n")
            yield BadRecord(number, f"the line is longer than {max_bytes:,} bytes")
        else:
            yield number, line


def reject_utf16(line: bytes) -> None:
    """Tell a file that begins with the byte order mark of UTF-16 from one that is merely damaged.

    Raises:
        BadDataError: it does.
    """
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadDataError("the file is UTF-16; save it as UTF-8")


def decode(line: bytes) -> str:
    """A line of UTF-8.

    Raises:
        RecordError: not UTF-8; names the column.
    """
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        raise RecordError(f"column {column}: byte 0x{line[error.start]:02x} is not valid UTF-8") from error
