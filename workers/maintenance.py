"""The maintenance of a worker: relay, heartbeat, lost jobs, retention, drift and webhooks, each in a thread.

These periodic tasks share no connection, so neither a slow storage nor a long transaction of one delays the
others. They run in a process of their own, which a guard restarts if it dies, also while Celery waits for the
broker.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache

import structlog

from app.background import PeriodicTask
from app.context import AppContext
from app.health import monitor
from app.jobs.relay import PERIOD_SECONDS, Relay
from app.maintenance import retention
from app.routing.report.drift_events import queue_drift_events
from app.server.child_process import ChildProcess
from app.server.process_name import name_process
from app.server.supervisor import supervise
from app.settings import Settings
from app.webhooks.sender import WebhookSender
from workers import job_kinds, stopping
from workers.heartbeat import Heartbeat
from workers.lost_jobs import requeue_lost_jobs
from workers.monitor import WorkerMonitor
from workers.requests import Requests

log = structlog.get_logger()

DRIFT_SECONDS = 3600.0
"""Time between two comparisons of routed messages with the training."""

RESTART_SECONDS = 1.0
"""Time after which the sender of webhooks starts again after an error."""

STOP_SECONDS = 6.0
"""Time that the maintenance has to record that the worker stops."""


_ready_fd: int | None = None


def report_ready_to(ready_fd: int | None) -> None:
    """Set the file descriptor to write to when the worker is registered."""
    global _ready_fd  # noqa: PLW0603 - Celery starts the maintenance
    _ready_fd = ready_fd


class Guard:
    """The process that restarts the maintenance if it dies, also while Celery waits for the broker.

    Create it in the main process of a worker, which must have neither threads nor connections.

    Args:
        settings: settings of the service.
        requests: pipes from the other processes of the worker.
        worker_id: id of the worker.
    """

    def __init__(self, settings: Settings, requests: Requests, worker_id: str) -> None:
        self._settings = settings
        self._requests = requests
        self._worker_id = worker_id
        self._main_pid = os.getpid()
        self._process = _child("guard", self._guard)
        self.restart_if_dead()

    def restart_if_dead(self) -> None:
        """Fork the process if it does not run."""
        if not stopping.requested():
            self._process.restart_if_dead()

    def stop(self) -> None:
        """Stop the maintenance, which records that the worker stops, and wait until it has ended."""
        stopping.request()
        self._process.stop()

    def _guard(self) -> None:
        """Restart the maintenance whenever it dies, until SIGTERM."""
        name_process("guard")
        # In a terminal, Ctrl-C reaches all processes; the main process then stops the others.
        for number in (signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        supervise([_child("maintenance", self._maintain)])
        stopping.request()

    def _maintain(self) -> None:
        name_process("maintenance")
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        run(self._settings, self._requests, self._worker_id, self._main_pid)


def _child(name: str, run_child: Callable[[], None]) -> ChildProcess:
    return ChildProcess(name, run_child, death_signal=signal.SIGKILL, stop_seconds=STOP_SECONDS)


def run(settings: Settings, requests: Requests, worker_id: str, main_pid: int) -> None:
    """Run the tasks until SIGTERM.

    Args:
        settings: settings of the service.
        requests: pipes from the other processes of the worker.
        worker_id: id of the worker.
        main_pid: id of the worker's main process.
    """
    # The threads inherit the mask, so that only ``sigwait`` receives the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    relay = Relay(settings)
    heartbeat = Heartbeat(settings, worker_id, main_pid, relay, _report_ready)
    heartbeat.start()

    def task(name: str, maintain: Callable[[AppContext], object], every: float) -> PeriodicTask:
        """Return a task with connections of its own."""
        context = cache(lambda: AppContext.open(settings, requests))
        return PeriodicTask(name, lambda: maintain(context()), every=every)

    def relay_jobs() -> None:
        requests.wait(PERIOD_SECONDS)
        relay.tick()

    def requeue(ctx: AppContext) -> None:
        requeue_lost_jobs(ctx, worker_id, heartbeat)

    def end_requested(ctx: AppContext) -> None:
        for job_id, how in requests.ended():
            job_kinds.end_without_worker(ctx, job_id, how)

    def apply_retention(ctx: AppContext) -> None:
        retention.apply_retention(ctx, stop=stopping.requested)

    requests.wake()  # the relay does not wait before it looks for the first time
    PeriodicTask("relay", relay_jobs, every=0.0).start()
    task("lost jobs", requeue, settings.heartbeat_seconds).wake()
    task("requests", end_requested, 0.0).start()
    task("retention", apply_retention, settings.collect_seconds).start()
    task("drift", queue_drift_events, DRIFT_SECONDS).start()
    task("webhooks", _send_events, RESTART_SECONDS).wake()
    state = WorkerMonitor(main_pid, heartbeat, relay)
    with ExitStack() as stack:
        try:
            stack.enter_context(monitor.serve(settings.worker_metrics or None, state.registry, state.reasons))
        except ValueError as error:  # the jobs are more important
            log.error("worker.metrics_not_served", reason=str(error))  # noqa: TRY400 - it has no other cause
        if not stopping.requested():
            signal.sigwait({signal.SIGTERM})
    stopping.request()
    heartbeat.stop()


def _report_ready() -> None:
    if _ready_fd is not None:
        with suppress(OSError):  # an earlier process has reported it, and the pipe is closed
            os.write(_ready_fd, b"\n")


def _send_events(ctx: AppContext) -> None:
    """Send the events of webhooks until the worker stops, or an error in Covey ends the event loop."""
    asyncio.run(WebhookSender(ctx).run(stopping.requested))
