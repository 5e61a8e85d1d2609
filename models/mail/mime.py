"""Splits a MIME message into its parts, level by level from the outside.

The parser of the standard library passes every line through every open level and recurses: it fails on
1,500 nested multiparts (85 kB) with a RecursionError, and needs more than a second for 900. This module
searches each body only for its own boundary, by offsets and without copies, and stops at fixed numbers of
levels and parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from models.mail.charsets import decode, is_utf8
from models.mail.diagnostics import Diagnostics
from models.mail.headers import Headers, parse_headers
from models.mail.limits import (
    MAX_BOUNDARY_CHARS,
    MAX_DEPTH,
    MAX_HEADER_BYTES,
    MAX_PARTS,
    MAX_TEXT_BYTES,
)
from models.mail.transfer_encoding import decode_transfer_encoding

_LONG_LINE = re.compile(rb"([^\n]{16384})[^\n]+")
_LONG_FIELD = re.compile(rb"^([^ \t\n][^\n]*(?:\n[ \t][^\n]*){200})(?:\n[ \t][^\n]*)+", re.MULTILINE)
_HEADER_SEARCH_FACTOR = 32
"""How many times the limit of header bytes is searched for long fields."""
_CHUNK_BYTES = 2**16
_REST_OF_LINE_END = re.compile(rb"\r*+\n?")
_EMLX_COUNT = re.compile(rb"([0-9]{1,12})[ \t]*\r?\n")
_LINE_END_BYTES = 512
"""Bytes in which a program that converts line ends twice shows itself."""
_REPEATED_CR = re.compile(rb"(?<!\r)\r{2,}+\n")
"""A line end that was converted to ``\r\n`` twice or more often."""

_META_CHARSET = re.compile(
    rb"<meta\s[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([a-z0-9_:.-]{2,40})", re.IGNORECASE
)
_META_BYTES = 1024
"""Bytes in which the HTML standard looks for the charset."""
_UNDECLARED_BOUNDARY = re.compile(
    rb"\n--([^\s][^\n]{0,%d}?)[ \t]{0,9}\nContent-[A-Za-z-]{1,30}[ \t]?:" % MAX_BOUNDARY_CHARS, re.IGNORECASE
)
_PREAMBLE_BYTES = 1000
"""Bytes in which the first boundary is expected if the content type is missing."""
_FIELDS_OF_PART = re.compile(
    rb"\n*+(?:--[^\n]*+\n)?+"
    rb"((?:(?:Content-[A-Za-z-]{1,30}|MIME-Version)[ \t]*+:[^\n]*+\n(?:[ \t]++[^\n]*+\n)*+)++)\s++\S",
    re.IGNORECASE,
)
"""Fields and content with which a multipart begins if its first boundary is missing or damaged."""

# fmt: off
_NOT_DISPLAYED = frozenset({
    "text/calendar", "text/css", "text/csv", "text/directory", "text/javascript", "text/rfc822-headers",
    "text/rtf", "text/vcard", "text/x-amp-html", "text/x-vcard", "text/xml",
})
# fmt: on
_TOO_MANY_PARTS = f"the message has more than {MAX_PARTS} parts; the rest was not read"
CALENDAR = "text/calendar"
_NESTED_MESSAGES = frozenset({"message/rfc822", "message/global"})


class Part(NamedTuple):
    """A part of a message.

    Attributes:
        headers: its header fields.
        content_type: its content type; ``text/plain`` for a container that cannot be split.
        start: offset of its body.
        body: content of a text or calendar, still in its transfer encoding; empty for other types.
        is_text: whether it is text to display.
        is_first: whether it is the message itself.
        alternative: number of the multipart/alternative that contains it, or None.
        forwarded: whether it belongs to a message inside the message.
    """

    headers: Headers
    content_type: str
    start: int
    body: bytes
    is_text: bool
    is_first: bool
    alternative: int | None
    forwarded: bool

    @property
    def is_attachment(self) -> bool:
        """Whether it is listed as an attachment. Text that is displayed can have a file name, too."""
        if self.is_text:
            return not self.is_first and bool(self.headers.filename)
        return not self.content_type.startswith("multipart/")

    def text(self, diagnostics: Diagnostics) -> str:
        """Return its content as text, with transfer encoding and charset decoded."""
        content, is_damaged = decode_transfer_encoding(self.body, self.headers.transfer_encoding, diagnostics)
        charset = self.headers.charset
        if charset is None and self.content_type == "text/html" and not is_utf8(content):
            meta = _META_CHARSET.search(content, 0, _META_BYTES)
            charset = meta[1].decode("ascii") if meta else None
        return decode(content, charset, diagnostics, is_damaged)

    def content(self, diagnostics: Diagnostics) -> bytes:
        """Return its content, with the transfer encoding decoded."""
        return decode_transfer_encoding(self.body, self.headers.transfer_encoding, diagnostics)[0]


class _PendingPart(NamedTuple):
    """A part that is not yet parsed: bytes ``start`` to ``end`` of ``data``, including its headers."""

    data: bytes
    start: int
    end: int
    depth: int
    default_type: str = "text/plain"
    alternative: int | None = None
    forwarded: bool = False


def walk_parts(data: bytes, diagnostics: Diagnostics) -> Iterator[Part]:
    r"""Yield the message itself, with its headers, then every part in the order of its bytes.

    Containers are yielded with an empty body, because their content types and headers are needed.

    Args:
        data: a message with ``\n`` line ends and one ``\n`` before it.
        diagnostics: receives defects and truncations.
    """
    pending = [_PendingPart(data, 1, len(data), 0)]
    visited = 0
    text_left = MAX_TEXT_BYTES
    has_text = False
    while pending:
        if visited == MAX_PARTS:
            diagnostics.add_truncation(_TOO_MANY_PARTS)
            return
        part = pending.pop()
        headers, body = _split_headers(part, diagnostics)
        content_type = headers.content_type
        if "content-type" not in headers and _is_undeclared_multipart(part, headers, body):
            content_type = "multipart/mixed"
        is_container = content_type.startswith("multipart/") or content_type in _NESTED_MESSAGES
        if is_container and part.depth == MAX_DEPTH:
            diagnostics.add_truncation(
                f"parts are nested deeper than {MAX_DEPTH} levels; the deeper parts were not read"
            )
        elif is_container:
            inside = list(_contained_parts(part, body, headers, visited, diagnostics))
            pending += reversed(inside)
            if not inside:
                content_type = "text/plain"
        is_text = _is_text(content_type) and (
            visited == 0 or _is_displayed(headers, part.alternative is not None or not has_text)
        )
        has_text = has_text or is_text
        is_read = is_text or content_type == CALENDAR
        content = part.data[body : min(part.end, body + text_left)] if is_read else b""
        if is_read and part.end - body > text_left:
            diagnostics.add_truncation(
                f"the text is longer than {MAX_TEXT_BYTES:,} bytes; the rest was not read"
            )
        text_left -= len(content)
        visited += 1
        yield Part(
            headers, content_type, body, content, is_text, visited == 1, part.alternative, part.forwarded
        )


def _is_undeclared_multipart(part: _PendingPart, headers: Headers, body: int) -> bool:
    """Whether a body without a declared type is a multipart whose header field is missing.

    Such a body begins with a boundary, or it has a preamble and the headers state the version of MIME.
    """
    if part.default_type != "text/plain":
        return False
    if "mime-version" not in headers:
        return (
            part.data.startswith(b"--", body, part.end)
            and _UNDECLARED_BOUNDARY.match(part.data, body - 1, part.end) is not None
        )
    end = min(part.end, body + _PREAMBLE_BYTES)
    return (
        part.data.find(b"\n--", body - 1, end) >= 0
        and _UNDECLARED_BOUNDARY.search(part.data, body - 1, end) is not None
    )


def _is_displayed(headers: Headers, is_expected: bool) -> bool:
    displayed = headers.is_displayed
    return is_expected if displayed is None else displayed


def _is_text(content_type: str) -> bool:
    return content_type.startswith("text/") and content_type not in _NOT_DISPLAYED


def _split_headers(part: _PendingPart, diagnostics: Diagnostics) -> tuple[Headers, int]:
    """Return the headers of a part, and the offset of its body."""
    data = part.data
    if data.startswith(b"\n", part.start, part.end):
        headers, _ = parse_headers(b"", diagnostics, part.default_type)
        return headers, part.start + 1
    blank = data.find(b"\n\n", part.start, part.end)
    block = data[part.start : part.end if blank < 0 else blank + 1]
    too_long = len(block) > MAX_HEADER_BYTES
    if too_long:
        block = _shorten(block)
    headers, left_over = parse_headers(block, diagnostics, part.default_type)
    if too_long and left_over < len(block):
        diagnostics.add_truncation(
            f"the headers are longer than {MAX_HEADER_BYTES:,} bytes; the rest was not read"
        )
    if left_over:
        return headers, part.start + len(block) - left_over
    return headers, part.end if blank < 0 else blank + 2


def _shorten(block: bytes) -> bytes:
    """Cut a header block to the limit. Long fields are cut first, so that the fields after them are kept."""
    block = block[: _HEADER_SEARCH_FACTOR * MAX_HEADER_BYTES]
    block = _LONG_FIELD.sub(rb"\1", _LONG_LINE.sub(rb"\1", block))[:MAX_HEADER_BYTES]
    return block[: block.rfind(b"\n") + 1] or block


def _contained_parts(
    part: _PendingPart, body: int, headers: Headers, number: int, diagnostics: Diagnostics
) -> Iterator[_PendingPart]:
    """Yield the parts of a multipart, or the message inside a message part."""
    if headers.content_type in _NESTED_MESSAGES:
        yield _nested_message(part, body, headers, diagnostics)
        return
    boundary = headers.boundary
    lines: Iterator[tuple[int, int, bool]] = iter(())
    if boundary is None:
        diagnostics.add_defect("a multipart has no usable boundary")
    else:
        # The search begins at the newline before the body, because its first line can be a boundary.
        lines = _boundary_lines(part.data, boundary, body - 1, part.end)
    first = next(lines, None)
    if first is None:
        if boundary is not None:
            diagnostics.add_defect("a multipart does not contain its boundary")
        found = _UNDECLARED_BOUNDARY.search(part.data, body - 1, part.end)
        if found is not None:
            lines = _boundary_lines(part.data, found[1], body - 1, part.end)
            first = next(lines)
    start = _start_without_boundary(part.data, body, first[0] if first else part.end)
    if start is not None:
        diagnostics.add_defect("a multipart does not begin with its boundary")
    if first is not None:
        lines = chain((first,), lines)
    default_type = "message/rfc822" if headers.content_type == "multipart/digest" else "text/plain"
    alternative = number if headers.content_type == "multipart/alternative" else part.alternative
    count = 0
    for line_start, line_end, is_last in lines:
        if start is not None:
            end = max(start, line_start)
            yield _PendingPart(
                part.data, start, end, part.depth + 1, default_type, alternative, part.forwarded
            )
            count += 1
        start = min(line_end + 1, part.end)
        if is_last:
            return
        if count == MAX_PARTS:
            diagnostics.add_truncation(_TOO_MANY_PARTS)
            return
    if start is not None:
        diagnostics.add_defect("a multipart has no closing boundary")
        yield _PendingPart(
            part.data, start, part.end, part.depth + 1, default_type, alternative, part.forwarded
        )


def _start_without_boundary(data: bytes, body: int, end: int) -> int | None:
    """Return the offset of a first part that has no boundary and ends at an offset; None if there is none."""
    fields = _FIELDS_OF_PART.match(data, body, end)
    return fields.start(1) if fields else None


def _boundary_lines(data: bytes, boundary: bytes, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yield each boundary line: offset of the newline before it, its end, and whether it is the last one.

    ``find`` is faster than a pattern, which also has to be compiled for each boundary.
    """
    delimiter = b"\n--" + boundary
    while (line_start := data.find(delimiter, start, end)) >= 0:
        start = line_start + len(delimiter)
        line_end = data.find(b"\n", start, end)
        if line_end < 0:
            line_end = end
        tail = data[start:line_end].rstrip(b" \t")
        if tail in {b"", b"--"}:
            yield line_start, line_end, tail == b"--"
        start = line_end


def _nested_message(
    part: _PendingPart, body: int, headers: Headers, diagnostics: Diagnostics
) -> _PendingPart:
    """Return the message inside a message part. Some programs encode it, against the standard."""
    if headers.transfer_encoding in {"base64", "quotedprintable"}:
        content, _ = decode_transfer_encoding(
            part.data[body : part.end], headers.transfer_encoding, diagnostics
        )
        data = b"\n" + normalize_newlines(content)
        return _PendingPart(data, 1, len(data), part.depth + 1, forwarded=True)
    blank = part.data.startswith(b"\n", body, part.end)  # some programs insert an empty line
    return _PendingPart(part.data, body + blank, part.end, part.depth + 1, forwarded=True)


def remove_emlx_frame(raw: bytes) -> bytes:
    """Return the message in a file of Apple Mail: after its byte count, before its property list."""
    count = _EMLX_COUNT.match(raw)
    if count is None:
        return raw
    end = count.end() + int(count[1])
    return raw[count.end() : end] if raw[end : end + _CHUNK_BYTES].lstrip().startswith(b"<?xml") else raw


def _without_repeated_cr(raw: bytes) -> bytes:
    """Replace each line end that begins with several CR, in chunks, so that other threads run in between."""
    chunks: list[bytes] = []
    start = 0
    while start < len(raw):
        end = start + _CHUNK_BYTES
        if raw.startswith(b"\r", end - 1) and (rest := _REST_OF_LINE_END.match(raw, end)) is not None:
            end = rest.end()
        chunks.append(_REPEATED_CR.sub(b"\n", raw[start:end]))
        start = end
    return b"".join(chunks)


def normalize_newlines(raw: bytes) -> bytes:
    r"""Return a message with ``\n`` line ends, without a byte order mark or blank lines at the start."""
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if raw.find(b"\r\r\n", 0, _LINE_END_BYTES) >= 0:
        raw = _without_repeated_cr(raw)
    if b"\r" in raw:
        # Splitting is twice as fast as replacing. Chunks bound the memory for the lines.
        chunks: list[bytes] = []
        start = 0
        while start < len(raw):
            end = start + _CHUNK_BYTES
            if raw.startswith(b"\r\n", end - 1):
                end += 1
            lines = raw[start:end].splitlines()
            if raw.endswith((b"\n", b"\r"), start, end):
                lines.append(b"")
            chunks.append(b"\n".join(lines))
            start = end
        raw = b"".join(chunks)
    return raw.lstrip(b"\n")
