"""Waiting for events. No test assumes that something takes less than a certain time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LIMIT_SECONDS = 300.0
"""The one limit of all tests. What takes longer is stuck; no test depends on the value."""

Found = TypeVar("Found")


def wait_for(look: Callable[[], Found | None], *, what: str, seconds: float = LIMIT_SECONDS) -> Found:
    """Call a function until it returns something other than None.

    The pauses between the calls grow with the time that has passed, so that waiting does not cost what it
    waits for, and a long wait does not exceed a rate limit.

    Raises:
        TimeoutError: if nothing is found within the limit.
    """
    began = time.monotonic()
    while (found := look()) is None:
        waited = time.monotonic() - began
        if waited > seconds:
            raise TimeoutError(f"waited {waited:.0f} s for {what}")
        time.sleep(min(max(0.01, waited / 10), 0.5))
    return found
