"""The Celery process of a worker: it receives notifications from the broker and wakes the slots.

It never touches the database or a job. While the broker is unavailable, this process waits for it, and the
slots find their jobs by polling.
"""

from __future__ import annotations

from typing import Any

from celery import Celery
from celery.signals import setup_logging

from app import logs
from app.jobs.broker import broker_url
from app.jobs.notifier import QUEUE, TASK, celery_config
from app.settings import Settings
from workers.wakeups import Wakeups


def run(settings: Settings, wakeups: Wakeups) -> None:
    """Receive notifications until the process is killed."""
    celery = Celery("covey")
    celery.conf.update(celery_config(broker_url(settings)))

    @setup_logging.connect
    def set_up_logging(**_: Any) -> None:
        logs.configure(settings)

    @celery.task(name=TASK, queue=QUEUE)
    def wake_slot(_job_id: str) -> None:
        wakeups.wake()

    celery.worker_main(
        [
            "--quiet",  # its banner would stand between the lines of the log
            "worker",
            "--pool=solo",
            f"--loglevel={settings.log_level}",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
    )
