"""One request of ``covey route``, with servers that respond in every way that HTTP allows, and in others."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from certificates import write_certificate
from waiting import LIMIT_SECONDS

from app.inbound.http_post import MAX_FIELDS, Response, post


@contextmanager
def responding(response: bytes, certificate: Path | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """Run a server for one request. It yields its port, and what it received as soon as the block ends."""
    received: list[bytes] = []

    def serve() -> None:
        plain, _ = listener.accept()
        with plain:
            try:
                connection = context.wrap_socket(plain, server_side=True) if context else plain
                while not received or b"\r\n\r\nbody" not in received[0]:
                    received[:] = [b"".join(received) + connection.recv(65_536)]
                connection.sendall(response)
                if context:
                    connection.close()
            except OSError as error:
                received.append(repr(error).encode())

    context = None
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
    with socket.create_server(("127.0.0.2", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], received
        thread.join()


def send(response: bytes) -> Response:
    with responding(response) as (port, _):
        return post(f"http://127.0.0.2:{port}/a", {}, b"body", LIMIT_SECONDS)


def test_the_request_says_what_a_server_needs() -> None:
    with responding(b"HTTP/1.1 204 No Content\r\n\r\n") as (port, received):
        post(f"http://127.0.0.2:{port}/a%20b", {"Authorization": "Bearer x"}, b"body", LIMIT_SECONDS)
    assert received[0].decode().split("\r\n") == [
        "POST /a%20b HTTP/1.1",
        f"Host: 127.0.0.2:{port}",
        "Connection: close",
        "Accept-Encoding: identity",
        "Content-Length: 4",
        "Authorization: Bearer x",
        "",
        "body",
    ]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}rest", Response(200, "OK", b"{}")),
        (b"HTTP/1.1 503 Not now\r\ncontent-length:0\r\n\r\n", Response(503, "Not now", b"")),
        (b"HTTP/1.0 200\r\n\r\nuntil the end", Response(200, "", b"until the end")),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}", Response(200, "OK", b"{}")),
        (
            b"HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n2;a=b\r\n{\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
            Response(200, "", b"{\n0123456789"),
        ),
    ],
)
def test_a_response_is_read_in_each_form(response: bytes, expected: Response) -> None:
    assert send(response) == expected


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (b"", "without a response"),
        (b"220 mail.example.org ESMTP\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2", "within the header"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}", "within a response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{}", "within a response"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * (MAX_FIELDS + 1) + b"\r\n", "not HTTP"),
    ],
)
def test_a_response_that_is_not_complete_is_an_error(response: bytes, reason: str) -> None:
    with pytest.raises(ConnectionError, match=reason):
        send(response)


def test_a_certificate_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = write_certificate(tmp_path, "covey.example")
    response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    with responding(response, certificate) as (port, _), pytest.raises(ssl.SSLCertVerificationError):
        post(f"https://127.0.0.2:{port}/", {}, b"body", LIMIT_SECONDS)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with responding(response, certificate) as (port, _):
        assert post(f"https://127.0.0.2:{port}/", {}, b"body", LIMIT_SECONDS).content == b"{}"
