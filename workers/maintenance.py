"""The maintenance process of a worker: heartbeat, lost jobs, retention, drift and webhooks, each in a thread.

Threads share no connection, so neither a slow storage nor a long transaction of one delays the others.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.context import AppContext
from app.maintenance import retention
from app.routing.report.drift_events import queue_drift_events
from app.settings import Settings
from app.webhooks.delivery import Deliverer
from workers import stopping
from workers.heartbeat import Heartbeat
from workers.lost_jobs import requeue_lost_jobs
from workers.wakeups import Wakeups

log = structlog.get_logger()

DRIFT_SECONDS = 3600.0
"""Time between two comparisons of routed messages with the training."""


def run(
    settings: Settings, worker_id: str, worker_pid: int, wakeups: Wakeups, on_registered: Callable[[], None]
) -> None:
    """Run the threads until SIGTERM.

    Args:
        settings: settings of the service.
        worker_id: id of this worker.
        worker_pid: id of its main process.
        wakeups: wakes a slot for each job that is queued again.
        on_registered: called after the first heartbeat.
    """
    # The threads inherit the mask, so that only ``sigwait`` receives the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    # If a thread dies, the supervisor starts a new process with all threads.
    threading.excepthook = _end_process
    heartbeat = Heartbeat(settings, worker_id, worker_pid, on_registered)
    heartbeat.start()

    def requeue(ctx: AppContext) -> None:
        requeue_lost_jobs(ctx, worker_id, heartbeat)

    def apply_retention(ctx: AppContext) -> None:
        retention.apply_retention(ctx, stop=stopping.requested)

    beats, collects = settings.heartbeat_seconds, settings.collect_seconds
    _start_thread("lost jobs", _repeat, settings, wakeups, requeue, 0.0, beats)
    _start_thread("retention", _repeat, settings, wakeups, apply_retention, collects, collects)
    _start_thread("drift", _repeat, settings, wakeups, queue_drift_events, DRIFT_SECONDS, DRIFT_SECONDS)
    _start_thread("webhooks", _send_events, settings, wakeups)
    if not stopping.requested():
        signal.sigwait({signal.SIGTERM})
    stopping.request()
    heartbeat.stop()


def _start_thread(name: str, target: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=target, args=arguments, name=name, daemon=True).start()


def _repeat(
    settings: Settings,
    wakeups: Wakeups,
    do: Callable[[AppContext], None],
    first_delay: float,
    delay: float,
) -> None:
    """Do one kind of maintenance for ever, with connections of its own."""
    ctx: AppContext | None = None
    time.sleep(first_delay)
    while True:
        try:
            ctx = ctx or AppContext.open(settings, wakeups)
            do(ctx)
        except (SQLAlchemyError, OSError) as error:
            name = threading.current_thread().name
            log.warning("maintenance.failed", task=name, reason=type(error).__name__)
        time.sleep(delay)


def _send_events(settings: Settings, wakeups: Wakeups) -> None:
    """Send the events of webhooks. The process ends without waiting for attempts: they are repeated."""
    asyncio.run(Deliverer(AppContext.open(settings, wakeups)).run(stopping.requested))


def _end_process(arguments: threading.ExceptHookArgs) -> None:
    log.error("maintenance.internal_error", exc_info=arguments.exc_value)
    sys.stderr.flush()
    os._exit(1)
