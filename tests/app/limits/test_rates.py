"""Requests of API keys are counted in Redis for all processes, and accepted if Redis is unavailable."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import production
import pytest
import redis
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


@pytest.fixture
def limiters() -> Iterator[list[RateLimiter]]:
    """The limiters of a test, which are closed after it."""
    limiters: list[RateLimiter] = []
    yield limiters
    for limiter in limiters:
        limiter.close()


def limiter(limiters: list[RateLimiter], url: str, *, rate: int = 0, at_once: int = 0) -> RateLimiter:
    limiters.append(RateLimiter(Settings(limits_url=url, rate_per_minute=rate, requests_at_once=at_once)))
    return limiters[-1]


def test_the_requests_of_one_minute_are_accepted_at_once(limiters: list[RateLimiter], url: str) -> None:
    # The rate is so low that the duration of the test does not matter.
    first_process, second_process = limiter(limiters, url, rate=3), limiter(limiters, url, rate=3)
    for process in (first_process, second_process, first_process):
        process.acquire("key_1")
    for process in (first_process, second_process):
        with pytest.raises(TooMany, match="3 requests a minute") as raised:
            process.acquire("key_1")
        assert raised.value.code == "too_many_requests"
        assert 1 <= int(raised.value.headers["Retry-After"]) <= 20
    first_process.acquire("key_2")


def test_requests_become_available_again_one_by_one(limiters: list[RateLimiter], url: str) -> None:
    limited = limiter(limiters, url, rate=3)
    for _ in range(3):
        limited.acquire("key_1")
    with redis.Redis.from_url(url) as client:
        ((key, free),) = [(key, float(client.get(key) or 0)) for key in client.keys("covey:rate:*")]
        client.set(key, free - 21)  # as if 21 s had passed; a request becomes available every 20 s
    limited.acquire("key_1")
    with pytest.raises(TooMany):
        limited.acquire("key_1")


def test_concurrent_requests_are_limited(limiters: list[RateLimiter], url: str) -> None:
    first_process, second_process = limiter(limiters, url, at_once=2), limiter(limiters, url, at_once=2)
    first, second = first_process.acquire("key_1"), second_process.acquire("key_1")
    assert first is not None
    assert second is not None
    for _ in range(2):
        with pytest.raises(TooMany, match="2 concurrent requests") as raised:
            first_process.acquire("key_1")
        assert raised.value.code == "too_many_at_once"
    first_process.acquire("key_2")
    first()
    first()
    third = second_process.acquire("key_1")
    assert third is not None
    with pytest.raises(TooMany):
        first_process.acquire("key_1")


def test_a_slot_that_is_not_released_expires(
    limiters: list[RateLimiter], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "SLOT_SECONDS", 1)
    limited = limiter(limiters, url, at_once=1)
    limited.acquire("key_1")
    with redis.Redis.from_url(url) as client:
        (key,) = client.keys("covey:slots:*")
        assert client.ttl(key) == 1
        ((slot, until),) = client.zrange(key, 0, -1, withscores=True)
        client.zadd(key, {slot: until - 2})
    limited.acquire("key_1")


def test_simultaneous_requests_do_not_exceed_the_limit(limiters: list[RateLimiter], url: str) -> None:
    limited = limiter(limiters, url, at_once=5)
    accepted: list[bool] = []

    def send() -> None:
        try:
            limited.acquire("key_1")
        except TooMany:
            accepted.append(False)
        else:
            accepted.append(True)

    threads = [threading.Thread(target=send) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(accepted) == [False] * 15 + [True] * 5


def test_an_unavailable_redis_limits_nothing_and_is_logged_once(limiters: list[RateLimiter]) -> None:
    limited = limiter(limiters, "redis://127.0.0.1:9/0", rate=1, at_once=1)
    with captured_logs(rates) as logs:
        for _ in range(5):
            release = limited.acquire("key_1")
            assert release is not None
            release()
    assert [entry["event"] for entry in logs] == ["limits.not_counted"]


def test_redis_is_called_again_after_the_backoff(
    limiters: list[RateLimiter], url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "BACKOFF_SECONDS", 0.0)
    with production.valkey(tmp_path) as other:
        limited = limiter(limiters, other, rate=1)
        limited.acquire("key_1")
        with pytest.raises(TooMany):
            limited.acquire("key_1")
    limited.acquire("key_1")


def test_without_limits_no_redis_is_required(limiters: list[RateLimiter]) -> None:
    limited = limiter(limiters, "")
    assert limited.acquire("key_1") is None


def test_limits_without_redis_are_rejected() -> None:
    with pytest.raises(RedisRequiredError, match="COVEY_LIMITS_URL"):
        RateLimiter(Settings(broker_url="amqp://localhost", rate_per_minute=1))
