"""mbox: raw messages one after another, labelled by one of their headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from typing import Annotated, Literal

from pydantic import Field

from models.data.limits import IngestLimits
from models.data.readers.input_file import InputFile
from models.data.readers.options import FormatOptions, Name
from models.data.record import Items, Record, RecordError, check_name
from models.errors import BadDataError, BadRecord
from models.mail.email import Email

_SEPARATOR = re.compile(rb"From \S.*\d\d:\d\d")  # a paragraph that begins with "From" has no time of day
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_FOLD = re.compile(r"\r?\n[ \t]+")
_MOST_HEAD_BYTES = 2**20


class MboxOptions(FormatOptions):
    """Where the labels of messages are found."""

    format: Literal["mbox"]
    label_header: Annotated[str, Field(pattern=r"^[!-9;-~]{1,100}$")] = "X-Gmail-Labels"
    """The header that holds the labels (Google Takeout writes ``X-Gmail-Labels``)."""
    label_separator: Annotated[str, Field(min_length=1, max_length=10)] = ","
    """What stands between two labels; white space around labels is dropped."""
    ignore: tuple[Name, ...] = ()
    """Labels to leave out, such as ``Inbox``."""


def read_mbox(source: InputFile, options: MboxOptions, limits: IngestLimits) -> Items:
    """The messages of a mailbox, numbered from 1.

    A message without the header has no label.
    """
    header = re.compile(
        # By whole lines: going back one byte at a time would remember every one of them.
        rb"^" + re.escape(options.label_header.encode()) + rb":([^\n]*(?:\n[ \t][^\n]*)*)",
        re.IGNORECASE | re.MULTILINE,
    )
    for item in _messages(source, limits.record_bytes):
        if isinstance(item, BadRecord):
            yield item
            continue
        line, raw = item
        try:
            yield Record(line=line, labels=_labels(raw, header, options, limits), email=Email(raw=raw))
        except RecordError as error:
            yield error.at(line)


def _messages(source: InputFile, max_bytes: int) -> Iterator[tuple[int, bytes] | BadRecord]:
    """Each message with the number of its separator line, which is not part of it."""
    begins = number = n_bytes = 0
    message: list[bytes] = []
    after_blank = at_line_start = True
    while line := source.stream.readline(2**16):
        number += at_line_start
        if at_line_start and after_blank and _SEPARATOR.match(line):
            if begins:
                yield _message(begins, message, n_bytes, max_bytes)
            begins, message, n_bytes = number, [], 0
        elif not begins and line.strip():
            raise BadDataError(f"line {number}: a mailbox begins with a line From ADDRESS DATE")
        else:
            n_bytes += len(line)
            if n_bytes <= max_bytes:
                message.append(line)
        after_blank = at_line_start and not line.strip(b"\r\n")
        at_line_start = line.endswith(b"\n")
    if begins:
        yield _message(begins, message, n_bytes, max_bytes)


def _message(begins: int, lines: list[bytes], n_bytes: int, max_bytes: int) -> tuple[int, bytes] | BadRecord:
    if n_bytes > max_bytes:
        return BadRecord(begins, f"the message is longer than {max_bytes:,} bytes")
    if lines and not lines[-1].strip(b"\r\n"):
        lines.pop()  # the blank line before the next separator
    return begins, b"".join(lines)


def _labels(raw: bytes, header: re.Pattern[bytes], options: MboxOptions, limits: IngestLimits) -> list[str]:
    end = _END_OF_HEAD.search(raw, 0, _MOST_HEAD_BYTES)
    head = raw[: end.start() if end else _MOST_HEAD_BYTES]
    names = []
    for match in header.finditer(head):
        value = _decoded(match[1], options.label_header)
        names += [name.strip() for name in value.split(options.label_separator)]
    return [
        check_name(name, "a label", options.label_header, limits.name_length)
        for name in names
        if name and name not in options.ignore
    ]


def _decoded(value: bytes, header: str) -> str:
    """The text of a header, which may be UTF-8 or encoded words."""
    try:
        text = _FOLD.sub(" ", value.decode()).strip()
        return str(make_header(decode_header(text)))
    except (UnicodeDecodeError, HeaderParseError, LookupError, ValueError) as error:
        raise RecordError(f"the header cannot be decoded: {error}", header) from error
