r"""Splits a mailbox file (mbox) into messages, in memory bounded by the longest message.

The variants of the format (mboxo, mboxrd, mboxcl) share the separator line ``From SENDER DATE`` and differ in
how they protect a line of a message that begins with ``From``. Real files also have separators without a
date or without a blank line before them, and unprotected lines of text. Therefore, a line that begins with
``From `` is a separator only if a header field follows, as in Thunderbird. ``Content-Length`` is not used,
because programs that change a message do not always correct it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from models.errors import BadDataError

MAX_HEADER_BYTES = 2**20
"""Bytes of a message in which its header fields are searched."""

_CHUNK_BYTES = 2**18
_LOOKAHEAD_BYTES = 2**12
"""Bytes from the beginning of a line ``From `` that decide whether it is a separator."""
_MAX_LINES_SHOWN = 5

_BOM = b"\xef\xbb\xbf"
_SEPARATOR = re.compile(rb"From ([^\n]{0,1000}+)\n(?:([!-9;-~]{1,100}+)[ \t]*:|>+From )")
_SENDER = re.compile(rb"[ \t]*(?:-|[^\s@]{1,250}+@\S{1,250}+)?[ \t\r]*")
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DATED = re.compile(
    rb"(?:[^ \n]{1,500}+ |[^\n]{0,500}[ \t])?(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?[ ]{1,4}"
    rb"(?:" + _MONTH + rb"[ ]{1,4}\d|\d{1,2}[ -]" + _MONTH + rb")|\d{4}-\d\d-\d\d)[^\n]{0,40}?\d\d:\d\d"
)
_SECOND_FIELD = re.compile(rb"[^\n]*+(?:\n[ \t][^\n]*+)*+\n(?:[!-9;-~]{1,100}+[ \t]*:|>+From )")
_KNOWN_FIELD = re.compile(
    rb"arc-|authentication-|auto-submitted|bcc|cc|content-|date|delivered-to|delivery-|disposition-|dkim-"
    rb"|domainkey|envelope-|errors-to|from|importance|in-reply-to|list-|mail-|mailing-list|message-id"
    rb"|mime-version|organi[sz]ation|precedence|priority|received|references|reply-to|resent-|return-path"
    rb"|sender|status|subject|thread-|to$|user-agent|x-",
    re.IGNORECASE,
)
_MOZILLA_STATUS = b"X-Mozilla-Status:"
_MAX_STATUS_OFFSET = 2**13
_LINE_ENDS = (b"\n", b"\n\r", b"\n\r\r")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)


class MailboxMessage(NamedTuple):
    """A message in a mailbox file.

    Attributes:
        line: number of its separator line.
        raw: its bytes without the separator line; None if it is longer than the limit.
    """

    line: int
    raw: bytes | None


class Places:
    """Where the messages of a mailbox file are, in 24 bytes for each message.

    Attributes:
        must_split: whether the messages cannot be read from their places, because lines end with CR alone.
    """

    def __init__(self) -> None:
        self.must_split = False
        self._numbers = array("q")

    def add(self, line: int, start: int, n_bytes: int) -> None:
        """Add a message: its line, the offset of its first byte, and its size, -1 if it is too long."""
        self._numbers.extend((line, start, n_bytes))

    def remove_last(self) -> None:
        """Remove the message that was added last."""
        del self._numbers[-3:]

    def messages(self, read: Callable[[int], bytes]) -> Iterator[MailboxMessage]:
        """Yield the messages as :func:`split_mailbox` does, but faster.

        Args:
            read: returns so many bytes of the same file, from its beginning.
        """
        position = 0
        numbers = iter(self._numbers)
        for line, start, n_bytes in zip(numbers, numbers, numbers, strict=True):
            if n_bytes < 0:
                yield MailboxMessage(line, None)
                continue
            while start - position > _CHUNK_BYTES:
                position += len(read(_CHUNK_BYTES))
            raw = read(start - position + n_bytes)[start - position :]
            position = start + n_bytes
            yield MailboxMessage(line, _undo_quoting(raw))


class LineNumbers:
    """Counts lines and keeps the numbers of the first few."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[int] = []

    def add(self, line: int) -> None:
        """Count a line."""
        self.count += 1
        if self.count <= _MAX_LINES_SHOWN:
            self._first.append(line)

    def __str__(self) -> str:
        """Return the count with the first numbers."""
        more = ", ..." if self.count > _MAX_LINES_SHOWN else ""
        plural = "s" if self.count > 1 else ""
        return f"{self.count:,} (line{plural} {', '.join(map(str, self._first))}{more})"


@dataclass
class Oddities:
    """Lines of a mailbox that are not as the format defines them.

    Attributes:
        without_date: separators without a date.
        without_blank_line: separators that do not follow a blank line.
        texts: lines that begin with ``From `` and are text, because no header field follows.
        expunged: separators of messages that are deleted, see :func:`is_expunged`.
    """

    without_date: LineNumbers = field(default_factory=LineNumbers)
    without_blank_line: LineNumbers = field(default_factory=LineNumbers)
    texts: LineNumbers = field(default_factory=LineNumbers)
    expunged: LineNumbers = field(default_factory=LineNumbers)

    def warnings(self, where: str = "") -> Iterator[str]:
        """Yield a warning for each kind that occurs.

        Args:
            where: text that names the mailbox.
        """
        if self.without_date.count:
            yield (
                f"separator lines without a date{where}: {self.without_date}; "
                "a header field follows each of them, so a message begins there"
            )
        if self.without_blank_line.count:
            yield (
                f"separator lines without a blank line before them{where}: {self.without_blank_line}; "
                "a header field follows each of them, so a message begins there"
            )
        if self.texts.count:
            yield (
                f"lines inside messages that begin with 'From '{where}: {self.texts}; "
                "no header fields of a message follow them, so they are text and not separators"
            )
        if self.expunged.count:
            yield (
                f"messages that the mail program has deleted but not removed{where}: {self.expunged}; "
                "they were skipped"
            )


def split_mailbox(
    read: Callable[[int], bytes],
    max_bytes: int,
    oddities: Oddities | None = None,
    places: Places | None = None,
) -> Iterator[MailboxMessage]:
    r"""Yield the messages of a mailbox file in order. An empty file has none.

    A message keeps its line ends, except in a file whose lines end with ``\r`` alone. Lines of its body
    that begin with ``>From `` lose one ``>``, and the blank line before the next separator is removed.

    Args:
        read: returns up to so many bytes of the file, or no bytes at its end.
        max_bytes: maximum number of bytes of a message.
        oddities: receives the lines that are odd.
        places: receives the place of each message before it is yielded.

    Raises:
        BadDataError: the first line with text does not begin with ``From ``.

    >>> import io
    >>> file = io.BytesIO(b"From a@b.example\nSubject: x\n\n>From now on\n")
    >>> list(split_mailbox(file.read, 100))
    [MailboxMessage(line=1, raw=b'Subject: x\n\nFrom now on\n')]
    """
    return _Splitter(read, max_bytes, oddities or Oddities(), places or Places()).messages()


def header_block(raw: bytes) -> bytes:
    """Return the header fields of a message; the beginning of a message without a blank line."""
    if raw.startswith((b"\n", b"\r\n")):
        return b""
    # Two searches for bytes are many times faster than one for a pattern.
    end = raw.find(b"\n\n", 0, MAX_HEADER_BYTES)
    end_crlf = raw.find(b"\n\r\n", 0, end if end >= 0 else MAX_HEADER_BYTES)
    end = end_crlf if end_crlf >= 0 else end
    return raw[: end + 1 if end >= 0 else MAX_HEADER_BYTES]


def is_expunged(raw: bytes) -> bool:
    """Return whether Thunderbird has deleted or moved a message that is still in its file.

    Thunderbird removes the message only when it compacts the folder. Until then, bit 3 of X-Mozilla-Status
    is set.
    """
    start = raw.find(_MOZILLA_STATUS, 0, _MAX_STATUS_OFFSET)
    if start < 0 or start >= len(header_block(raw)):
        return False
    try:
        return bool(int(raw[start + len(_MOZILLA_STATUS) : start + len(_MOZILLA_STATUS) + 5], 16) & 8)
    except ValueError:
        return False


class _Splitter:
    r"""The state of reading one file.

    ``start`` is the offset in the buffer of the ``\n`` that ends the line before the current separator or
    message. A ``\n`` before the first line makes every line that begins with ``From `` follow a ``\n``.
    """

    def __init__(
        self, read: Callable[[int], bytes], max_bytes: int, oddities: Oddities, places: Places
    ) -> None:
        self._read = read
        self._max_bytes = max_bytes
        self._oddities = oddities
        self._places = places
        self._buffer = bytearray(b"\n")
        self._offset = -1  # offset in the file of the first byte of the buffer
        self._at_end = False
        self._has_cr_only: bool | None = None
        self._start = 0
        self._searched = 0  # offset from which to search for the next separator
        self._n_dropped = 0  # bytes of the current message that are no longer in the buffer
        self._is_dated = False  # whether the current separator is known to have a date
        self._counted = 0  # offset up to which lines are counted
        self._line = 0  # number of the line at that offset

    def messages(self) -> Iterator[MailboxMessage]:
        self._begin()
        while self._start < len(self._buffer):
            line = self._line_at(self._start + 1)
            self._skip_separator()
            while (end := self._find_separator()) is None:
                self._drop_excess()
                self._fill()
            yield MailboxMessage(line, self._message(line, end))
            self._start = end

    def _fill(self) -> None:
        """Read more bytes, and drop those before the current message."""
        if self._start:
            self._drop(self._start)
        chunk = self._read(_CHUNK_BYTES)
        self._at_end = not chunk
        if self._has_cr_only is None and chunk:
            self._has_cr_only = b"\r" in chunk and b"\n" not in chunk
            self._places.must_split = self._has_cr_only
            if chunk.startswith(_BOM):
                chunk = chunk.removeprefix(_BOM)
                self._offset += len(_BOM)
        self._buffer += chunk.replace(b"\r", b"\n") if self._has_cr_only else chunk

    def _drop(self, n_bytes: int) -> None:
        if n_bytes > self._counted:
            self._line_at(n_bytes)
        del self._buffer[:n_bytes]
        self._offset += n_bytes
        self._counted -= n_bytes
        self._searched = max(self._searched - n_bytes, 0)
        self._start = max(self._start - n_bytes, 0)

    def _line_at(self, offset: int) -> int:
        self._line += self._buffer.count(b"\n", self._counted, offset)
        self._counted = offset
        return self._line

    def _begin(self) -> None:
        """Fill the buffer up to the first separator."""
        self._fill()
        while not self._at_end and len(self._buffer) - (n_blank := self._n_blank()) < len(b"From "):
            self._start = max(n_blank - 1, 0)
            self._fill()
        n_blank = self._n_blank()
        if n_blank == len(self._buffer):
            self._start = n_blank
            return
        line = self._line_at(n_blank)
        self._start = n_blank - 1
        if not self._buffer.startswith(b"\nFrom ", self._start):
            raise BadDataError(f"line {line}: a mailbox must begin with a line 'From ADDRESS DATE'")

    def _n_blank(self) -> int:
        return len(self._buffer) - len(self._buffer.lstrip())

    def _skip_separator(self) -> None:
        """Move to the end of the separator line, which can be longer than the buffer."""
        while len(self._buffer) - self._start < _LOOKAHEAD_BYTES and not self._at_end:
            self._fill()
        if not self._is_dated and not _DATED.match(self._buffer, self._start + len(b"\nFrom ")):
            self._oddities.without_date.add(self._line)
        self._start += 1
        while (end := self._buffer.find(b"\n", self._start)) < 0 and not self._at_end:
            self._start = len(self._buffer)
            self._fill()
        self._start = self._searched = end if end >= 0 else len(self._buffer)
        self._n_dropped = 0

    def _find_separator(self) -> int | None:
        r"""Return the offset of the ``\n`` before the next separator, or the end of the file.

        None means that more bytes are needed.
        """
        buffer = self._buffer
        while (start := buffer.find(b"\nFrom ", self._searched)) >= 0:
            self._searched = start
            if len(buffer) - start < _LOOKAHEAD_BYTES and not self._at_end:
                return None
            if self._is_separator(start + 1):
                if start > self._start and not buffer.endswith(_LINE_ENDS, start - 3, start):
                    self._oddities.without_blank_line.add(self._line_at(start + 1))
                return start
            self._oddities.texts.add(self._line_at(start + 1))
            self._searched = start + 1
        if self._at_end:
            return len(buffer)
        self._searched = max(self._searched, len(buffer) - len(b"From "))
        return None

    def _is_separator(self, start: int) -> bool:
        match = _SEPARATOR.match(self._buffer, start, start + _LOOKAHEAD_BYTES)
        if match is None:
            return False
        envelope, name = match[1], match[2]
        self._is_dated = _DATED.match(envelope) is not None
        if self._is_dated or _SENDER.fullmatch(envelope):
            return True
        # A sentence can begin with "From" and be followed by a line such as "Note: ...".
        return name is None or (
            _KNOWN_FIELD.match(name) is not None
            and _SECOND_FIELD.match(self._buffer, match.end(), start + _LOOKAHEAD_BYTES) is not None
        )

    def _drop_excess(self) -> None:
        """Drop the bytes of a message that is too long, except those that the search still needs."""
        n_bytes = self._searched - 8
        if n_bytes > self._start and self._n_dropped + n_bytes - self._start > self._max_bytes:
            self._n_dropped += n_bytes - self._start
            self._start = n_bytes

    def _message(self, line: int, end: int) -> bytes | None:
        """Return the message before a separator or the end of the file, and note its place."""
        buffer, start = self._buffer, self._start + 1
        end = min(end + 1, len(buffer))
        if self._n_dropped + end - start > self._max_bytes:
            self._places.add(line, 0, -1)
            return None
        if buffer.endswith(b"\n", start, end):
            before = end - 1
            while before > start and buffer[before - 1] == 13 and end - before < len(b"\r\r\n"):
                before -= 1
            if before == start or buffer[before - 1] == 10:
                end = before  # the last line is blank
        self._places.add(line, self._offset + start, end - start)
        return _undo_quoting(bytes(memoryview(buffer)[start:end]))


def _undo_quoting(raw: bytes) -> bytes:
    """Remove one ``>`` from the lines of the body that begin with ``>From ``."""
    if b">From " not in raw:
        return raw
    body = len(header_block(raw))
    return raw[:body] + _QUOTED_FROM.sub(rb"\1", raw[body:])
