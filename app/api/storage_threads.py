"""Runs calls to the storage in threads of their own, so that a slow storage leaves other requests alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from anyio import CapacityLimiter, fail_after, to_thread
from anyio.lowlevel import RunVar

from app.errors import NotReady

THREADS = 16
"""Number of requests of one process that use the storage at the same time."""

WAIT_SECONDS = 10.0
"""How long a request waits for a thread."""

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

_slots: RunVar[CapacityLimiter] = RunVar("storage-slots")
_threads: RunVar[CapacityLimiter] = RunVar("storage-threads")


async def run_in_storage_thread(
    function: Callable[[*Arguments], Result], *arguments: *Arguments, wait_seconds: float = WAIT_SECONDS
) -> Result:
    """Run a function that uses the storage. The request waits for a thread without holding one.

    Args:
        function: the function.
        arguments: its arguments.
        wait_seconds: how long to wait for a thread; ``math.inf`` for work that must be done.

    Raises:
        NotReady: no thread became free in time.
    """
    slots, slot = _limiter(_slots), object()
    try:
        with fail_after(wait_seconds if wait_seconds < math.inf else None):
            await slots.acquire_on_behalf_of(slot)
    except TimeoutError as error:
        raise NotReady(
            "the storage is slow, and too many requests wait for it; try again",
            code="storage_unavailable",
            retry_after=5,
        ) from error
    try:
        return await to_thread.run_sync(function, *arguments, limiter=_limiter(_threads))
    finally:
        slots.release_on_behalf_of(slot)


def _limiter(variable: RunVar[CapacityLimiter]) -> CapacityLimiter:
    """Return the limiter of this event loop."""
    try:
        return variable.get()
    except LookupError:
        limiter = CapacityLimiter(THREADS)
        variable.set(limiter)
        return limiter
