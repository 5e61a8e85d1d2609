"""The parts of a message, found level by level from the outside.

The standard parser feeds every line through every open level and recurses: 1,500 nested multiparts
(85 kB) end it with a RecursionError and 900 take more than a second. Here a body is searched for its
own boundary only, by offsets and without copying, and the search stops at fixed numbers of levels
and parts.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass

from models.mail.charsets import decode
from models.mail.diagnostics import Diagnostics
from models.mail.headers import Headers, parse_headers
from models.mail.limits import MAX_DEPTH, MAX_HEADER_BYTES, MAX_PARTS, MAX_TEXT_BYTES

_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]")
_LONG_LINE = re.compile(rb"([^\n]{16384})[^\n]+")
_LONG_FIELD = re.compile(rb"^([^ \t\n][^\n]*(?:\n[ \t][^\n]*){200})(?:\n[ \t][^\n]*)+", re.MULTILINE)
_SHORTENED = 32
"""So many times the limit, long fields are looked for."""
_FOREIGN = 20
"""What has more than one foreign character in so many is not base64."""

# fmt: off
_NOT_PROSE = frozenset({
    "text/calendar", "text/css", "text/csv", "text/directory", "text/javascript", "text/rfc822-headers",
    "text/rtf", "text/vcard", "text/x-amp-html", "text/x-vcard", "text/xml",
})
# fmt: on
_NESTED_MESSAGES = frozenset({"message/rfc822", "message/global"})


@dataclass(frozen=True)
class Part:
    """A part that contains no others, or a message inside the message.

    Attributes:
        headers: its fields.
        content_type: its type, as far as it could be honoured.
        start: the offset of its body.
        body: the content of a text, still in its transfer encoding; empty in all others.
        is_text: whether it is text to be shown.
        alternative: which multipart/alternative it is one of, None if of none.
        forwarded: whether it belongs to a message inside the message.
    """

    headers: Headers
    content_type: str
    start: int
    body: bytes
    is_text: bool
    alternative: int | None
    forwarded: bool

    @property
    def is_attachment(self) -> bool:
        """Whether it is neither text to be shown nor a mere container of other parts."""
        return not self.is_text and not self.content_type.startswith("multipart/")

    def text(self, diagnostics: Diagnostics) -> str:
        """Its content as text: transfer encoding and charset decoded."""
        content = _transfer_decoded(self.body, self.headers.transfer_encoding, diagnostics)
        return decode(content, self.headers.charset, diagnostics)


@dataclass(frozen=True)
class _PendingPart:
    """A part still to be looked into: bytes ``start`` to ``end`` of ``data``, header block included."""

    data: bytes
    start: int
    end: int
    depth: int
    default_type: str = "text/plain"
    alternative: int | None = None
    forwarded: bool = False


def walk_parts(data: bytes, diagnostics: Diagnostics) -> Iterator[Part]:
    r"""Visits a message: itself first, with its headers, then every part in the order of its bytes.

    Containers are visited as well, with an empty body: their type and headers tell something.

    Args:
        data: a message with lines ended by ``\n`` and one ``\n`` in front.
        diagnostics: where defects and limits met are noted.
    """
    waiting = [_PendingPart(data, 1, len(data), 0)]
    visited = 0
    text_left = MAX_TEXT_BYTES
    while waiting:
        if visited == MAX_PARTS:
            diagnostics.add_truncation(f"parts beyond {MAX_PARTS}")
            return
        here = waiting.pop()
        headers, body = _headers_of(here, diagnostics)
        content_type = headers.content_type
        is_container = content_type.startswith("multipart/") or content_type in _NESTED_MESSAGES
        if is_container and here.depth == MAX_DEPTH:
            diagnostics.add_truncation(f"parts nested deeper than {MAX_DEPTH}")
        elif is_container:
            inside = list(_inside(here, body, headers, visited, diagnostics))
            waiting += reversed(inside)
            if not inside:
                content_type = "text/plain"
        is_text = _is_text(content_type) and (visited == 0 or not headers.is_attachment)
        content = here.data[body : min(here.end, body + text_left)] if is_text else b""
        if is_text and here.end - body > text_left:
            diagnostics.add_truncation(f"text beyond {MAX_TEXT_BYTES} bytes")
        text_left -= len(content)
        visited += 1
        yield Part(headers, content_type, body, content, is_text, here.alternative, here.forwarded)


def _is_text(content_type: str) -> bool:
    return content_type.startswith("text/") and content_type not in _NOT_PROSE


def _headers_of(here: _PendingPart, diagnostics: Diagnostics) -> tuple[Headers, int]:
    """The fields of a part, and the offset of its body."""
    data = here.data
    if data.startswith(b"\n", here.start, here.end):
        headers, _ = parse_headers(b"", diagnostics, here.default_type)
        return headers, here.start + 1
    blank = data.find(b"\n\n", here.start, here.end)
    block = data[here.start : here.end if blank < 0 else blank + 1]
    too_long = len(block) > MAX_HEADER_BYTES
    if too_long:
        block = _shortened(block)
    headers, left_over = parse_headers(block, diagnostics, here.default_type)
    if too_long and left_over < len(block):
        diagnostics.add_truncation(f"headers beyond {MAX_HEADER_BYTES} bytes")
    if left_over:
        return headers, here.start + len(block) - left_over
    return headers, here.end if blank < 0 else blank + 2


def _shortened(block: bytes) -> bytes:
    """A header block within the limit; the longest fields are cut first, for the sake of those behind."""
    block = block[: _SHORTENED * MAX_HEADER_BYTES]
    block = _LONG_FIELD.sub(rb"\1", _LONG_LINE.sub(rb"\1", block))[:MAX_HEADER_BYTES]
    return block[: block.rfind(b"\n") + 1] or block


def _inside(
    here: _PendingPart, body: int, headers: Headers, number: int, diagnostics: Diagnostics
) -> Iterator[_PendingPart]:
    """The parts between the boundaries of a multipart, or the message in a part that is a message."""
    if headers.content_type in _NESTED_MESSAGES:
        yield _nested_message(here, body, headers, diagnostics)
        return
    boundary = headers.boundary
    if boundary is None:
        diagnostics.add_defect("multipart without a usable boundary")
        return
    default_type = "message/rfc822" if headers.content_type == "multipart/digest" else "text/plain"
    alternative = number if headers.content_type == "multipart/alternative" else here.alternative
    between = re.compile(rb"\n--" + re.escape(boundary) + rb"(--)?[ \t]*(?=\n|\Z)")
    start: int | None = None
    count = 0
    # The search begins at the newline before the body: its first line may be a boundary.
    for line in between.finditer(here.data, body - 1, here.end):
        if start is not None:
            end = max(start, line.start())
            yield _PendingPart(
                here.data, start, end, here.depth + 1, default_type, alternative, here.forwarded
            )
            count += 1
        start = min(line.end() + 1, here.end)
        if line[1]:
            return
        if count == MAX_PARTS:
            diagnostics.add_truncation(f"parts beyond {MAX_PARTS}")
            return
    if start is None:
        diagnostics.add_defect("multipart whose boundary never comes")
        return
    diagnostics.add_defect("multipart without its closing boundary")
    yield _PendingPart(here.data, start, here.end, here.depth + 1, default_type, alternative, here.forwarded)


def _nested_message(
    here: _PendingPart, body: int, headers: Headers, diagnostics: Diagnostics
) -> _PendingPart:
    """The message in a part that is a message; against the standard some programs encode it."""
    if headers.transfer_encoding in {"base64", "quotedprintable"}:
        content = _transfer_decoded(here.data[body : here.end], headers.transfer_encoding, diagnostics)
        data = b"\n" + normalize_newlines(content)
        return _PendingPart(data, 1, len(data), here.depth + 1, forwarded=True)
    blank = here.data.startswith(b"\n", body, here.end)  # some put an empty line before it
    return _PendingPart(here.data, body + blank, here.end, here.depth + 1, forwarded=True)


def normalize_newlines(raw: bytes) -> bytes:
    r"""Lines ended by ``\n``, without a byte-order mark or blank lines before the first header."""
    return raw.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n").lstrip(b"\n")


def _transfer_decoded(body: bytes, encoding: str, diagnostics: Diagnostics) -> bytes:
    """A body without its transfer encoding, as far as it can be undone."""
    if encoding == "base64":
        encoded = b"".join(body.partition(b"=")[0].split())
        digits, foreign = _NOT_BASE64.subn(b"", encoded)
        if foreign * _FOREIGN > len(encoded):
            diagnostics.add_defect("text is not in its declared transfer encoding 'base64'")
            return body
        digits = digits[: len(digits) - (len(digits) % 4 == 1)]
        return binascii.a2b_base64(digits + b"=" * (-len(digits) % 4))
    if encoding == "quotedprintable":
        return binascii.a2b_qp(body)
    if encoding and not encoding.startswith(("7bit", "8bit", "binary")):
        diagnostics.add_defect(f"unknown transfer encoding {encoding[:40]!r}")
    return body
