"""How the processor time of a function grows with the size of its input."""

from __future__ import annotations

import time
from collections.abc import Callable

FACTOR = 8
MAX_RATIO = 24.0
"""Linear work takes 8 times as long for an input 8 times as large, and quadratic work 64 times."""

_MIN_SECONDS = 0.02

_ATTEMPTS = 4
"""Other processes take the caches of the machine away, so large inputs are sometimes slower. Quadratic work
never passes."""


def check_linear(prepare: Callable[[int], Callable[[], object]], size: int) -> None:
    """Check that the work on an input 8 times as large takes less than 24 times as long.

    Args:
        prepare: creates the input of a size, and returns the function to measure.
        size: the smaller size; doubled until the work can be measured.
    """
    while (small := _seconds(prepare(size))) < _MIN_SECONDS:
        size *= 2
    measured = []
    for _ in range(_ATTEMPTS):
        large = _seconds(prepare(FACTOR * size))
        measured.append(f"{size:,}: {small:.3f} s, {FACTOR * size:,}: {large:.3f} s")
        if large < MAX_RATIO * small:
            return
        small = _seconds(prepare(size))
    raise AssertionError("; ".join(measured))


def _seconds(work: Callable[[], object]) -> float:
    """Return the shortest processor time of three calls."""
    shortest = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        shortest = min(shortest, time.process_time() - start)
    return shortest
