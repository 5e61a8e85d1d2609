"""The Celery application: ``celery -A workers worker`` runs the jobs, ``-Q`` names the queues.

The main process of a worker is Celery's, and has neither threads nor a connection to the database. It forks
the maintenance of the worker and Celery's pool. Importing this module starts nothing.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import Any

from celery import Celery, bootsteps, signals
from celery.exceptions import TimeLimitExceeded

from app import logs
from app.db import schema
from app.db.session import DATABASE_UNAVAILABLE, make_engine, unavailable_reason
from app.ids import new_id
from app.jobs.celery_config import celery_config
from app.settings import Settings, get_settings
from workers import pool_process, stopping
from workers.maintenance import Guard
from workers.requests import Requests

app = Celery("covey", include=["workers.tasks"])
app.add_defaults(lambda: celery_config(get_settings()))

STOP_SECONDS = 12
"""Time after which a worker that stops ends also if the broker accepts connections and is mute."""

TIMER_SECONDS = 0.25
"""Time between two looks at the maintenance."""


class Maintenance(bootsteps.StartStopStep):
    """Check the database and fork the maintenance of the worker, before Celery forks the pool."""

    requires = ("celery.worker.components:Timer",)

    def create(self, worker: Any) -> None:
        """Fork the maintenance; an error ends the worker."""
        settings = get_settings()
        _require_database(settings)
        slots = max([worker.concurrency, *(worker.autoscale or ())])
        settings = settings.model_copy(update={"worker_concurrency": slots})
        # A garbage collection would copy the memory that the forked processes share with this one.
        gc.collect()
        gc.freeze()
        requests, worker_id = Requests(), new_id("wrk")
        pool_process.configure(settings, requests, worker_id)
        self._guard = Guard(settings, requests, worker_id)

    def start(self, worker: Any) -> None:
        """Look often whether the maintenance was killed. Celery sees a signal to stop at its next timer."""
        worker.timer.call_repeatedly(TIMER_SECONDS, self._guard.restart_if_dead)

    def stop(self, _worker: Any) -> None:
        """Stop the maintenance."""
        self._guard.stop()

    def terminate(self, _worker: Any) -> None:
        """Stop the maintenance, also if the worker does not wait for its jobs."""
        self._guard.stop()


app.steps["worker"].add(Maintenance)


def _require_database(settings: Settings) -> None:
    engine = make_engine(settings.resolved_database_url())
    try:
        schema.require_head(engine)
    except schema.SchemaError as error:
        sys.exit(f"covey: {error}")
    except DATABASE_UNAVAILABLE as error:
        sys.exit(f"covey: {unavailable_reason(error)}")
    finally:
        engine.dispose()


@signals.setup_logging.connect
def set_up_logging(**_: Any) -> None:
    """Log as the other processes do."""
    logs.configure(get_settings())


@signals.worker_process_init.connect
def start_pool_process(**_: Any) -> None:
    """Prepare a process of the pool."""
    pool_process.start()


@signals.worker_process_shutdown.connect
def end_pool_process(exitcode: int, **_: Any) -> None:
    """End a process of the pool when the worker stops: Celery's own end of it sleeps for a second."""
    if stopping.worker_stops():
        os._exit(exitcode)


@signals.worker_shutting_down.connect
def stop(**_: Any) -> None:
    """Let the processes of the pool release their jobs at once, instead of waiting until they end."""
    stopping.request()
    # The jobs are released by then, so it is no failure.
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.alarm(STOP_SECONDS)


@signals.task_revoked.connect
def cancel_revoked(request: Any, **_: Any) -> None:
    """Cancel the job of a revoked task."""
    pool_process.requests().end(request.id, "cancelled")


@signals.task_failure.connect
def fail_out_of_time(task_id: str, exception: BaseException, **_: Any) -> None:
    """End the job of a task that exceeded Celery's hard time limit, which has killed its process."""
    if isinstance(exception, TimeLimitExceeded):
        pool_process.requests().end(task_id, "out_of_time")
