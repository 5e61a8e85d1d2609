"""A pool limits one kind of work, and a call that waits for a thread holds none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from anyio import CancelScope, create_task_group, to_thread
from waiting import LIMIT_SECONDS

from app.errors import NotReady
from app.threads import REQUESTS, ThreadPool


class Held:
    """A function whose calls wait until they are released.

    Args:
        begun: gets an item when a call begins.
    """

    def __init__(self, begun: asyncio.Queue[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._begun = begun
        self._released = threading.Event()

    def __call__(self) -> None:
        self._loop.call_soon_threadsafe(self._begun.put_nowait, None)
        assert self._released.wait(LIMIT_SECONDS)

    def release(self) -> None:
        """Let all calls end."""
        self._released.set()


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            await test()

    asyncio.run(limited())


@pytest.mark.parametrize("wait_seconds", [float("inf"), LIMIT_SECONDS])
def test_a_pool_limits_its_calls_and_leaves_those_of_other_pools_alone(wait_seconds: float) -> None:
    async def test() -> None:
        begun: asyncio.Queue[None] = asyncio.Queue()
        held = Held(begun)
        pool, other = ThreadPool("held", 2, wait_seconds=wait_seconds), ThreadPool("other", 1)
        calls = [asyncio.create_task(pool.run(held)) for _ in range(3)]
        await begun.get()
        await begun.get()
        assert await other.run(max, 1, 2) == 2
        assert begun.empty(), "a third call has begun"
        held.release()
        await asyncio.gather(*calls)
        assert begun.qsize() == 1

    run(test)


def test_a_call_that_finds_no_thread_in_time_fails_and_one_that_must_be_made_waits() -> None:
    async def test() -> None:
        begun: asyncio.Queue[None] = asyncio.Queue()
        held = Held(begun)
        pool = ThreadPool("storage", 1, wait_seconds=LIMIT_SECONDS)
        first = asyncio.create_task(pool.run(held))
        await begun.get()
        pool.wait_seconds = 0.01
        with pytest.raises(NotReady, match="the storage is slow") as raised:
            await pool.run(max, 1, 2)
        assert raised.value.code == "storage_unavailable"
        patient = asyncio.create_task(pool.run_patiently(max, 1, 2))
        held.release()
        await first
        assert await patient == 2
        pool.wait_seconds = LIMIT_SECONDS
        assert await pool.run(max, 1, 2) == 2

    run(test)


@pytest.mark.parametrize("wait_seconds", [float("inf"), LIMIT_SECONDS])
def test_a_call_keeps_its_thread_when_its_request_is_cancelled(wait_seconds: float) -> None:
    async def test() -> None:
        begun: asyncio.Queue[None] = asyncio.Queue()
        held = Held(begun)
        pool = ThreadPool("held", 1, wait_seconds=wait_seconds)
        async with create_task_group() as group:
            group.start_soon(pool.run, held)
            await begun.get()
            waiting = asyncio.create_task(pool.run(max, 1, 2))
            group.cancel_scope.cancel()
            with CancelScope(shield=True):
                for _ in range(10):
                    await asyncio.sleep(0)
                assert not waiting.done()
                held.release()
                assert await waiting == 2

    run(test)


def test_endpoints_share_the_pool_of_requests() -> None:
    async def test() -> None:
        await REQUESTS.run(max, 1, 2)
        assert to_thread.current_default_thread_limiter().total_tokens == REQUESTS.size

    run(test)
