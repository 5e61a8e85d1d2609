"""What differs between blocking and asynchronous use. Everything else is written once, see ``unasync.py``."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


class AsyncRuntime:
    """For asyncio and trio."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await anyio.sleep(seconds)

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function that reads files, in a thread."""
        return await anyio.to_thread.run_sync(function)

    @asynccontextmanager
    async def repeating(
        self, seconds: float, function: Callable[[], Coroutine[Any, Any, None]]
    ) -> AsyncGenerator[None]:
        """Call a function again and again while the body of the context runs; raise its error at the end."""
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
        """Return a context whose body runs to its end although the task was cancelled."""
        return anyio.CancelScope(shield=True)


class BlockingRuntime:
    """For programs without an event loop."""

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def call(self, function: Callable[[], T]) -> T:
        """Call a function that reads files."""
        return function()

    @contextmanager
    def repeating(self, seconds: float, function: Callable[[], None]) -> Generator[None]:
        """Call a function again and again, in a thread, while the body of the context runs.

        Its error is raised at the end.
        """
        stopped = threading.Event()
        errors: list[Exception] = []

        def repeat() -> None:
            try:
                while not stopped.wait(seconds):
                    function()
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
        """Return a context: a blocking call cannot be cancelled."""
        return nullcontext()
