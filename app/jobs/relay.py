"""Send the tasks of queued jobs to the broker, in a thread, so that nothing else waits for a broker.

The API and each worker have a relay. That of the API looks for jobs after a commit that queued one. Those of
the workers also look every second, and send again what the broker has lost. Any number of them can work at
the same time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import structlog
from amqp.exceptions import ChannelError
from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from app.background import PeriodicTask
from app.db import open_sessions
from app.db.session import Database
from app.jobs.celery_config import celery_config
from app.jobs.handing_out import Task, hand_out, mark_sent, perhaps_lost
from app.jobs.kinds import QUEUES
from app.settings import Settings

log = structlog.get_logger()

UNAVAILABLE = (OperationalError, OSError, RedisError)
"""Errors of an unavailable broker."""

QUEUE_AHEAD = 2
"""Number of jobs of each Celery queue that are handed to the broker before a worker is free. The others wait
in the database, where urgent ones overtake them."""

PERIOD_SECONDS = 1.0
"""Time between two looks of a worker's relay for jobs of which nothing told it."""

CLOSE_SECONDS = 1.0
"""How long a process that ends waits for tasks that are not sent yet."""


class Relay:
    """Hand jobs to the broker.

    Args:
        settings: settings of the service.

    Attributes:
        unavailable_since: when the broker became unavailable, as ``time.monotonic``; None if it is not.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._celery = Celery("covey", set_as_current=False)
        self._celery.conf.update(celery_config(settings))
        self._db = Database(settings.resolved_database_url())
        self.unavailable_since: float | None = None
        self._healed_at = time.monotonic()

    def run_once(self) -> None:
        """Hand out jobs until the queues are full or no job waits.

        Raises:
            SQLAlchemyError: the database is unavailable.
        """
        while tasks := hand_out(self._db, QUEUE_AHEAD):
            self._send(tasks)

    def tick(self) -> None:
        """Hand out jobs, and send lost tasks again if it is time to look for them.

        Raises:
            SQLAlchemyError: the database is unavailable.
        """
        self.run_once()
        if time.monotonic() - self._healed_at >= PERIOD_SECONDS:
            self.heal()
            self._healed_at = time.monotonic()

    def heal(self) -> None:
        """Send tasks again if the broker has fewer than it was sent.

        Raises:
            SQLAlchemyError: the database is unavailable.
        """
        try:
            lost = perhaps_lost(self._db)
            if self.unavailable_since is not None and not lost:
                self._count(QUEUES[0])  # is it back?
            for queue, tasks in lost.items():
                if self._count(queue) < len(tasks):
                    mark_sent(self._db, tasks)
                    self._send(tasks)
        except UNAVAILABLE as error:
            self._record(error)

    def _count(self, queue: str) -> int:
        """Return the number of tasks in a queue of the broker."""
        open_sessions.refuse_if_any("a task")
        with self._celery.connection_for_write() as connection:
            channel: Any = connection.default_channel
            try:
                count = int(channel.queue_declare(queue, durable=True, passive=True).message_count)
            except ChannelError:  # with Redis, no empty queue exists
                count = 0
        self.unavailable_since = None
        return count

    def _send(self, tasks: Sequence[Task]) -> None:
        open_sessions.refuse_if_any("a task")
        try:
            for task in tasks:
                self._celery.send_task(task.name, task_id=task.job_id, queue=task.queue, retry=False)
        except UNAVAILABLE as error:
            self._record(error)
        else:
            self.unavailable_since = None

    def _record(self, error: Exception) -> None:
        """Record that the broker is unavailable. What could not be sent is sent when it is available."""
        if self.unavailable_since is None:
            self.unavailable_since = time.monotonic()
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
        self._task = PeriodicTask("relay", self._relay.run_once, every=None, finish=self._finish)
        self._task.start()

    def notify(self, _job_id: str) -> None:
        """Hand out jobs soon, without waiting for it."""
        self._task.wake()

    def close(self) -> None:
        """Hand out what is queued if the broker is available, then close the connections to it."""
        self._task.stop(CLOSE_SECONDS)

    def _finish(self) -> None:
        try:
            self._relay.run_once()
        finally:
            self._relay.close()
