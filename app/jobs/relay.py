"""Sends the tasks of queued jobs to the broker, in a thread, so that nothing else waits for a broker.

The API and each worker have a relay. That of the API looks for jobs after a commit that queued one. Those of
the workers also look every second, and send again what the broker has lost. Any number of them can work at
the same time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import structlog
from amqp.exceptions import ChannelError
from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from app.db import open_sessions
from app.db.session import DATABASE_UNAVAILABLE, Database
from app.jobs.celery_config import celery_config
from app.jobs.handing_out import Task, hand_out, mark_sent, perhaps_lost
from app.jobs.kinds import QUEUES
from app.settings import Settings

log = structlog.get_logger()

UNAVAILABLE = (OperationalError, OSError, RedisError)
"""Errors of a broker that is away."""

QUEUE_AHEAD = 2
"""Number of jobs of each Celery queue that are handed to the broker before a worker is free. The others wait
in the database, where urgent ones overtake them."""

PERIOD_SECONDS = 1.0
"""Time between two looks of a worker's relay for jobs of which nothing told it."""

CLOSE_SECONDS = 1.0
"""How long a process that ends waits for tasks that are not sent yet."""


class Relay:
    """Hands jobs to the broker.

    Args:
        settings: settings of the service.

    Attributes:
        away_since: when the broker became unavailable, as ``time.monotonic``; None if it is not.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._celery = Celery("covey", set_as_current=False)
        self._celery.conf.update(celery_config(settings))
        self._db = Database(settings.resolved_database_url())
        self.away_since: float | None = None

    def run_once(self) -> None:
        """Hand out jobs until the queues are full or no job waits."""
        try:
            while tasks := hand_out(self._db, QUEUE_AHEAD):
                self._send(tasks)
        except DATABASE_UNAVAILABLE as error:
            log.warning("relay.database_unavailable", reason=type(error).__name__)

    def heal(self) -> None:
        """Send tasks again if the broker has fewer than it was sent."""
        try:
            lost = perhaps_lost(self._db)
            if self.away_since is not None and not lost:
                self._count(QUEUES[0])  # is it back?
            for queue, tasks in lost.items():
                if self._count(queue) < len(tasks):
                    mark_sent(self._db, tasks)
                    self._send(tasks)
        except DATABASE_UNAVAILABLE as error:
            log.warning("relay.database_unavailable", reason=type(error).__name__)
        except UNAVAILABLE as error:
            self._note(error)

    def _count(self, queue: str) -> int:
        """Return the number of tasks in a queue of the broker."""
        open_sessions.refuse_if_any("a task")
        with self._celery.connection_for_write() as connection:
            channel: Any = connection.default_channel
            try:
                count = int(channel.queue_declare(queue, durable=True, passive=True).message_count)
            except ChannelError:  # with Redis, no empty queue exists
                count = 0
        self.away_since = None
        return count

    def _send(self, tasks: Sequence[Task]) -> None:
        open_sessions.refuse_if_any("a task")
        try:
            for task in tasks:
                self._celery.send_task(task.name, task_id=task.job_id, queue=task.queue, retry=False)
        except UNAVAILABLE as error:
            self._note(error)
        else:
            self.away_since = None

    def _note(self, error: Exception) -> None:
        """Record that the broker is away. What could not be sent is sent when it is back."""
        if self.away_since is None:
            self.away_since = time.monotonic()
            log.warning("relay.broker_unavailable", reason=str(error))

    def close(self) -> None:
        """Close the connections."""
        self._celery.close()
        self._db.close()


class RelayThread:
    """The relay of the API: hands out jobs after each commit that queued one.

    Args:
        settings: settings of the service.
    """

    def __init__(self, settings: Settings) -> None:
        self._relay = Relay(settings)
        self._queued = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._thread.start()

    def notify(self, _job_id: str) -> None:
        """Hand out jobs soon, without waiting for it."""
        self._queued.set()

    def close(self) -> None:
        """Hand out what is queued if the broker is available, then close the connections to it."""
        self._closing = True
        self._queued.set()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        closing = False
        while not closing:
            self._queued.wait()
            self._queued.clear()
            closing = self._closing
            self._relay.run_once()
        self._relay.close()


def relay_forever(relay: Relay, wait: Callable[[float], object], stop: Callable[[], bool]) -> None:
    """Hand out jobs and heal lost tasks until a worker stops.

    Args:
        relay: the relay.
        wait: waits this long, or until a job is queued or started.
        stop: whether the worker stops.
    """
    healed = time.monotonic()
    while not stop():
        relay.run_once()
        if time.monotonic() - healed >= PERIOD_SECONDS:
            relay.heal()
            healed = time.monotonic()
        wait(PERIOD_SECONDS)
