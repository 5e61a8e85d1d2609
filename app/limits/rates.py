"""Limits the request rate and the concurrent requests of an API key; counts in Redis.

All API processes count in the same Redis. The limits prevent one client from taking all capacity. If Redis is
unavailable, requests are accepted without counting.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import redis
import structlog

from app.db import open_sessions
from app.errors import TooMany
from app.ids import new_id
from app.jobs.broker import broker_url
from app.settings import Settings

log = structlog.get_logger()

TIMEOUT_SECONDS = 0.25
"""Timeout of a call to Redis."""

BACKOFF_SECONDS = 5.0
"""Time for which nothing is counted after a call to Redis has failed."""

SLOT_SECONDS = 600
"""A request that takes longer, or whose process has died, no longer counts as a concurrent request."""

_RATE_SCRIPT = """
local now = redis.call('TIME')
now = now[1] + now[2] / 1e6
local gap, burst = 60 / ARGV[1], 60
local free = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local wait = free + gap - burst - now
if wait > 1e-3 then return tostring(wait) end
redis.call('SET', KEYS[1], string.format('%.6f', free + gap), 'EX', 120)
return '0'
"""
"""The generic cell rate algorithm (GCRA) with a burst of one minute. Returns the seconds to wait, or 0."""

_SLOT_SCRIPT = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""
"""Takes a slot for a concurrent request, or returns 0 if none is free. Slots that are not released expire."""


class RedisRequiredError(RuntimeError):
    """Limits are set, but there is no Redis to count in."""


class RateLimiter:
    """Counts the requests of API keys.

    Args:
        settings: the limits, and the URL of Redis.

    Attributes:
        counts: whether a limit is set.

    Raises:
        RedisRequiredError: limits are set, but no URL of a Redis.
    """

    def __init__(self, settings: Settings) -> None:
        self._rate = settings.rate_per_minute
        self._max_concurrent = settings.requests_at_once
        self.counts = bool(self._rate or self._max_concurrent)
        self._paused_until = 0.0
        self._lock = threading.Lock()
        if not self.counts:
            return
        url = settings.limits_url or broker_url(settings)
        url = url.replace("redis+socket://", "unix://", 1)
        if not url.startswith(("redis://", "rediss://", "unix://")):
            raise RedisRequiredError(
                "limits of API keys are counted in Redis; set COVEY_LIMITS_URL to its URL"
            )
        self._redis = redis.Redis.from_url(
            url, socket_timeout=TIMEOUT_SECONDS, socket_connect_timeout=TIMEOUT_SECONDS, decode_responses=True
        )
        self._check_rate = self._redis.register_script(_RATE_SCRIPT)
        self._take_slot = self._redis.register_script(_SLOT_SCRIPT)

    def acquire(self, key_id: str) -> Callable[[], None] | None:
        """Count a request of a key.

        Returns:
            A function to call when the request has ended; None if there is nothing to do then.

        Raises:
            TooMany: the request exceeds a limit.
        """
        if self._rate and (
            wait := float(self._call(self._check_rate, f"covey:rate:{key_id}", self._rate) or 0)
        ):
            raise TooMany(
                f"this API key may send {self._rate} requests a minute; try again in {wait:.0f} s",
                retry_after=wait,
            )
        if not self._max_concurrent:
            return None
        slots, slot = f"covey:slots:{key_id}", new_id("req")
        if self._call(self._take_slot, slots, self._max_concurrent, slot, SLOT_SECONDS) == 0:
            raise TooMany(
                f"this API key may have {self._max_concurrent} concurrent requests; wait until one ends",
                code="too_many_at_once",
                retry_after=1,
            )
        return lambda: self._call(lambda **_: self._redis.zrem(slots, slot), slots)

    def close(self) -> None:
        """Close the connections."""
        if self.counts:
            self._redis.close()

    def _call(self, command: Callable[..., Any], key: str, *arguments: Any) -> Any:
        """Return the result of a call to Redis; None while Redis is unavailable."""
        open_sessions.refuse_if_any("counting a request in Redis")
        if time.monotonic() < self._paused_until:
            return None
        try:
            return command(keys=[key], args=arguments)
        except redis.RedisError as error:
            with self._lock:
                first = time.monotonic() >= self._paused_until
                self._paused_until = time.monotonic() + BACKOFF_SECONDS
            if first:
                log.warning("limits.not_counted", reason=type(error).__name__)
            return None
