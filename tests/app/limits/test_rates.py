"""Requests of API keys are counted in Redis for all processes, and accepted if Redis is unavailable."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import production
import pytest
import redis
import uvloop
from captured_logs import captured_logs
from waiting import LIMIT_SECONDS

from app.errors import TooMany
from app.limits import rates
from app.limits.rates import RateLimiter, RedisRequiredError
from app.settings import Settings


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with production.valkey(tmp_path_factory.mktemp("valkey")) as url:
        yield url


@pytest.fixture(autouse=True)
def long_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a call to Redis may take long."""
    monkeypatch.setattr(rates, "TIMEOUT_SECONDS", LIMIT_SECONDS)


@pytest.fixture(autouse=True)
def empty(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.flushall()


Test = Callable[[Callable[..., RateLimiter]], Coroutine[Any, Any, None]]


@pytest.fixture
def run(url: str) -> Callable[[Test], None]:
    """Runs a test with a function that creates limiters, which are closed after it."""

    def run(test: Test) -> None:
        async def main() -> None:
            limiters: list[RateLimiter] = []

            def limiter(at: str = url, *, rate: int = 0, at_once: int = 0) -> RateLimiter:
                settings = Settings(limits_url=at, rate_per_minute=rate, requests_at_once=at_once)
                limiters.append(RateLimiter(settings))
                return limiters[-1]

            async with asyncio.timeout(LIMIT_SECONDS):
                try:
                    await test(limiter)
                finally:
                    for each in limiters:
                        await each.close()

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as the API
            runner.run(main())

    return run


Create = Callable[..., RateLimiter]


def test_the_requests_of_one_minute_are_accepted_at_once(run: Callable[[Test], None]) -> None:
    async def test(limiter: Create) -> None:
        # The rate is so low that the duration of the test does not matter.
        first_process, second_process = limiter(rate=3), limiter(rate=3)
        for process in (first_process, second_process, first_process):
            await process.acquire("key_1")
        for process in (first_process, second_process):
            with pytest.raises(TooMany, match="3 requests a minute") as raised:
                await process.acquire("key_1")
            assert raised.value.code == "too_many_requests"
            assert 1 <= int(raised.value.headers["Retry-After"]) <= 20
        await first_process.acquire("key_2")

    run(test)


def test_requests_become_available_again_one_by_one(run: Callable[[Test], None], url: str) -> None:
    async def test(limiter: Create) -> None:
        limited = limiter(rate=3)
        for _ in range(3):
            await limited.acquire("key_1")
        with redis.Redis.from_url(url) as client:
            ((key, free),) = [(key, float(client.get(key) or 0)) for key in client.keys("covey:rate:*")]
            client.set(key, free - 21)  # as if 21 s had passed; a request becomes available every 20 s
        await limited.acquire("key_1")
        with pytest.raises(TooMany):
            await limited.acquire("key_1")

    run(test)


def test_concurrent_requests_are_limited(run: Callable[[Test], None]) -> None:
    async def test(limiter: Create) -> None:
        first_process, second_process = limiter(at_once=2), limiter(at_once=2)
        first, second = await first_process.acquire("key_1"), await second_process.acquire("key_1")
        assert first is not None
        assert second is not None
        for _ in range(2):
            with pytest.raises(TooMany, match="2 concurrent requests") as raised:
                await first_process.acquire("key_1")
            assert raised.value.code == "too_many_at_once"
        await first_process.acquire("key_2")
        await first()
        await first()
        third = await second_process.acquire("key_1")
        assert third is not None
        with pytest.raises(TooMany):
            await first_process.acquire("key_1")

    run(test)


def test_a_slot_that_is_not_released_expires(
    run: Callable[[Test], None], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "SLOT_SECONDS", 1)

    async def test(limiter: Create) -> None:
        limited = limiter(at_once=1)
        await limited.acquire("key_1")
        with redis.Redis.from_url(url) as client:
            (key,) = client.keys("covey:slots:*")
            assert client.ttl(key) == 1
            ((slot, until),) = client.zrange(key, 0, -1, withscores=True)
            client.zadd(key, {slot: until - 2})
        await limited.acquire("key_1")

    run(test)


def test_simultaneous_requests_do_not_exceed_the_limit(
    run: Callable[[Test], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "MAX_CONNECTIONS", 3)  # calls also wait for connections

    async def test(limiter: Create) -> None:
        limited = limiter(at_once=5)
        results = await asyncio.gather(*(limited.acquire("key_1") for _ in range(20)), return_exceptions=True)
        assert [type(result) for result in results if isinstance(result, BaseException)] == [TooMany] * 15

    run(test)


def test_the_wait_for_a_connection_does_not_count_as_a_wait_for_redis(
    run: Callable[[Test], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "MAX_CONNECTIONS", 1)

    async def test(limiter: Create) -> None:
        limited = limiter(rate=1)
        with captured_logs(rates) as logs:
            async with limited._connections:
                monkeypatch.setattr(rates, "TIMEOUT_SECONDS", 0.0)
                calls = [asyncio.create_task(limited.acquire("key_1")) for _ in range(2)]
                for _ in range(10):
                    await asyncio.sleep(0.001)
                monkeypatch.setattr(rates, "TIMEOUT_SECONDS", LIMIT_SECONDS)
            results = await asyncio.gather(*calls, return_exceptions=True)
        assert logs == []
        assert [type(result) for result in results] == [type(None), TooMany]

    run(test)


def test_an_unavailable_redis_limits_nothing_and_is_logged_once(run: Callable[[Test], None]) -> None:
    async def test(limiter: Create) -> None:
        limited = limiter("redis://127.0.0.1:9/0", rate=1, at_once=1)
        with captured_logs(rates) as logs:
            for _ in range(5):
                release = await limited.acquire("key_1")
                assert release is not None
                await release()
        assert [entry["event"] for entry in logs] == ["limits.not_counted"]

    run(test)


@pytest.mark.parametrize("accepts", [True, False])
def test_a_redis_that_does_not_respond_is_called_once(
    run: Callable[[Test], None], monkeypatch: pytest.MonkeyPatch, accepts: bool
) -> None:
    monkeypatch.setattr(rates, "TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(rates, "BACKOFF_SECONDS", LIMIT_SECONDS)
    with socket.create_server(("127.0.0.1", 0), backlog=64 if accepts else 0) as server:
        if not accepts:  # a full backlog: connections are not established
            full = [socket.socket() for _ in range(2)]
            for client in full:
                client.setblocking(False)
                client.connect_ex(server.getsockname())

        async def test(limiter: Create) -> None:
            limited = limiter(f"redis://127.0.0.1:{server.getsockname()[1]}/0", rate=1, at_once=1)
            with captured_logs(rates) as logs:
                assert await limited.acquire("key_1") is not None
                assert await limited.acquire("key_1") is not None
            assert [(entry["event"], entry["reason"]) for entry in logs] == [
                ("limits.not_counted", "TimeoutError")
            ]

        run(test)
        if not accepts:
            for client in full:
                client.close()
            return
        server.setblocking(False)
        server.accept()[0].close()
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_response_that_is_there_counts_however_busy_the_event_loop_was(
    run: Callable[[Test], None], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(limiter: Create) -> None:
        limited = limiter(rate=2)
        await limited.acquire("key_1")  # the script is loaded, and the connection open
        monkeypatch.setattr(rates, "TIMEOUT_SECONDS", 0.5)
        with captured_logs(rates) as logs, redis.Redis.from_url(url) as client:
            before = client.get("covey:rate:key_1")
            call = asyncio.create_task(limited.acquire("key_1"))
            while client.get("covey:rate:key_1") == before:
                await asyncio.sleep(0)
            time.sleep(1.0)
            await call
            assert logs == []

    run(test)


def test_redis_is_called_again_after_the_backoff(
    run: Callable[[Test], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "BACKOFF_SECONDS", 0.0)

    async def test(limiter: Create) -> None:
        with production.valkey(tmp_path) as other:
            limited = limiter(other, rate=1)
            await limited.acquire("key_1")
            with pytest.raises(TooMany):
                await limited.acquire("key_1")
        await limited.acquire("key_1")

    run(test)


def test_a_connection_that_redis_has_closed_is_replaced(run: Callable[[Test], None], url: str) -> None:
    async def test(limiter: Create) -> None:
        limited = limiter(rate=1)
        await limited.acquire("key_1")
        with redis.Redis.from_url(url) as client:
            client.client_kill_filter(_type="normal", skipme=True)
        with captured_logs(rates) as logs, pytest.raises(TooMany):
            await limited.acquire("key_1")
        assert logs == []

    run(test)


def test_without_limits_no_redis_is_required(run: Callable[[Test], None]) -> None:
    async def test(limiter: Create) -> None:
        assert await limiter("").acquire("key_1") is None

    run(test)


def test_limits_without_redis_are_rejected() -> None:
    with pytest.raises(RedisRequiredError, match="COVEY_LIMITS_URL"):
        RateLimiter(Settings(broker_url="amqp://localhost", rate_per_minute=1))
