"""What differs between blocking and asynchronous use. Everything else is written once, as coroutines.

In a blocking program no coroutine ever suspends, because every function here does its work before it returns.
So ``run`` needs no event loop, and works also in a thread or a notebook that has a running one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any, Protocol, TypeVar, cast

import anyio
import httpx

T = TypeVar("T")


class Runtime(Protocol):
    """The operations that a blocking and an asynchronous program do differently."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function that reads files."""

    def repeating(
        self, seconds: float, function: Callable[[], Coroutine[Any, Any, None]]
    ) -> AbstractAsyncContextManager[None]:
        """Call a function again and again while the body of the context runs; raise its error at the end."""

    def uncancelled(self) -> AbstractContextManager[object]:
        """Return a context whose body runs to its end although the task was cancelled."""


class AsyncRuntime:
    """For asyncio and trio."""

    async def sleep(self, seconds: float) -> None:
        """See ``Runtime``."""
        await anyio.sleep(seconds)

    async def call(self, function: Callable[[], T]) -> T:
        """See ``Runtime``; the function runs in a thread."""
        return await anyio.to_thread.run_sync(function)

    @asynccontextmanager
    async def repeating(
        self, seconds: float, function: Callable[[], Coroutine[Any, Any, None]]
    ) -> AsyncGenerator[None]:
        """See ``Runtime``."""
        errors: list[Exception] = []

        async def repeat() -> None:
            try:
                while True:
                    await anyio.sleep(seconds)
                    await function()
            except Exception as error:  # noqa: BLE001 - raised below
                errors.append(error)

        # The group would wrap the errors of its body, so they leave it in the list too.
        async with anyio.create_task_group() as group:
            group.start_soon(repeat)
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised below
                errors.insert(0, error)
            group.cancel_scope.cancel()
        if errors:
            raise errors[0]

    def uncancelled(self) -> AbstractContextManager[object]:
        """See ``Runtime``."""
        return anyio.CancelScope(shield=True)


class BlockingRuntime:
    """For programs without an event loop."""

    async def sleep(self, seconds: float) -> None:
        """See ``Runtime``."""
        time.sleep(seconds)

    async def call(self, function: Callable[[], T]) -> T:
        """See ``Runtime``."""
        return function()

    @asynccontextmanager
    async def repeating(
        self, seconds: float, function: Callable[[], Coroutine[Any, Any, None]]
    ) -> AsyncGenerator[None]:
        """See ``Runtime``; the function runs in a thread."""
        stopped = threading.Event()
        errors: list[Exception] = []

        def repeat() -> None:
            try:
                while not stopped.wait(seconds):
                    run(function())
            except Exception as error:  # noqa: BLE001 - raised below
                errors.append(error)

        thread = threading.Thread(target=repeat, name="covey-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()
        if errors:
            raise errors[0]

    def uncancelled(self) -> AbstractContextManager[object]:
        """See ``Runtime``."""
        return nullcontext()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, and return its result.

    >>> async def one() -> int:
    ...     return 1
    >>> run(one())
    1
    """
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine of a blocking client was suspended")


def iterate(items: AsyncIterator[T]) -> Iterator[T]:
    """Yield the items of an iterator that never suspends."""

    async def next_item() -> T:
        return await anext(items)

    try:
        while True:
            try:
                item = run(next_item())
            except StopAsyncIteration:
                return
            yield item
    finally:
        if isinstance(items, AsyncGenerator):
            run(_close(items))


async def _close(items: AsyncGenerator[T]) -> None:
    await items.aclose()


class _SyncStream(httpx.SyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from iterate(aiter(self._stream))

    def close(self) -> None:
        run(_as_coroutine(self._stream.aclose()))


class _AsyncStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._stream:
            yield chunk

    async def aclose(self) -> None:
        self._stream.close()


async def _as_coroutine(awaitable: Awaitable[T]) -> T:
    return await awaitable


class BlockingTransport(httpx.AsyncBaseTransport):
    """Sends the requests of an asynchronous client by a blocking transport.

    Args:
        transport: the blocking transport.
    """

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """See ``AsyncBaseTransport``."""
        stream = request.stream
        if not isinstance(stream, httpx.SyncByteStream):
            request = httpx.Request(
                request.method,
                request.url,
                headers=request.headers,
                stream=_SyncStream(stream),
                extensions=request.extensions,
            )
        response = self._transport.handle_request(request)
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_AsyncStream(cast("httpx.SyncByteStream", response.stream)),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the blocking transport."""
        self._transport.close()


class RunTransport(httpx.BaseTransport):
    """Sends the requests of a blocking client by a transport that never suspends and reads the responses.

    Args:
        transport: the transport.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """See ``BaseTransport``."""
        if not isinstance(request.stream, httpx.AsyncByteStream):
            request = httpx.Request(
                request.method,
                request.url,
                headers=request.headers,
                stream=_AsyncStream(request.stream),
                extensions=request.extensions,
            )
        response = run(self._transport.handle_async_request(request))
        # The body was read and decoded.
        headers = [item for item in response.headers.multi_items() if item[0].lower() != "content-encoding"]
        return httpx.Response(
            response.status_code,
            headers=headers,
            content=response.content,
            extensions=response.extensions,
        )
