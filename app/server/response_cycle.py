"""Writes the head of a response with fewer steps than uvicorn does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

_FRAMING: Final = {b"content-length", b"transfer-encoding", b"connection"}
"""Headers that decide how the body is sent and whether the connection stays open."""

_CONSTANT: Final = {
    *(b"content-type", b"cache-control", b"content-security-policy", b"referrer-policy", b"vary"),
    *(b"x-content-type-options", b"x-frame-options", b"date"),
}
"""Headers with few different values at a time."""

_MAX_LINES: Final = 256

_lines: dict[tuple[bytes, bytes], bytes] = {}
"""Lines of constant headers, which need not be checked again."""


class ResponseCycle(RequestResponseCycle):
    """One request and its response."""

    async def send(self, message: ASGISendEvent) -> None:
        """Send a part of the response."""
        if message["type"] != "http.response.start" or self.response_started or self.flow.write_paused:
            await super().send(message)
            return
        if self.disconnected:
            return
        self.response_started = True
        self.waiting_for_100_continue = False
        status = message["status"]
        content = [STATUS_LINE[status]]
        closes = False
        for name, value in (*self.default_headers, *message.get("headers", ())):
            line = _lines.get((name, value))
            if line is None:
                line = _line(name, value)
                if (lower := name.lower()) in _FRAMING:
                    closes = self._frame(lower, value) or closes
            content.append(line)
        if not self.keep_alive and not closes:
            content.append(b"connection: close\r\n")
        if self.chunked_encoding is None and self.scope["method"] != "HEAD" and status not in {204, 304}:
            self.chunked_encoding = True
            content.append(b"transfer-encoding: chunked\r\n")
        content.append(b"\r\n")
        self.transport.write(b"".join(content))

    def _frame(self, name: bytes, value: bytes) -> bool:
        """Note a header of ``_FRAMING``; return whether it closes the connection."""
        if name == b"content-length":
            if self.chunked_encoding is None:
                self.expected_content_length = int(value)
                self.chunked_encoding = False
        elif name == b"transfer-encoding":
            if value.lower() == b"chunked":
                self.expected_content_length = 0
                self.chunked_encoding = True
        elif b"close" in [token.strip() for token in value.lower().split(b",")]:
            self.keep_alive = False
            return True
        return False


def _line(name: bytes, value: bytes) -> bytes:
    """Return the line of a header.

    Raises:
        RuntimeError: a header cannot contain the name or the value.
    """
    if HEADER_RE.search(name):
        raise RuntimeError("Invalid HTTP header name.")
    if HEADER_VALUE_RE.search(value):
        raise RuntimeError("Invalid HTTP header value.")
    line = b"%b: %b\r\n" % (name.lower(), value)
    if name in _CONSTANT:
        if len(_lines) >= _MAX_LINES:
            _lines.clear()
        _lines[name, value] = line
    return line
