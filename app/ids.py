"""Opaque identifiers: a prefix, then a ULID. Identifiers sort in the order in which they were created.

The order is exact for identifiers of one process, also within a millisecond and if the clock is set back
(monotonic ULIDs). Between processes it is as exact as their clocks.
"""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal, TypeAlias

Prefix: TypeAlias = Literal[
    "ds", "job", "exp", "dec", "key", "req", "wrk", "rtr", "evl", "bp", "wh", "msg", "usr"
]

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]
"""Two digits for each number of ten bits."""
_SHIFTS = range(110, -1, -10)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_RANDOM_BYTES = 320
"""Random bytes that are taken from the operating system at once, 10 for each identifier."""


class MonotonicUlids:
    """Generate ULIDs as numbers, each larger than the one before. Safe to use from several threads."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the last value, so that a forked process does not continue its parent's sequence."""
        # A thread of the parent may hold the lock during the fork, so the child gets a new one.
        self._lock = threading.Lock()
        self._last = 0
        self._random = b""

    def next(self) -> int:
        """Return 48 bits of milliseconds since 1970 and 80 random bits, or the last value plus one."""
        milliseconds = time.time_ns() // 1_000_000
        with self._lock:
            if milliseconds <= self._last >> 80:
                self._last += 1
                return self._last
            if not self._random:
                self._random = os.urandom(_RANDOM_BYTES)  # a system call takes longer than the rest
            taken, self._random = self._random[:10], self._random[10:]
            self._last = milliseconds << 80 | int.from_bytes(taken)
            return self._last


_ulids = MonotonicUlids()
os.register_at_fork(after_in_child=_ulids.reset)


def new_id(prefix: Prefix) -> str:
    """Return a new identifier, which sorts after every identifier that this process created with this prefix.

    >>> first, second = new_id("ds"), new_id("ds")
    >>> first.startswith("ds_"), len(first), first < second
    (True, 29, True)
    """
    return _encode(prefix, _ulids.next())


def first_id(prefix: Prefix, moment: datetime) -> str:
    """Return an identifier between those from before a moment and those from this moment or later.

    >>> first_id("dec", datetime(2026, 1, 1, tzinfo=UTC)) < new_id("dec")
    True
    """
    milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    return _encode(prefix, milliseconds << 80)


def time_of(id_: str) -> datetime:
    """Return the time at which an identifier was created, by the clock of its process.

    >>> time_of(first_id("dec", datetime(2026, 1, 1, tzinfo=UTC))).isoformat()
    '2026-01-01T00:00:00+00:00'
    """
    milliseconds = 0
    for digit in id_.rpartition("_")[2][:10]:
        milliseconds = milliseconds << 5 | _CROCKFORD.index(digit)
    return _EPOCH + timedelta(milliseconds=milliseconds)


def _encode(prefix: Prefix, value: int) -> str:
    return f"{prefix}_{_high_digits(value >> 10)}{_PAIRS[value & 1023]}"


@lru_cache(maxsize=1)  # identifiers of one millisecond differ in the last digits only
def _high_digits(value: int) -> str:
    """Return all digits but the last two."""
    return "".join([_PAIRS[(value >> shift) & 1023] for shift in _SHIFTS])
