"""The headers of a request, read in one pass.

Starlette's ``Headers`` compares all headers with every name that is looked up. The layers in front of the
endpoints look up many names, for every request.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from fastapi import Request
from starlette.types import Scope

from app.api.errors import Unsupported
from app.settings import KIB

MAX_HEADER_BYTES = 32 * KIB
"""Maximum size of all headers of a request together."""

KEPT_BYTES = "kept_bytes"
"""The entry of a request's state with the number of bytes of its body that are kept. The others are discarded
when they arrive."""


class RequestHead:
    """The headers of a request. If a header occurs several times, the first one counts.

    Args:
        scope: the ASGI scope of the request; the names of its headers are in lower case.

    Attributes:
        n_bytes: size of the target and the headers, in bytes.
        n_hosts: number of ``Host`` headers.

    >>> head = RequestHead(
    ...     {"query_string": b"", "headers": [(b"host", b"a"), (b"content-type", b"Text/Plain; charset=x")]}
    ... )
    >>> head.n_hosts, head.n_bytes, head.media_type, head.get(b"origin")
    (1, 46, 'text/plain', None)
    """

    __slots__ = ("_first", "_headers", "n_bytes", "n_hosts")

    def __init__(self, scope: Scope) -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        self._headers = headers
        self._first = first = dict(headers)
        self.n_hosts = 1 if b"host" in first else 0
        if len(first) < len(headers):
            self._first = dict(reversed(headers))
            self.n_hosts = sum(name == b"host" for name, _ in headers)
        self.n_bytes = (
            len(scope.get("raw_path", b""))
            + len(scope["query_string"])
            + len(b"".join(chain.from_iterable(headers)))
            + 4 * len(headers)
        )

    def get(self, name: bytes) -> str | None:
        """Return the value of a header; None if the request does not have it."""
        value = self._first.get(name)
        return None if value is None else value.decode("latin-1")

    def hosts(self) -> list[str]:
        """Return the values of all ``Host`` headers."""
        if self.n_hosts == 1:
            return [self._first[b"host"].decode("latin-1")]
        return [value.decode("latin-1") for name, value in self._headers if name == b"host"]

    @property
    def bearer(self) -> str | None:
        """The credentials of ``Authorization: Bearer``; None if there are none."""
        scheme, _, credentials = (self.get(b"authorization") or "").partition(" ")
        return (credentials.strip() or None) if scheme.lower() == "bearer" else None

    def cookie(self, name: str) -> str | None:
        """Return the value of a cookie; None if the request does not have it."""
        for pair in (self.get(b"cookie") or "").split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                return value
        return None

    @property
    def media_type(self) -> str:
        """The media type of the body, in lower case and without parameters; empty if it is not stated."""
        return (self.get(b"content-type") or "").partition(";")[0].strip().lower()

    @property
    def content_length(self) -> int:
        """Size of the body as stated by the client, in bytes; 0 if it is not stated."""
        length = self._first.get(b"content-length", b"0")
        return int(length) if length.isdigit() else 0

    @property
    def has_no_body(self) -> bool:
        """Whether the request states neither a type nor a size of a body."""
        first = self._first
        return (
            b"content-type" not in first
            and first.get(b"content-length", b"0") == b"0"
            and b"transfer-encoding" not in first
        )


def head_of(request: Request) -> RequestHead:
    """Return the headers of a request that has passed the middleware."""
    head: RequestHead = request.scope["state"]["head"]
    return head


def check_media_type(head: RequestHead, media_types: Collection[str]) -> None:
    """Reject bodies of other media types than the documented ones.

    A missing Content-Type is rejected too: a web page can send such a request, or a form, to any service
    without the consent of the user. For an operation without a body, JSON is ignored, because some clients
    always send it.

    Args:
        head: the headers of the request.
        media_types: the documented media types; empty if the operation reads no body.

    Raises:
        Unsupported: the media type is missing or not documented.
    """
    kind = head.media_type
    if kind in media_types or (not media_types and kind == "application/json") or head.has_no_body:
        return
    fix = f"send {' or '.join(sorted(media_types))}" if media_types else "send no body"
    raise Unsupported(f"{kind or 'a body without Content-Type'} is not supported here; {fix}")


def refuse_encoding(head: RequestHead) -> None:
    """Reject compressed bodies; only the content of a data set can be compressed.

    Raises:
        Unsupported: the body has a Content-Encoding.
    """
    encoding = (head.get(b"content-encoding") or "identity").strip().lower()
    if encoding != "identity":
        raise Unsupported(f"Content-Encoding {encoding} is not supported here; send the body uncompressed")
