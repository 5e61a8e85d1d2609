"""Requests of keys are counted in Redis, together for all processes, and let through when it is away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import production
import pytest
import redis
from structlog.testing import capture_logs
from waiting import LIMIT_SECONDS

from app.http.errors import TooMany
from app.limits import rates
from app.limits.rates import NotCountedError, Rates
from app.settings import Settings


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with production.valkey(tmp_path_factory.mktemp("valkey")) as url:
        yield url


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis is given all the time it needs on a busy machine."""
    monkeypatch.setattr(rates, "SLOW_SECONDS", LIMIT_SECONDS)


@pytest.fixture(autouse=True)
def empty(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.flushall()


@pytest.fixture
def opened() -> Iterator[list[Rates]]:
    made: list[Rates] = []
    yield made
    for each in made:
        each.close()


def limits(opened: list[Rates], url: str, *, rate: int = 0, at_once: int = 0) -> Rates:
    opened.append(Rates(Settings(limits_url=url, rate_per_minute=rate, requests_at_once=at_once)))
    return opened[-1]


def test_a_minutes_worth_passes_at_once_and_no_more(opened: list[Rates], url: str) -> None:
    # So slow a rate that no time that passes here matters.
    here, there = limits(opened, url, rate=3), limits(opened, url, rate=3)
    for process in (here, there, here):
        process.enter("key_1")
    for process in (here, there):
        with pytest.raises(TooMany, match="3 requests a minute") as raised:
            process.enter("key_1")
        assert raised.value.code == "too_many_requests"
        assert 1 <= int(raised.value.headers["Retry-After"]) <= 20
    here.enter("key_2")


def test_time_brings_turns_back_one_by_one(opened: list[Rates], url: str) -> None:
    counting = limits(opened, url, rate=3)
    for _ in range(3):
        counting.enter("key_1")
    with redis.Redis.from_url(url) as client:
        ((key, free),) = [(key, float(client.get(key) or 0)) for key in client.keys("covey:rate:*")]
        client.set(key, free - 21)  # as it is 21 s later, of the 20 s that a turn takes
    counting.enter("key_1")
    with pytest.raises(TooMany):
        counting.enter("key_1")


def test_so_many_answers_are_waited_for_at_a_time(opened: list[Rates], url: str) -> None:
    here, there = limits(opened, url, at_once=2), limits(opened, url, at_once=2)
    first, second = here.enter("key_1"), there.enter("key_1")
    assert first is not None
    assert second is not None
    for _ in range(2):
        with pytest.raises(TooMany, match="2 requests answered at a time") as raised:
            here.enter("key_1")
        assert raised.value.code == "too_many_at_once"
    here.enter("key_2")
    first()
    first()
    third = there.enter("key_1")
    assert third is not None
    with pytest.raises(TooMany):
        here.enter("key_1")


def test_a_place_that_nobody_gives_back_is_free_again_in_time(
    opened: list[Rates], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "LONGEST_SECONDS", 1)
    counting = limits(opened, url, at_once=1)
    counting.enter("key_1")
    with redis.Redis.from_url(url) as client:
        (key,) = client.keys("covey:places:*")
        assert client.ttl(key) == 1
        ((place, until),) = client.zrange(key, 0, -1, withscores=True)
        client.zadd(key, {place: until - 2})
    counting.enter("key_1")


def test_many_at_once_get_no_more_than_there_are_places(opened: list[Rates], url: str) -> None:
    counting = limits(opened, url, at_once=5)
    let: list[bool] = []

    def ask() -> None:
        try:
            counting.enter("key_1")
        except TooMany:
            let.append(False)
        else:
            let.append(True)

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(let) == [False] * 15 + [True] * 5


def test_redis_that_is_away_lets_everybody_in_and_is_told_of_once(opened: list[Rates]) -> None:
    counting = limits(opened, "redis://127.0.0.1:9/0", rate=1, at_once=1)
    with capture_logs() as logs:
        for _ in range(5):
            answered = counting.enter("key_1")
            assert answered is not None
            answered()
    assert [entry["event"] for entry in logs] == ["limits.not_counted"]


def test_it_is_asked_again_after_a_while(
    opened: list[Rates], url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "AWAY_SECONDS", 0.0)
    with production.valkey(tmp_path) as other:
        counting = limits(opened, other, rate=1)
        counting.enter("key_1")
        with pytest.raises(TooMany):
            counting.enter("key_1")
    counting.enter("key_1")


def test_without_limits_nothing_is_counted_and_no_redis_is_needed(opened: list[Rates]) -> None:
    counting = limits(opened, "")
    assert counting.enter("key_1") is None


def test_limits_without_a_redis_are_refused() -> None:
    with pytest.raises(NotCountedError, match="COVEY_LIMITS_URL"):
        Rates(Settings(broker_url="amqp://localhost", rate_per_minute=1))
