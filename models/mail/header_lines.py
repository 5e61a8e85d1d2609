"""Finds the fields of a header block that contains lines that are not fields.

Programs insert such lines into headers: a line of a mailbox, a byte count, text, or a folded line that lost
its indentation. RFC 5322, section 4.5, also allows space between the name of a field and the colon. An odd
line is skipped if known fields follow; otherwise the body begins there.
"""

from __future__ import annotations

import re
from typing import Final

_FIELD: Final = re.compile(rb"([!-9;-~]*+)([ \t]*+):")
_PARAMETER: Final = re.compile(rb"[ \t]*+[A-Za-z][A-Za-z0-9*-]*+=")
_BYTE_COUNT: Final = re.compile(rb"[0-9]{1,12}[ \t]*\n")
_MAX_ODD_LINES: Final = 100
"""Lines after which no fields are expected."""
_MAX_ODD_LINES_AT_START: Final = 2
_MIN_FIELDS_AT_START: Final = 3
"""Odd lines at the start of a block, and the known fields that must follow them."""
# fmt: off
_SINGLE_FIELDS: Final = frozenset({
    b"auto-submitted", b"bcc", b"cc", b"content-type", b"date", b"from", b"importance", b"in-reply-to",
    b"message-id", b"mime-version", b"precedence", b"priority", b"references", b"reply-to", b"return-path",
    b"sender", b"subject", b"to", b"user-agent",
})
_REPEATED_FIELDS: Final = frozenset({
    b"authentication-results", b"delivered-to", b"dkim-signature", b"envelope-to", b"errors-to", b"received",
    b"received-spf", b"status",
})
# fmt: on
_PREFIXES: Final = (b"x-", b"content-", b"list-", b"resent-", b"arc-")
_WITH_ADDRESS: Final = frozenset({b"bcc", b"cc", b"from", b"reply-to", b"sender", b"to"})
_TIME: Final = re.compile(rb"[0-9]:[0-9]{2}")


def remove_odd_lines(block: bytes) -> tuple[bytes, int, bool]:
    r"""Return the lines of a header block without its odd lines.

    Args:
        block: a header block with ``\n`` line ends.

    Returns:
        The lines of well-formed fields, the number of bytes at the end that belong to the body, and whether
        the block contains odd lines.

    >>> remove_odd_lines(b"From: a@b\nodd\nSubject : x\n")
    (b'From: a@b\nSubject: x\n', 0, True)
    >>> remove_odd_lines(b"Subject: x\nThis is the body.\n")
    (b'Subject: x\n', 18, True)
    """
    reader = _LineReader()
    position = 0
    for line in block.splitlines(keepends=True):
        reader.add(line, position)
        position += len(line)
        if reader.is_after_headers(line):
            break
    return b"".join(reader.kept), len(block) - reader.odd_start if reader.odd else 0, reader.is_odd


class _LineReader:
    """Sorts the lines of a header block.

    Attributes:
        kept: lines of well-formed fields.
        odd: odd lines after them, which are skipped as soon as a known field follows.
        odd_start: offset of the first of these lines.
        is_odd: whether the block contains odd lines.
    """

    def __init__(self) -> None:
        self.kept: list[bytes] = []
        self.odd: list[bytes] = []
        self.odd_start = 0
        self.is_odd = False
        self._waiting: list[tuple[bytes, bytes]] = []  # fields after odd lines with which the block begins
        self._seen: set[bytes] = set()  # names of known fields
        self._name = b""

    def add(self, line: bytes, start: int) -> None:
        """Add the line at an offset."""
        if line[:1] in {b" ", b"\t"}:
            self._continue(line)
            return
        if not self.odd and self._lost_indentation(line):
            self.is_odd = True
            self.kept.append(b" " + line)
            return
        match = _FIELD.match(line)
        name = match[1].lower() if match else b""
        if match and match[2]:
            self.is_odd = True
            line = match[1] + line[match.end() - 1 :]
            if not _is_known(name):
                match = None
        if not self.odd and (match or line.startswith(b"From ")):
            self._keep(name, line)
        elif self.odd and match and self._is_expected(name, line):
            self._keep_after_odd_lines(name, line)
        else:
            if not self.odd:
                self.odd_start = start
            self.is_odd = True
            self._waiting.clear()
            self.odd.append(line)

    def is_after_headers(self, line: bytes) -> bool:
        """Whether no more fields are expected after a line, because it begins the body."""
        max_odd_lines = _MAX_ODD_LINES if self._seen else _MAX_ODD_LINES_AT_START
        return len(self.odd) > max_odd_lines or (bool(self.odd) and line.startswith(b"--"))

    def _continue(self, line: bytes) -> None:
        if self._waiting:
            name, field = self._waiting.pop()
            self._waiting.append((name, field + line))
        elif self.odd:
            self.odd.append(line)
        else:
            self.kept.append(line)

    def _lost_indentation(self, line: bytes) -> bool:
        """Whether a line continues the field before it: a list of addresses or parameters has no end yet."""
        if self._name in {b"content-type", b"content-disposition"}:
            return self.kept[-1].rstrip().endswith(b";") and _PARAMETER.match(line) is not None
        return (
            self._name in _WITH_ADDRESS
            and self.kept[-1].rstrip().endswith(b",")
            and b"@" in line
            and _FIELD.match(line) is None
        )

    def _is_expected(self, name: bytes, line: bytes) -> bool:
        """Whether a line is a field of this message rather than text that looks like one."""
        if not _is_known(name) or name in self._seen:
            return name in _REPEATED_FIELDS
        if name in _WITH_ADDRESS:
            return b"@" in line or not line.partition(b":")[2].strip()
        return name != b"date" or _TIME.search(line) is not None

    def _keep_after_odd_lines(self, name: bytes, line: bytes) -> None:
        """Skip the odd lines. Text at the start of a block is skipped if several fields follow it."""
        self._waiting.append((name, line))
        first = self.odd[0]
        is_frame = first.startswith(b">From ") or _BYTE_COUNT.fullmatch(first) is not None
        if self._seen or is_frame or len(self._waiting) == _MIN_FIELDS_AT_START:
            self.odd.clear()
            for waiting in self._waiting:
                self._keep(*waiting)
            self._waiting.clear()

    def _keep(self, name: bytes, line: bytes) -> None:
        self.kept.append(line)
        self._name = name
        if _is_known(name):
            self._seen.add(name)


def _is_known(name: bytes) -> bool:
    return name in _SINGLE_FIELDS or name in _REPEATED_FIELDS or name.startswith(_PREFIXES)
