"""Send one request of HTTP/1.1 over a connection of its own.

``covey route`` starts for each message, and its imports are most of its CPU time. ``http.client`` imports the
package ``email``, and ``ssl`` also without ``https``.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import BinaryIO, NamedTuple
from urllib.parse import urlsplit

MAX_LINE, MAX_FIELDS = 65_536, 200
"""Maximum length of a line, and number of lines, in the header of a response."""

_STATUS_LINE = re.compile(rb"HTTP/1\.\d (\d{3})(?: ([^\r\n]*))?\r?\n")


class Response(NamedTuple):
    """A response of the service.

    Attributes:
        status: its HTTP status.
        reason: the text of the status.
        content: its body.
    """

    status: int
    reason: str
    content: bytes

    @property
    def needs_header(self) -> bool:
        """Whether the message must be sent again after ``HEADER``."""
        return self.status == 400 and b'"not_a_message"' in self.content


def post(url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> Response:
    """Send a request, and return the response.

    Args:
        url: an absolute URL, ``http`` or ``https``.
        headers: header fields in addition to those that describe the connection and the length.
        body: the body.
        timeout: how long to wait for the other side at each step, in seconds.

    Raises:
        OSError: there is no complete response. ``TimeoutError`` and ``ConnectionRefusedError`` tell why.
    """
    parts = urlsplit(url)
    host = _ascii(parts.hostname or "")
    fields = {
        "Host": _ascii(parts.netloc).decode(),
        "Connection": "close",
        "Accept-Encoding": "identity",
        "Content-Length": str(len(body)),
        **headers,
    }
    lines = [f"POST {parts.path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    request = "\r\n".join(lines).encode("ascii") + body
    is_secure = parts.scheme == "https"
    # A host of type str would import the Unicode database.
    address = (host, parts.port or (443 if is_secure else 80))
    with socket.create_connection(address, timeout) as plain:  # type: ignore[arg-type]
        connection = _secured(plain, host.decode()) if is_secure else plain
        with connection, connection.makefile("rb") as file:
            with suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
                connection.sendall(request)
            try:
                return _read(file)
            except ValueError as error:
                raise ConnectionError("the response is not HTTP") from error


def _ascii(host: str) -> bytes:
    return host.encode("ascii" if host.isascii() else "idna")


def _secured(connection: socket.socket, host: str) -> socket.socket:
    import ssl

    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context.wrap_socket(connection, server_hostname=host)


def _read(file: BinaryIO) -> Response:
    """Read a response.

    Raises:
        OSError: it is not complete.
        ValueError: it is no response of HTTP.
    """
    status, reason = _status(file)
    fields = dict(_fields(file))
    while status < 200:  # it announces the response
        status, reason = _status(file)
        fields = dict(_fields(file))
    if b"chunked" in fields.get(b"transfer-encoding", b"").lower():
        return Response(status, reason, b"".join(_chunks(file)))
    length = fields.get(b"content-length")
    return Response(status, reason, file.read() if length is None else _exactly(file, int(length)))


def _status(file: BinaryIO) -> tuple[int, str]:
    line = file.readline(MAX_LINE)
    if not line:
        raise ConnectionError("the connection was closed without a response")
    match = _STATUS_LINE.fullmatch(line)
    if match is None:
        raise ValueError(line)
    return int(match[1]), (match[2] or b"").decode("latin-1")


def _fields(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    for _ in range(MAX_FIELDS):
        line = file.readline(MAX_LINE)
        if not line.endswith(b"\n"):
            raise ConnectionError("the connection was closed within the header of a response")
        if line in (b"\r\n", b"\n"):
            return
        name, _, value = line.partition(b":")
        yield name.lower(), value.strip()
    raise ValueError(f"more than {MAX_FIELDS} header fields")


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while size := int(file.readline(MAX_LINE).partition(b";")[0], 16):
        yield _exactly(file, size)
        file.readline(MAX_LINE)


def _exactly(file: BinaryIO, size: int) -> bytes:
    content = file.read(size)
    if len(content) != size:
        raise ConnectionError("the connection was closed within a response")
    return content
