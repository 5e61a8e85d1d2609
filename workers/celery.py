"""The Celery application of the workers."""

from __future__ import annotations

from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_process_init, worker_ready, worker_shutting_down

from app import logs
from app.context import AppContext
from app.jobs.broker import broker_url
from app.jobs.notifier import QUEUE, TASK, Notifier, celery_config
from app.settings import get_settings
from workers import attempt, identity
from workers.maintenance import MaintenanceLoop

celery = Celery("covey")
celery.conf.update(celery_config(broker_url(get_settings())))

_context: AppContext | None = None
_maintenance_loop: MaintenanceLoop | None = None


@celery.task(name=TASK, queue=QUEUE)
def run_job(job_id: str) -> None:
    """Claim a job and run it in a process of its own; return if it cannot be claimed."""
    assert _context is not None, "opened when the pool process started"  # noqa: S101
    attempt.run(_context, job_id, identity.worker_id())


@setup_logging.connect
def _set_up_logging(**_: Any) -> None:
    logs.configure(get_settings())


@worker_process_init.connect
def _open_context(**_: Any) -> None:
    """Open connections after the fork; none may be inherited."""
    global _context  # noqa: PLW0603 - one per pool process
    settings = get_settings()
    _context = AppContext.open(settings, Notifier(broker_url(settings)))


@worker_ready.connect
def _start_maintenance_loop(**_: Any) -> None:
    global _maintenance_loop  # noqa: PLW0603 - one per worker
    _maintenance_loop = MaintenanceLoop(get_settings(), identity.worker_id())
    _maintenance_loop.start()


@worker_shutting_down.connect
def _hand_back(**_: Any) -> None:
    if _maintenance_loop is not None:
        _maintenance_loop.stop()
