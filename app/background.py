"""A function that a thread of its own calls again and again, in addition to the work of a process.

Every such activity is a ``PeriodicTask``: the heartbeat of a worker, retention, the relay of jobs, the check
of the storage.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError

log = structlog.get_logger()

UNAVAILABLE = (SQLAlchemyError, OSError)
"""Errors of a database, storage or network that is unavailable. All others are errors in Covey."""

MIN_ERROR_SECONDS = 1.0
"""Minimum time between an error and the next call, so that a call that fails at once does not fill a core."""


class PeriodicTask:
    """Call a function in a daemon thread, in regular intervals and when it is woken. Calls never overlap.

    An error does not end the thread. It is logged once, until a call succeeds again.

    Args:
        name: name of the thread, and of the task in the log.
        run: the function.
        every: seconds between the end of a call and the next one; None if only ``wake`` causes calls.
        finish: called once in the thread after the last call.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[], object],
        *,
        every: float | None,
        finish: Callable[[], object] | None = None,
    ) -> None:
        self._name = name
        self._run = run
        self._every = every
        self._finish = finish
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._stopping = False
        self._failing = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, unless it runs or was stopped. The first call follows after one interval."""
        with self._lock:
            if self._thread is None and not self._stopping:
                thread = threading.Thread(target=self._repeat, name=self._name, daemon=True)
                thread.start()
                self._thread = thread

    def wake(self) -> None:
        """Call the function now, or again after the current call. Start the thread if it does not run."""
        self._woken.set()
        self.start()

    def stop(self, wait_seconds: float | None = None) -> bool:
        """Let the thread end after its current call and ``finish``. Nothing starts it again.

        Args:
            wait_seconds: how long to wait for the thread; None for no limit.

        Returns:
            whether the thread has ended.
        """
        with self._lock:
            self._stopping = True
        self._woken.set()
        if self._thread is None:
            return True
        self._thread.join(wait_seconds)
        return not self._thread.is_alive()

    def _repeat(self) -> None:
        while not self._stopping:
            self._woken.wait(self._pause())
            # Cleared before the call and before the check: nothing that happens from now on is missed.
            self._woken.clear()
            if not self._stopping:
                self._call(self._run)
        if self._finish is not None:
            self._call(self._finish)

    def _pause(self) -> float | None:
        if self._every is None or not self._failing:
            return self._every
        return max(self._every, MIN_ERROR_SECONDS)

    def _call(self, function: Callable[[], object]) -> None:
        try:
            function()
        except UNAVAILABLE as error:
            if not self._failing:
                log.warning("background.failed", task=self._name, reason=type(error).__name__)
            self._failing = True
        except Exception:
            # An unforeseen error must not end the task, which the process needs until it stops.
            if not self._failing:
                log.exception("background.internal_error", task=self._name)
            self._failing = True
        else:
            if self._failing:
                log.info("background.recovered", task=self._name)
            self._failing = False
