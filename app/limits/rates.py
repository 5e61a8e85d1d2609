"""How often one API key may ask, and how many answers it may wait for at a time; counted in Redis.

All API processes count in the same place. The limits are there to keep one client from crowding out the
others, so a Redis that is away opens them: a service that cannot count still answers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import redis
import structlog

from app.http.errors import TooMany
from app.ids import new_id
from app.jobs.broker import broker_url
from app.settings import Settings

log = structlog.get_logger()

SLOW_SECONDS = 0.25
"""How long an answer of Redis is waited for."""

AWAY_SECONDS = 5.0
"""How long nothing is counted after an answer that did not come."""

LONGEST_SECONDS = 600
"""A request that is answered for longer, or whose process died, frees its place."""

_RATE = """
local now = redis.call('TIME')
now = now[1] + now[2] / 1e6
local gap, burst = 60 / ARGV[1], 60
local free = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local wait = free + gap - burst - now
if wait > 1e-3 then return tostring(wait) end
redis.call('SET', KEYS[1], string.format('%.6f', free + gap), 'EX', 120)
return '0'
"""
"""The generic cell rate algorithm: each request moves the moment at which a key's minute is free again."""

_PLACE = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""
"""The places that a key's requests take, each until it is given back or too old."""


class NotCountedError(RuntimeError):
    """There is no Redis to count in."""


class Rates:
    """Counts the requests of keys.

    Args:
        settings: the limits, and where to count.

    Raises:
        NotCountedError: there are limits, and no Redis is named.
    """

    def __init__(self, settings: Settings) -> None:
        self._rate = settings.rate_per_minute
        self._at_once = settings.requests_at_once
        self._away_until = 0.0
        self._lock = threading.Lock()
        if not (self._rate or self._at_once):
            return
        url = settings.limits_url or broker_url(settings)
        url = url.replace("redis+socket://", "unix://", 1)
        if not url.startswith(("redis://", "rediss://", "unix://")):
            raise NotCountedError("limits of API keys are counted in Redis; set COVEY_LIMITS_URL to one")
        self._redis = redis.Redis.from_url(
            url, socket_timeout=SLOW_SECONDS, socket_connect_timeout=SLOW_SECONDS, decode_responses=True
        )
        self._take_turn = self._redis.register_script(_RATE)
        self._take_place = self._redis.register_script(_PLACE)

    def enter(self, key_id: str) -> Callable[[], None] | None:
        """Count a request of a key.

        Returns:
            what to call when it has been answered; None where nothing is to be done then.

        Raises:
            TooMany: it is one too many.
        """
        if self._rate and (
            wait := float(self._asked(self._take_turn, f"covey:rate:{key_id}", self._rate) or 0)
        ):
            raise TooMany(
                f"this API key may send {self._rate} requests a minute; try again in {wait:.0f} s",
                retry_after=wait,
            )
        if not self._at_once:
            return None
        places, place = f"covey:places:{key_id}", new_id("req")
        if self._asked(self._take_place, places, self._at_once, place, LONGEST_SECONDS) == 0:
            raise TooMany(
                f"this API key may have {self._at_once} requests answered at a time; wait for one of them",
                code="too_many_at_once",
                retry_after=1,
            )
        return lambda: self._asked(lambda **_: self._redis.zrem(places, place), places)

    def close(self) -> None:
        """Close the connections."""
        if self._rate or self._at_once:
            self._redis.close()

    def _asked(self, question: Callable[..., Any], key: str, *arguments: Any) -> Any:
        """An answer of Redis; None while it is away."""
        if time.monotonic() < self._away_until:
            return None
        try:
            return question(keys=[key], args=arguments)
        except redis.RedisError as error:
            with self._lock:
                first = time.monotonic() >= self._away_until
                self._away_until = time.monotonic() + AWAY_SECONDS
            if first:
                log.warning("limits.not_counted", reason=type(error).__name__)
            return None
