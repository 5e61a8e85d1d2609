"""The client for programs with an event loop (asyncio or trio)."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import httpx

from covey_client._operations import Operations
from covey_client._retry import Retry
from covey_client._runtime import AsyncRuntime
from covey_client._settings import TIMEOUT_SECONDS, get_key, get_url


class AsyncCovey(Operations):
    """A client of the service. Its methods are those of ``Covey``, as coroutines.

    >>> import asyncio
    >>> from covey_client import AsyncCovey
    >>> async def main():
    ...     async with AsyncCovey() as covey:
    ...         dataset = await covey.upload("helpdesk.jsonl")
    ...         return [item.label async for item in covey.labels(dataset.id)]
    >>> asyncio.run(main())
    ['billing', 'sales', 'shipping', 'support']

    Args:
        url: base URL of the service; by default that of `COVEY_URL`, or `http://127.0.0.1:8000`.
        key: API key; by default that of `COVEY_API_KEY`.
        timeout: how long to wait for the service to connect, or to send or receive a part, in seconds.
        retry: when to send a request again.
        transport: sends the requests; for example with other certificates or by a proxy. The variables for
            proxies in the environment are not used.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retry: Retry | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(
            get_url(url),
            get_key(key),
            transport or httpx.AsyncHTTPTransport(),
            AsyncRuntime(),
            retry or Retry(),
            timeout,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
