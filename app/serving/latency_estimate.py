"""Decide whether a prediction is short enough to run on the event loop, where other requests wait for it.

A thread costs a request some hundred microseconds, which is more than most predictions take. How long a
prediction takes depends on the learner, the number of labels and the text, so it is measured.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeVar

from app.threads import PREDICTIONS

LOOP_SECONDS: Final = 0.002
"""A prediction that probably takes longer runs in a thread."""

MEASURED_EVERY: Final = 16
"""One of so many predictions on the event loop is measured."""

_UNIT_BYTES: Final = 1024
_RISE: Final = 0.25
_MAX_RISE: Final = 4.0

Result = TypeVar("Result")


class CostEstimate:
    """Estimate how long predictions of one version take.

    The time of a prediction is taken to be proportional to the number of its instances, plus the size of the
    request in kilobytes. The estimate follows faster predictions quickly, and slower ones slowly, because a
    busy machine makes single predictions slow.

    >>> cost = CostEstimate()
    >>> cost.is_small(1, 500)
    False
    >>> cost.record(1, 500, 0.0002)
    >>> cost.is_small(1, 500), cost.is_small(100, 50_000)
    (True, False)
    """

    __slots__ = ("_calls", "_seconds")

    def __init__(self) -> None:
        self._seconds: float | None = None
        self._calls = 0

    def is_small(self, n_instances: int, n_bytes: int) -> bool:
        """Whether a prediction can run on the event loop; no if none has been measured.

        Args:
            n_instances: number of its instances.
            n_bytes: size of the request in bytes.
        """
        seconds = self._seconds
        return seconds is not None and seconds * _units(n_instances, n_bytes) <= LOOP_SECONDS

    def is_due(self) -> bool:
        """Whether to measure this prediction, if it runs on the event loop. Reading the clock takes time."""
        self._calls += 1
        return self._calls % MEASURED_EVERY == 0

    def record(self, n_instances: int, n_bytes: int, seconds: float) -> None:
        """Record how much processor time a prediction has taken."""
        measured, estimate = seconds / _units(n_instances, n_bytes), self._seconds
        if estimate is None:
            self._seconds = measured
        elif measured < estimate:
            self._seconds = (estimate + measured) / 2
        else:
            self._seconds = estimate + _RISE * (min(measured, _MAX_RISE * estimate) - estimate)


def _units(n_instances: int, n_bytes: int) -> float:
    return n_instances + n_bytes / _UNIT_BYTES


async def run_measured(
    cost: CostEstimate, n_instances: int, n_bytes: int, predict: Callable[[], Result]
) -> Result:
    """Run a prediction on the event loop if it is short, otherwise in a thread.

    Args:
        cost: estimates the time of the prediction.
        n_instances: number of its instances.
        n_bytes: size of the request in bytes.
        predict: predicts.
    """

    def measured() -> Result:
        started = time.thread_time()
        result = predict()
        cost.record(n_instances, n_bytes, time.thread_time() - started)
        return result

    if not cost.is_small(n_instances, n_bytes):
        return await PREDICTIONS.run(measured)
    # First read all requests that have arrived together, then predict for one after the other. The processor
    # then finds the code and the data of predictions in its caches.
    await asyncio.sleep(0)
    return measured() if cost.is_due() else predict()
