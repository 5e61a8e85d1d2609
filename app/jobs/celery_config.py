"""The configuration of Celery that the API and the workers share."""

from __future__ import annotations

from typing import Any

from kombu import Queue

from app.jobs.broker import broker_url
from app.jobs.kinds import QUEUE_OF, QUEUES
from app.settings import Settings

CONNECT_SECONDS = 2.0
"""How long a process waits for a connection to the broker."""

RESPONSE_SECONDS = 5.0
"""How long a process waits until the broker responds, or reads."""


def celery_config(settings: Settings) -> dict[str, Any]:
    """Return the configuration. The database holds state and results of the jobs, so Celery keeps none."""
    url = broker_url(settings)
    is_redis = url.startswith("redis")
    return {
        "broker_url": url,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_connection_timeout": CONNECT_SECONDS,
        "broker_transport_options": _transport_options(url),
        "task_queues": [Queue(name) for name in QUEUES],
        "task_default_queue": "training",
        "task_routes": {f"covey.{kind}": {"queue": name} for kind, name in QUEUE_OF.items()},
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        # A lease in the database detects lost jobs. A late acknowledgement would end workers: RabbitMQ closes
        # the connection if one takes longer than half an hour.
        "task_acks_late": False,
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_concurrency": settings.worker_concurrency,
        "worker_prefetch_multiplier": 1,
        # A busy worker would keep the next tasks to itself. Only Redis can do without.
        "worker_disable_prefetch": is_redis,
        "worker_pool": "prefork",
        "worker_pool_start_method": "fork",
        # A new process may wait for a CPU, or for the database.
        "worker_proc_alive_timeout": 60.0,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_enable_remote_control": settings.remote_control,
        "worker_send_task_events": settings.remote_control,
        "task_send_sent_event": settings.remote_control,
        "enable_utc": True,
    }


def _transport_options(url: str) -> dict[str, Any]:
    """Return time limits, so that an unavailable broker blocks nothing for long."""
    if url.startswith("amqp"):
        # No read timeout: a worker may wait for a message for any length of time.
        return {"max_retries": 0, "write_timeout": RESPONSE_SECONDS}
    return {
        "max_retries": 0,
        "socket_connect_timeout": CONNECT_SECONDS,
        "socket_timeout": RESPONSE_SECONDS,
        "socket_keepalive": True,
        # The queues in the order of their names in the option -Q, or of ``QUEUES``.
        "queue_order_strategy": "priority",
    }
