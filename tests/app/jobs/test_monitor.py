"""A worker serves its metrics and its health."""

from __future__ import annotations

import os
from dataclasses import dataclass

import httpx
import pytest
from production import free_port
from waiting import wait_for

from app.context import AppContext
from app.health import monitor
from app.health.service import HEARTBEAT_SECONDS
from app.server.process_name import descendants
from workers.heartbeat import Heartbeat
from workers.monitor import WorkerMonitor


@dataclass
class FakeBroker:
    """A broker that a test makes unavailable."""

    unavailable_since: float | None = None


def test_a_worker_reports_whether_it_reaches_the_database_and_the_broker(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = FakeBroker()
    heartbeat = Heartbeat(ctx.settings, "wrk_1", os.getpid(), broker)
    state = WorkerMonitor(os.getpid(), heartbeat, broker)
    port = free_port()
    with monitor.serve(f"127.0.0.1:{port}", state.registry, state.reasons):
        url = f"http://127.0.0.1:{port}"
        heartbeat.beat()
        health = httpx.get(f"{url}/health")
        assert (health.status_code, health.json()) == (200, {"status": "ok", "reasons": {}})
        metrics = httpx.get(f"{url}/metrics").text
        assert "covey_worker_broker_unavailable_seconds 0.0" in metrics
        assert "process_resident_memory_bytes" in metrics
        broker.unavailable_since = 0.0
        monkeypatch.setattr(heartbeat, "age", lambda: HEARTBEAT_SECONDS + 1)
        health = httpx.get(f"{url}/health")
        assert (health.status_code, set(health.json()["reasons"])) == (503, {"database", "broker"})
        assert httpx.get(f"{url}/other").status_code == 404


def test_descendants_are_children_and_their_children() -> None:
    pid = os.fork()
    if pid == 0:
        child = os.fork()
        os.read(os.pipe()[0], 1) if child == 0 else os.waitpid(child, 0)
        os._exit(0)
    found = wait_for(
        lambda: [child for child in descendants(os.getpid()) if child in descendants(pid)] or None,
        what="a grandchild",
    )
    assert pid in descendants(os.getpid())
    for child in found:
        os.kill(child, 9)
    os.waitpid(pid, 0)


@pytest.mark.parametrize("address", ["9100", ":9100", "127.0.0.1:x", "127.0.0.1:99999"])
def test_an_address_that_cannot_be_used_is_refused(ctx: AppContext, address: str) -> None:
    state = WorkerMonitor(os.getpid(), Heartbeat(ctx.settings, "wrk_1", 1, FakeBroker()), FakeBroker())
    with (
        pytest.raises(ValueError, match=r"address|cannot listen"),
        monitor.serve(address, state.registry, state.reasons),
    ):
        pass
