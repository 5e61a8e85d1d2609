"""Notifies the workers, through the broker, that a job is queued.

A notification may be lost, repeated or late without harm: the job is the row in the database, and the workers
poll the database. A notification only makes an idle worker look earlier.
"""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from typing import Any

import structlog
from celery import Celery
from kombu.exceptions import OperationalError

from app.db import open_sessions

log = structlog.get_logger()

TASK = "covey.job_queued"
"""Name of the only task of the workers; its only argument is the id of a job."""

QUEUE = "covey"

MAX_PENDING = 1000
"""Maximum number of notifications that wait to be sent."""

CLOSE_SECONDS = 1.0
"""How long a process that ends waits for notifications that are not sent yet."""


def celery_config(broker_url: str) -> dict[str, Any]:
    """Return the Celery configuration that the API and the workers share."""
    return {
        "broker_url": broker_url,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_connection_timeout": 2,
        "broker_transport_options": _transport_options(broker_url),
        # The database holds the job queue, so Celery needs neither results nor redelivery.
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_acks_late": False,
        "task_default_queue": QUEUE,
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_prefetch_multiplier": 1,
        "worker_hijack_root_logger": False,
        "worker_send_task_events": False,
        # Nothing uses remote control, and its queues would conflict between workers of one host name.
        "worker_enable_remote_control": False,
        "enable_utc": True,
    }


def _transport_options(broker_url: str) -> dict[str, Any]:
    """Return time limits, so that an unavailable broker blocks nothing for long."""
    if broker_url.startswith("amqp"):
        # No read timeout: a worker may wait for a message for any length of time.
        return {"max_retries": 0, "write_timeout": 5}
    return {"max_retries": 0, "socket_connect_timeout": 2, "socket_timeout": 5, "socket_keepalive": True}


class Notifier:
    """Sends notifications in a thread, so that no caller waits for a slow or unavailable broker.

    Args:
        broker_url: URL of the broker, as Celery reads it.
    """

    def __init__(self, broker_url: str) -> None:
        self._celery = Celery("covey", set_as_current=False)
        self._celery.conf.update(celery_config(broker_url))
        self._pending: queue.Queue[str | None] = queue.Queue(MAX_PENDING)
        self._thread = threading.Thread(target=self._send_pending, name="notifier", daemon=True)
        self._thread.start()

    def notify(self, job_id: str) -> None:
        """Send one notification soon, without waiting for it."""
        # Many pending notifications wake every worker, so one more is not necessary.
        with suppress(queue.Full):
            self._pending.put_nowait(job_id)

    def close(self) -> None:
        """Send the pending notifications if the broker is available, then close the connections to it."""
        with suppress(queue.Full):
            self._pending.put_nowait(None)
        self._thread.join(CLOSE_SECONDS)
        self._celery.close()

    def _send_pending(self) -> None:
        while (job_id := self._pending.get()) is not None:
            if not self._send(job_id) and not self._drop_pending():
                return

    def _send(self, job_id: str) -> bool:
        """Return whether the broker accepted the notification."""
        open_sessions.refuse_if_any("a notification")
        try:
            self._celery.send_task(TASK, args=[job_id], queue=QUEUE, retry=False)
        except (OperationalError, OSError) as error:
            log.warning("notifier.undelivered", job_id=job_id, reason=str(error))
            return False
        return True

    def _drop_pending(self) -> bool:
        """Drop what is pending: the workers poll for these jobs.

        Returns:
            False if the notifier is closing.
        """
        while not self._pending.empty():
            if self._pending.get() is None:
                return False
        return True
