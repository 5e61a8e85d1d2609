"""A periodic task runs until it is stopped, whatever its function does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest
from captured_logs import captured_logs
from sqlalchemy import exc
from waiting import LIMIT_SECONDS

from app import background
from app.background import PeriodicTask

NEVER = 10 * LIMIT_SECONDS
"""An interval that no test waits for."""

Start = Callable[..., PeriodicTask]


@pytest.fixture
def task() -> Iterator[Start]:
    """Creates tasks, which end with the test."""
    tasks: list[PeriodicTask] = []

    def create(
        run: Callable[[], object], *, every: float | None, finish: Callable[[], object] | None = None
    ) -> PeriodicTask:
        tasks.append(PeriodicTask("test", run, every=every, finish=finish))
        return tasks[-1]

    yield create
    for each in tasks:
        assert each.stop(LIMIT_SECONDS)


class Calls:
    """A function that reports each call, and continues or fails when the test says so."""

    def __init__(self) -> None:
        self.begun: SimpleQueue[threading.Thread] = SimpleQueue()
        self.results: SimpleQueue[Exception | None] = SimpleQueue()
        self._released = False

    def __call__(self) -> None:
        if self._released:
            return
        self.begun.put(threading.current_thread())
        error = self.results.get(timeout=LIMIT_SECONDS)
        if error is not None:
            raise error

    def await_call(self) -> threading.Thread:
        """Wait until a call has begun, and return its thread."""
        return self.begun.get(timeout=LIMIT_SECONDS)

    def complete(self, error: Exception | None = None) -> None:
        """Let the call end."""
        self.results.put(error)

    def release(self) -> None:
        """Let the current call and all later ones end."""
        self._released = True
        self.complete()


def test_it_is_called_at_intervals(task: Start) -> None:
    calls = Calls()
    task(calls, every=0.0).start()
    for _ in range(3):
        assert calls.await_call().name == "test"
        calls.complete()
    calls.await_call()
    calls.release()


def test_the_first_call_follows_after_one_interval_and_wake_does_not_wait_for_it(task: Start) -> None:
    calls = Calls()
    each = task(calls, every=NEVER)
    each.start()
    assert each.stop(LIMIT_SECONDS)
    assert calls.begun.empty()
    woken = task(calls, every=NEVER)
    woken.wake()
    calls.await_call()
    calls.complete()


def test_without_an_interval_only_wake_causes_calls(task: Start) -> None:
    calls = Calls()
    each = task(calls, every=None)
    for _ in range(2):
        each.wake()
        calls.await_call()
        calls.complete()
    assert each.stop(LIMIT_SECONDS)
    assert calls.begun.empty()


def test_requests_during_a_call_cause_one_more_call(task: Start) -> None:
    calls = Calls()
    each = task(calls, every=None)
    each.wake()
    calls.await_call()
    for _ in range(5):
        each.wake()
    calls.complete()
    calls.await_call()
    calls.complete()
    assert each.stop(LIMIT_SECONDS)
    assert calls.begun.empty()


def test_it_finishes_after_the_current_call_and_is_never_started_again(task: Start) -> None:
    calls = Calls()
    order: list[str] = []
    each = task(calls, every=0.0, finish=lambda: order.append("finished"))
    each.start()
    thread = calls.await_call()
    assert not each.stop(0.0), "the call has not ended"
    assert order == []
    calls.complete()
    assert each.stop()
    each.start()
    each.wake()
    assert order == ["finished"]
    assert not thread.is_alive()
    assert calls.begun.empty()


def test_a_task_that_was_never_started_has_nothing_to_finish(task: Start) -> None:
    order: list[str] = []
    each = task(lambda: order.append("run"), every=0.0, finish=lambda: order.append("finished"))
    assert each.stop()
    each.wake()
    assert order == []


def test_errors_are_logged_once_until_a_call_succeeds(task: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MIN_ERROR_SECONDS", 0.0)
    calls = Calls()
    unavailable = exc.OperationalError("SELECT 1", {}, Exception("gone"))
    with captured_logs(background) as logs:
        each = task(calls, every=0.0)
        each.start()
        for error in (unavailable, OSError(), unavailable, None, None, ValueError("a bug"), unavailable):
            calls.await_call()
            calls.complete(error)
        calls.await_call()
        calls.release()
        assert each.stop(LIMIT_SECONDS)
    assert [(line["event"], line["task"], line["log_level"]) for line in logs] == [
        ("background.failed", "test", "warning"),
        ("background.recovered", "test", "info"),
        ("background.internal_error", "test", "error"),
        ("background.recovered", "test", "info"),
    ]
    assert logs[0]["reason"] == "OperationalError"


def test_a_call_that_fails_at_once_is_not_repeated_without_a_pause(
    task: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "MIN_ERROR_SECONDS", 0.05)
    calls = Calls()
    each = task(calls, every=0.0)
    each.start()
    begun = []
    for _ in range(2):
        calls.await_call()
        begun.append(time.monotonic())
        if len(begun) == 1:
            calls.complete(OSError())
    calls.release()
    assert begun[1] - begun[0] >= background.MIN_ERROR_SECONDS


def test_an_error_of_the_last_call_is_logged(task: Start) -> None:
    def fail() -> None:
        raise OSError

    with captured_logs(background) as logs:
        each = task(lambda: None, every=NEVER, finish=fail)
        each.start()
        assert each.stop(LIMIT_SECONDS)
    assert [line["event"] for line in logs] == ["background.failed"]
