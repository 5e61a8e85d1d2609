"""Ringing for jobs while the broker is well, or takes connections and never answers: no request waits."""

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

from app.jobs.notifier import QUEUE, TASK, BackgroundNotifier


class Recording(BackgroundNotifier):
    """Tells what became of every ring, and lets a test hold them up."""

    def __init__(self, broker_url: str) -> None:
        self.notified: list[tuple[str, bool]] = []
        self.begun = threading.Event()
        self.let_go = threading.Event()
        self.let_go.set()
        super().__init__(broker_url)

    def _send(self, job_id: str) -> bool:
        self.begun.set()
        self.let_go.wait(LIMIT_SECONDS)
        heard = super()._send(job_id)
        self.notified.append((job_id, heard))
        return heard


@contextmanager
def mute() -> Iterator[str]:
    """A server that takes connections and says nothing; gives host and port."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_mute_broker_holds_nobody_up_and_what_came_meanwhile_is_left_to_the_workers(scheme: str) -> None:
    with mute() as address:
        notifier = Recording(f"{scheme}://{address}/")
        notifier.let_go.clear()
        notifier.notify("first")
        assert notifier.begun.wait(LIMIT_SECONDS)
        for n in range(1000):
            notifier.notify(f"meanwhile {n}")
        assert notifier.notified == [], "whoever rings goes on before anybody has heard"
        notifier.let_go.set()
        wait_for(lambda: True if notifier.notified else None, what="the broker to be given up")
        wait_for(lambda: True if notifier._pending.empty() else None, what="the others to be dropped")
        notifier.close()
    assert notifier.notified == [("first", False)]


def test_rings_reach_the_broker_in_order_and_the_last_ones_before_the_end(tmp_path: Path) -> None:
    jobs = [f"job_{n}" for n in range(50)]
    with production.valkey(tmp_path) as url, redis.Redis.from_url(url) as client:
        notifier = BackgroundNotifier(url)
        for job in jobs:
            notifier.notify(job)
        notifier.close()
        messages = [json.loads(message) for message in reversed(client.lrange(QUEUE, 0, -1))]
    assert [message["headers"]["task"] for message in messages] == [TASK] * len(jobs)
    assert [message["headers"]["argsrepr"] for message in messages] == [f"['{job}']" for job in jobs]


def test_a_broker_that_is_gone_is_no_error() -> None:
    notifier = Recording(f"redis://127.0.0.1:{production.free_port()}/0")
    notifier.notify("job")
    wait_for(lambda: True if notifier.notified else None, what="the ring to fail")
    notifier.close()
    assert notifier.notified == [("job", False)]
