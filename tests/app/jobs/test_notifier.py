"""Notifications with an available, an unresponsive and an unavailable broker. Requests never wait."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import production
import pytest
import redis
from waiting import LIMIT_SECONDS, wait_for

from app.jobs.notifier import MAX_PENDING, QUEUE, TASK, Notifier


class RecordingNotifier(Notifier):
    """Records the result of every notification. A test can block sending."""

    def __init__(self, broker_url: str) -> None:
        self.results: list[tuple[str, bool]] = []
        self.started = threading.Event()
        self.unblocked = threading.Event()
        self.unblocked.set()
        super().__init__(broker_url)

    def _send(self, job_id: str) -> bool:
        self.started.set()
        self.unblocked.wait(LIMIT_SECONDS)
        delivered = super()._send(job_id)
        self.results.append((job_id, delivered))
        return delivered


@contextmanager
def unresponsive_server() -> Iterator[str]:
    """Run a server that accepts connections and never responds. Yield its host and port."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_an_unresponsive_broker_blocks_no_caller_and_pending_notifications_are_dropped(scheme: str) -> None:
    with unresponsive_server() as address:
        notifier = RecordingNotifier(f"{scheme}://{address}/")
        notifier.unblocked.clear()
        notifier.notify("first")
        assert notifier.started.wait(LIMIT_SECONDS)
        for n in range(1000):
            notifier.notify(f"pending {n}")
        assert notifier.results == [], "the caller continues before anything is sent"
        notifier.unblocked.set()
        wait_for(lambda: True if notifier.results else None, what="the first notification to fail")
        wait_for(
            lambda: True if notifier._pending.empty() else None,
            what="the pending notifications to be dropped",
        )
        notifier.close()
    assert notifier.results == [("first", False)]


def test_notifications_are_sent_in_order_and_all_before_closing(tmp_path: Path) -> None:
    jobs = [f"job_{n}" for n in range(50)]
    with production.valkey(tmp_path) as url, redis.Redis.from_url(url) as client:
        notifier = Notifier(url)
        for job in jobs:
            notifier.notify(job)
        notifier.close()
        messages = [json.loads(message) for message in reversed(client.lrange(QUEUE, 0, -1))]
    assert [message["headers"]["task"] for message in messages] == [TASK] * len(jobs)
    assert [message["headers"]["argsrepr"] for message in messages] == [f"['{job}']" for job in jobs]


def test_a_caller_never_waits_for_a_place_among_the_pending_notifications() -> None:
    with unresponsive_server() as address:
        notifier = RecordingNotifier(f"redis://{address}/")
        notifier.unblocked.clear()
        for n in range(2 * MAX_PENDING):
            notifier.notify(f"job {n}")
        assert notifier._pending.full()
        notifier.unblocked.set()
        notifier.close()


def test_an_unavailable_broker_is_no_error() -> None:
    notifier = RecordingNotifier(f"redis://127.0.0.1:{production.free_port()}/0")
    notifier.notify("job")
    wait_for(lambda: True if notifier.results else None, what="the notification to fail")
    notifier.close()
    assert notifier.results == [("job", False)]
