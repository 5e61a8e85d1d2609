"""Limit the request rate and the concurrent requests of an API key; count in Redis.

All API processes count in the same Redis. The limits prevent one client from taking all capacity. If Redis is
unavailable, requests are accepted without counting. The calls wait on the event loop, so a request needs no
thread to be counted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from redis import asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as DisconnectedError
from redis.exceptions import RedisError

from app.errors import TooMany
from app.ids import new_id
from app.jobs.broker import broker_url
from app.settings import Settings

log = structlog.get_logger()

TIMEOUT_SECONDS = 0.25
"""Timeout of a call to Redis, as a whole."""

MAX_CONNECTIONS = 40
"""Maximum number of connections of one process. More calls at the same time wait for each other."""

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
"""Reserves a slot for a concurrent request, or returns 0 if all are taken. Slots expire if not released."""


class RedisRequiredError(RuntimeError):
    """Limits are set, but there is no Redis to count in."""


class RateLimiter:
    """Count the requests of API keys.

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
        if not self.counts:
            return
        url = settings.limits_url.get_secret_value() or broker_url(settings)
        url = url.replace("redis+socket://", "unix://", 1)
        if not url.startswith(("redis://", "rediss://", "unix://")):
            raise RedisRequiredError(
                "limits of API keys are counted in Redis; set COVEY_LIMITS_URL to its URL"
            )
        self._connections = asyncio.Semaphore(MAX_CONNECTIONS)
        self._redis = redis.Redis.from_url(
            url,
            socket_timeout=None,  # ``_in_time`` limits the time as a whole
            socket_connect_timeout=None,
            # Only because a connection can have been closed since its last use.
            retry=Retry(NoBackoff(), 1, supported_errors=(DisconnectedError,)),
            decode_responses=True,
        )
        self._check_rate = self._redis.register_script(_RATE_SCRIPT)
        self._reserve_slot = self._redis.register_script(_SLOT_SCRIPT)

    async def acquire(self, key_id: str) -> Callable[[], Awaitable[None]] | None:
        """Count a request of a key.

        Returns:
            A function to call when the request has ended; None if there is nothing to do then.

        Raises:
            TooMany: the request exceeds a limit.
        """
        if self._rate:
            keys, arguments = [f"covey:rate:{key_id}"], [self._rate]
            wait = float(await self._call(lambda: self._check_rate(keys, arguments)) or 0)
            if wait:
                raise TooMany(
                    f"this API key may send {self._rate} requests a minute; try again in {wait:.0f} s",
                    retry_after=wait,
                )
        if not self._max_concurrent:
            return None
        slots, slot = f"covey:slots:{key_id}", new_id("req")
        taken = await self._call(
            lambda: self._reserve_slot([slots], [self._max_concurrent, slot, SLOT_SECONDS])
        )
        if taken == 0:
            raise TooMany(
                f"this API key may have {self._max_concurrent} concurrent requests; wait until one ends",
                code="too_many_at_once",
                retry_after=1,
            )

        async def release() -> None:
            await self._call(lambda: self._redis.zrem(slots, slot))

        return release

    async def close(self) -> None:
        """Close the connections."""
        if self.counts:
            await self._redis.aclose()

    async def _call(self, command: Callable[[], Awaitable[Any]]) -> Any:
        """Return the result of a call to Redis; None while Redis is unavailable."""
        try:
            # The timeout begins when there is a connection, so that many requests at once are counted, too.
            async with self._connections:
                if time.monotonic() < self._paused_until:
                    return None
                return await _in_time(command())
        except (RedisError, OSError) as error:  # also TimeoutError
            first = time.monotonic() >= self._paused_until
            self._paused_until = time.monotonic() + BACKOFF_SECONDS
            if first:
                log.warning("limits.not_counted", reason=type(error).__name__)
            return None


async def _in_time(call: Awaitable[Any]) -> Any:
    """Return the result of a call.

    Raises:
        TimeoutError: it does not end in time.
    """
    task = asyncio.ensure_future(call)
    try:
        # Unlike ``asyncio.timeout``, this does not discard a response that is there when the loop was busy.
        await asyncio.wait((task,), timeout=TIMEOUT_SECONDS)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        if task.cancel():  # the client closes the connection, on which the response could still arrive
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
