"""Routes messages for a program that must not lose any, such as a filter of a mail server."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import TracebackType
from typing import Self

import httpx

from covey_client._operations import Operations
from covey_client._retry import AT_ONCE
from covey_client._runtime import AsyncRuntime, BlockingRuntime, BlockingTransport, run
from covey_client._settings import TIMEOUT_SECONDS, get_key, get_url
from covey_client.errors import NotRouted
from covey_client.generated.models import Decision


class _RouterBase:
    def __init__(self, name: str, connect: Callable[[], Operations]) -> None:
        self.name = name
        self._connect = connect

    @cached_property
    def _operations(self) -> Operations:
        # Not in the constructor: a wrong URL must not raise anything but NotRouted.
        return self._connect()

    async def _route(self, message: bytes, *, explain: bool) -> Decision:
        try:
            return await self._operations.route(self.name, message, explain=explain)
        except Exception as error:
            raise NotRouted(f"the message has no decision: {error}") from error

    async def _close(self) -> None:
        if "_operations" in self.__dict__:
            await self._operations.close()


class Router(_RouterBase):
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
        def connect() -> Operations:
            blocking = BlockingTransport(transport or httpx.HTTPTransport())
            return Operations(get_url(url), get_key(key), blocking, BlockingRuntime(), AT_ONCE, timeout)

        super().__init__(name, connect)

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
        return run(self._route(message, explain=explain))

    def close(self) -> None:
        """Close the connections."""
        run(self._close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncRouter(_RouterBase):
    """A router of the service, for programs with an event loop. The arguments are those of ``Router``.

    >>> import asyncio
    >>> from covey_client import AsyncRouter
    >>> async def main():
    ...     async with AsyncRouter("frontdesk") as router:
    ...         decisions = await asyncio.gather(router.route(b"Subject: a"), router.route(b"Subject: b"))
    ...         return len(decisions)
    >>> asyncio.run(main())
    2
    """

    def __init__(
        self,
        name: str,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        def connect() -> Operations:
            return Operations(
                get_url(url),
                get_key(key),
                transport or httpx.AsyncHTTPTransport(),
                AsyncRuntime(),
                AT_ONCE,
                timeout,
            )

        super().__init__(name, connect)

    async def route(self, message: bytes, *, explain: bool = False) -> Decision:
        """See ``Router.route``."""
        return await self._route(message, explain=explain)

    async def close(self) -> None:
        """Close the connections."""
        await self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
