"""A process of Celery's pool: it runs the task of one job at a time.

The job itself runs in a process that is forked from this one, so its memory returns to the system when it
ends, and its end is always noticed.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog
from celery.exceptions import Ignore, SoftTimeLimitExceeded

from app.context import AppContext
from app.db.session import DATABASE_UNAVAILABLE
from app.jobs import queue
from app.server.process_name import name_process
from app.settings import Settings
from workers import attempt, stopping
from workers.requests import Requests

log = structlog.get_logger()


class JobEndedError(Exception):
    """A job failed or was cancelled. Celery shows it; the job's row has the reason."""


@dataclass
class _State:
    """The objects that a process of the pool works with.

    Attributes:
        settings: settings of the service, with the number of processes of this worker.
        requests: pipes to the maintenance.
        worker_id: id under which this worker claims jobs.
        ctx: the context; None in the main process.
    """

    settings: Settings
    requests: Requests
    worker_id: str
    ctx: AppContext | None = None


_state: _State | None = None


def configure(settings: Settings, requests: Requests, worker_id: str) -> None:
    """Set, in the main process, what its pool inherits."""
    global _state  # noqa: PLW0603 - Celery calls functions of modules
    _state = _State(settings, requests, worker_id)


def start() -> None:
    """Prepare this process."""
    state = _configured()
    name_process("pool")
    state.ctx = AppContext.open(state.settings, state.requests)


def requests() -> Requests:
    """Return the pipes to the maintenance."""
    return _configured().requests


def run_job(job_id: str) -> None:
    """Run the job of a task to its end, or release it if the worker stops.

    Nothing happens if the job is not queued any more. If it could not be claimed because the database is
    away, the relay sends its task again.

    Raises:
        JobEndedError: the job failed or was cancelled.
        Ignore: the job has not ended, and another task will run it.
        SystemExit: this process was asked to end.
    """
    state = _configured()
    assert state.ctx is not None, "Celery starts every process of the pool"  # noqa: S101
    end: str | None = None
    with _release_on_sigterm():
        try:
            claim = queue.claim(
                state.ctx.db, job_id, state.worker_id, lease_seconds=state.settings.lease_seconds
            )
            state.requests.wake()  # the queue has room for another task
            if claim is not None:
                end = attempt.run(state.ctx, claim, state.worker_id)
        except DATABASE_UNAVAILABLE as error:
            log.warning("job.claim_failed", job_id=job_id, reason=type(error).__name__)
        except SoftTimeLimitExceeded:
            state.requests.end(job_id, "out_of_time")
            end = "out_of_time"
    state.requests.wake()
    if stopping.terminated():
        raise SystemExit(0)
    if end is None:
        raise Ignore
    if end != "succeeded":
        raise JobEndedError(end)


@contextmanager
def _release_on_sigterm() -> Iterator[None]:
    """Let SIGTERM release the job of this process, which then ends; an idle process ends at once."""
    previous = signal.signal(signal.SIGTERM, lambda *_: stopping.terminate())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _configured() -> _State:
    assert _state is not None, "the worker has been configured"  # noqa: S101
    return _state
