"""The doorbell: tells the workers, through the broker, that a job waits.

A ring may be lost, repeated or late without harm: the row in the database is the job, and every worker
looks for rows that nobody picked up.
"""

from __future__ import annotations

import queue
import threading
from typing import Any

import structlog
from celery import Celery
from kombu.exceptions import OperationalError

log = structlog.get_logger()

TASK = "covey.run_job"
"""The one task of the workers; its one argument is a job's id."""

QUEUE = "covey"

CLOSE_SECONDS = 1.0
"""How long the end of a process waits for rings that are under way."""


def celery_config(broker_url: str) -> dict[str, Any]:
    """What both ends of the broker agree on."""
    return {
        "broker_url": broker_url,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_connection_timeout": 2,
        "broker_transport_options": _transport_options(broker_url),
        # The database is the ledger: results and redelivery are none of the broker's business.
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_acks_late": False,
        "task_default_queue": QUEUE,
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_prefetch_multiplier": 1,
        "worker_hijack_root_logger": False,
        "worker_send_task_events": False,
        # Nobody asks workers anything, and their queues for it would keep two from sharing a host's name.
        "worker_enable_remote_control": False,
        "enable_utc": True,
    }


def _transport_options(broker_url: str) -> dict[str, Any]:
    """What keeps a broker that is away from holding anybody up."""
    if broker_url.startswith("amqp"):
        # No limit on reading: a worker may wait for a message for as long as it likes.
        return {"max_retries": 0, "write_timeout": 5}
    return {"max_retries": 0, "socket_connect_timeout": 2, "socket_timeout": 5, "socket_keepalive": True}


class Bell:
    """Rings for jobs through the broker.

    Args:
        broker_url: Celery URL.
    """

    def __init__(self, broker_url: str) -> None:
        self._celery = Celery("covey", set_as_current=False)
        self._celery.conf.update(celery_config(broker_url))

    def ring(self, job_id: str) -> None:
        """Ring once. A broker that does not answer is no error: a worker's own search finds the job."""
        self._is_heard(job_id)

    def close(self) -> None:
        """Close the connections to the broker."""
        self._celery.close()

    def _is_heard(self, job_id: str) -> bool:
        try:
            self._celery.send_task(TASK, args=[job_id], queue=QUEUE, retry=False)
        except (OperationalError, OSError) as error:
            log.warning("bell.unheard", job_id=job_id, reason=str(error))
            return False
        return True


class BellAside(Bell):
    """Rings in a thread of its own: no request waits for a broker that takes its time, or never answers.

    Args:
        broker_url: Celery URL.
    """

    def __init__(self, broker_url: str) -> None:
        super().__init__(broker_url)
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._ring_on, name="bell", daemon=True)
        self._thread.start()

    def ring(self, job_id: str) -> None:
        """Ring once, soon."""
        self._waiting.put(job_id)

    def close(self) -> None:
        """Ring what waits, if the broker answers, and close the connections to it."""
        self._waiting.put(None)
        self._thread.join(CLOSE_SECONDS)
        super().close()

    def _ring_on(self) -> None:
        while (job_id := self._waiting.get()) is not None:
            if not self._is_heard(job_id) and not self._forget():
                return

    def _forget(self) -> bool:
        """Drop what has come meanwhile: by the time the broker is back, the workers have found it.

        Returns:
            whether to ring on.
        """
        while not self._waiting.empty():
            if self._waiting.get() is None:
                return False
        return True
