"""Waits for events. No test depends on the duration of an event."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LIMIT_SECONDS = 300.0
"""Timeout of all tests. It only ends tests that hang; no test depends on its value."""

Result = TypeVar("Result")


def wait_for(poll: Callable[[], Result | None], *, what: str, seconds: float = LIMIT_SECONDS) -> Result:
    """Call a function until it returns something other than None and False.

    The pauses between the calls grow with the elapsed time, so that waiting takes little processor time from
    the awaited event, and a long wait does not exceed a rate limit.

    Raises:
        TimeoutError: if the function returns None or False until the limit.
    """
    started = time.monotonic()
    while (result := poll()) is None or result is False:
        elapsed = time.monotonic() - started
        if elapsed > seconds:
            raise TimeoutError(f"waited {elapsed:.0f} s for {what}")
        time.sleep(min(max(0.02, elapsed / 5), 0.5))
    return result
