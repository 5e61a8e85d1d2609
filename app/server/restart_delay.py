"""The time at which a process that has died is started again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

STABLE_SECONDS = 10.0
"""A process that ran longer is restarted immediately. One that died sooner waits longer after each death."""

FIRST_SECONDS = 0.5
MAX_SECONDS = 10.0


@dataclass
class RestartDelay:
    """The delay before the next start of a process.

    Attributes:
        seconds: the delay after the last death.
    """

    seconds: float = 0.0
    _started_at: float = 0.0
    _start_at: float = field(default_factory=time.monotonic)

    def is_over(self) -> bool:
        """Whether to start the process now."""
        return time.monotonic() >= self._start_at

    def started(self) -> None:
        """Record that the process was started."""
        self._started_at = time.monotonic()

    def died(self) -> None:
        """Record that the process has died."""
        now = time.monotonic()
        stable = now - self._started_at > STABLE_SECONDS
        self.seconds = 0.0 if stable else min(max(FIRST_SECONDS, 2 * self.seconds), MAX_SECONDS)
        self._start_at = now + self.seconds
