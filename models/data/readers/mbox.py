"""Reads mbox: consecutive raw messages, with their labels in a header field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from typing import Annotated, Literal

from pydantic import Field

from models.data.limits import IngestLimits
from models.data.readers.input_file import InputFile
from models.data.readers.options import FormatOptionsBase, Name
from models.data.record import Items, Record, RecordError, check_name
from models.errors import BadDataError, BadRecord
from models.mail.email import Email

_SEPARATOR = re.compile(
    rb"From \S.*\d\d:\d\d"
)  # a paragraph of text that begins with "From" has no time of day
_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")
_FOLD = re.compile(r"\r?\n[ \t]+")
_MAX_HEADER_BYTES = 2**20


class MboxOptions(FormatOptionsBase):
    """Where a message contains its labels."""

    format: Literal["mbox"]
    label_header: Annotated[str, Field(pattern=r"^[!-9;-~]{1,100}$")] = "X-Gmail-Labels"
    """The header field that contains the labels. Google Takeout writes ``X-Gmail-Labels``."""
    label_separator: Annotated[str, Field(min_length=1, max_length=10)] = ","
    """The separator between labels. White space around labels is removed."""
    ignore: tuple[Name, ...] = ()
    """Labels to omit, such as ``Inbox``."""


def read_mbox(file: InputFile, options: MboxOptions, limits: IngestLimits) -> Items:
    """Yield the messages of a mailbox. The line of a record is the line of its separator.

    A message without the header field has no label.
    """
    header = re.compile(
        # Matches whole lines: matching byte by byte would store a backtracking state for every byte.
        rb"^" + re.escape(options.label_header.encode()) + rb":([^\n]*(?:\n[ \t][^\n]*)*)",
        re.IGNORECASE | re.MULTILINE,
    )
    for item in _messages(file, limits.record_bytes):
        if isinstance(item, BadRecord):
            yield item
            continue
        line, raw = item
        try:
            yield Record(line=line, labels=_labels(raw, header, options, limits), email=Email(raw=raw))
        except RecordError as error:
            yield error.at_line(line)


def _messages(file: InputFile, max_bytes: int) -> Iterator[tuple[int, bytes] | BadRecord]:
    """Yield each message, without its separator line, and the number of that line."""
    first_line = number = n_bytes = 0
    message: list[bytes] = []
    after_blank = at_line_start = True
    while line := file.stream.readline(2**16):
        number += at_line_start
        if at_line_start and after_blank and _SEPARATOR.match(line):
            if first_line:
                yield _message(first_line, message, n_bytes, max_bytes)
            first_line, message, n_bytes = number, [], 0
        elif not first_line and line.strip():
            raise BadDataError(f"line {number}: a mailbox must begin with a line 'From ADDRESS DATE'")
        else:
            n_bytes += len(line)
            if n_bytes <= max_bytes:
                message.append(line)
        after_blank = at_line_start and not line.strip(b"\r\n")
        at_line_start = line.endswith(b"\n")
    if first_line:
        yield _message(first_line, message, n_bytes, max_bytes)


def _message(line: int, lines: list[bytes], n_bytes: int, max_bytes: int) -> tuple[int, bytes] | BadRecord:
    if n_bytes > max_bytes:
        return BadRecord(line, f"the message is longer than the limit of {max_bytes:,} bytes")
    if lines and not lines[-1].strip(b"\r\n"):
        lines.pop()  # the blank line before the next separator
    return line, b"".join(lines)


def _labels(raw: bytes, header: re.Pattern[bytes], options: MboxOptions, limits: IngestLimits) -> list[str]:
    end = _END_OF_HEADERS.search(raw, 0, _MAX_HEADER_BYTES)
    headers = raw[: end.start() if end else _MAX_HEADER_BYTES]
    names = []
    for match in header.finditer(headers):
        value = _decode_header(match[1], options.label_header)
        names += [name.strip() for name in value.split(options.label_separator)]
    return [
        check_name(name, "a label", options.label_header, limits.name_length)
        for name in names
        if name and name not in options.ignore
    ]


def _decode_header(value: bytes, header: str) -> str:
    """Decode a header field in UTF-8 or encoded words (RFC 2047)."""
    try:
        text = _FOLD.sub(" ", value.decode()).strip()
        return str(make_header(decode_header(text)))
    except (UnicodeDecodeError, HeaderParseError, LookupError, ValueError) as error:
        raise RecordError(f"the header field cannot be decoded: {error}", header) from error
