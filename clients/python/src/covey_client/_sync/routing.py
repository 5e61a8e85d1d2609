# Generated from _async/routing.py by unasync.py. Change that file instead.
"""Routes messages for a program that must not lose any, such as a filter of a mail server."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from types import TracebackType
from typing import Self

import httpx

from covey_client._retry import AT_ONCE
from covey_client._settings import TIMEOUT_SECONDS
from covey_client._sync.client import Covey
from covey_client.errors import BadRequest, NotRouted
from covey_client.generated.models import Decision

HEADER = b"Received: by covey\r\n\r\n"
"""Header for a message without any, which the service refuses. What a mail server has accepted is mail, so
all of it then counts as the body."""


class Router:
    r"""A router of the service. Several threads can use it.

    >>> from covey_client import NotRouted, Router
    >>> with Router("frontdesk") as router:
    ...     router.route(b"Subject: parcel\n\nWhere is my parcel?").router
    'frontdesk'
    >>> with Router("frontdesk", "http://127.0.0.1:9") as router:
    ...     try:
    ...         router.route(b"Subject: parcel")
    ...     except NotRouted as error:
    ...         error.exit_status
    75

    Args:
        name: name of the router.
        url: base URL of the service; by default that of `COVEY_URL`, or `http://127.0.0.1:8000`.
        key: an API key with the scope `predict`; by default that of `COVEY_API_KEY`.
        timeout: how long to wait for the service to connect, or to send or receive a part, in seconds.
        transport: see ``Covey``.
    """

    def __init__(
        self,
        name: str,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.name = name
        self._connect: Callable[[], Covey] = partial(
            Covey, url, key, timeout=timeout, retry=AT_ONCE, transport=transport
        )

    @cached_property
    def _covey(self) -> Covey:
        # Not in the constructor: a wrong URL must not raise anything but NotRouted.
        return self._connect()

    def route(self, message: bytes, *, explain: bool = False) -> Decision:
        """Route a raw message (RFC 5322), and return the recorded decision.

        If the connection breaks, the message is sent once more. A message that was routed before gets its
        first decision.

        Args:
            message: the message.
            explain: whether to return the terms that contribute most.

        Raises:
            NotRouted: there is no decision, whatever the reason: the service is not available, the key or the
                name of the router is wrong, or the response cannot be read. Keep the message, and send it
                again later. No other exception is raised.
        """
        try:
            try:
                return self._covey.route(self.name, message, explain=explain)
            except BadRequest as error:
                if error.code != "not_a_message":
                    raise
                return self._covey.route(self.name, HEADER + message, explain=explain)
        except Exception as error:
            raise NotRouted(f"the message has no decision: {error}") from error

    def close(self) -> None:
        """Close the connections."""
        if "_covey" in self.__dict__:
            self._covey.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
