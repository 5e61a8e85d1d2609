"""The threads in which the event loop of an API process calls functions that block, in named pools.

Each pool serves one kind of work, so that work that waits or computes for long leaves other kinds their
threads. A request waits for a thread without holding one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from anyio import CapacityLimiter, fail_after, to_thread
from anyio.lowlevel import RunVar

from app.errors import NotReady

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class ThreadPool:
    """A number of threads for one kind of work.

    Args:
        name: name of the pool.
        size: maximum number of calls at the same time in one event loop.
        wait_seconds: how long a call waits for a thread.
        serves_endpoints: whether FastAPI shares the pool, for endpoints that are ordinary functions.
    """

    def __init__(
        self, name: str, size: int, *, wait_seconds: float = math.inf, serves_endpoints: bool = False
    ) -> None:
        self.name = name
        self.size = size
        self.wait_seconds = wait_seconds
        self._serves_endpoints = serves_endpoints
        self._limiter_of_loop: RunVar[CapacityLimiter] = RunVar(f"threads-{name}")

    async def run(self, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Call a function in a thread, and return its result.

        Raises:
            NotReady: no thread became free in time.
        """
        if self.wait_seconds == math.inf:
            return await self.run_patiently(function, *arguments)
        limiter, call = self._limiter(), object()
        try:
            with fail_after(self.wait_seconds):
                await limiter.acquire_on_behalf_of(call)
        except TimeoutError as error:
            raise NotReady(
                f"the {self.name} is slow, and too many requests wait for it; try again",
                code=f"{self.name}_unavailable",
                retry_after=5,
            ) from error
        try:
            return await to_thread.run_sync(function, *arguments, limiter=CapacityLimiter(1))
        finally:
            limiter.release_on_behalf_of(call)

    async def run_patiently(self, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Call a function that must be called, however long it waits for a thread. Return its result."""
        return await to_thread.run_sync(function, *arguments, limiter=self._limiter())

    def _limiter(self) -> CapacityLimiter:
        try:
            return self._limiter_of_loop.get()
        except LookupError:
            if self._serves_endpoints:
                limiter = to_thread.current_default_thread_limiter()
                limiter.total_tokens = self.size
            else:
                limiter = CapacityLimiter(self.size)
            self._limiter_of_loop.set(limiter)
            return limiter


REQUESTS = ThreadPool("requests", 40, serves_endpoints=True)
"""Requests that use the database or parse large bodies. Up to 16 of them wait for versions to be loaded
(``app.serving.loaded_models``), and others compute."""

STORAGE = ThreadPool("storage", 16, wait_seconds=10.0)
"""Requests that use the storage. Calls to a bucket wait for the network, so there are many. If the storage
does not respond, all of these threads wait for it, and later requests find none in time."""

PREDICTIONS = ThreadPool("predictions", 2)
"""Predictions that are too long for the event loop, and their bodies. They compute, so more threads would
only take the time of small predictions."""

PARTIAL_FITS = ThreadPool("partial-fits", 1)
"""Partial fits, which compute for seconds: one after the other, however many are requested."""

EVENT_STREAMS = ThreadPool("event-streams", 1)
"""The poller of all event streams, which makes one call after the other and must not wait for requests."""
