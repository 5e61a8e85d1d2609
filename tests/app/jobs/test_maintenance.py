"""Nothing that a worker does besides can hold up its heartbeat."""

from __future__ import annotations

import mmap
import os
import signal
import threading
from collections.abc import Callable
from datetime import datetime

import pytest
from sqlalchemy import select
from stack import children, name_of
from waiting import wait_for

from app.context import AppContext
from app.db import tables
from app.maintenance import retention
from app.settings import Settings
from workers import maintenance, stopping
from workers.requests import Requests

# The forked process only uses its own database connections and exits.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


def wait_forever(*_: object, **__: object) -> None:
    threading.Event().wait()


def fail(*_: object, **__: object) -> None:
    raise ValueError("an error in Covey")


@pytest.mark.parametrize("other", [wait_forever, fail])
def test_heartbeats_continue_while_retention_and_the_search_for_lost_jobs_do_not_end_or_fail(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch, other: Callable[..., None]
) -> None:
    settings = ctx.settings.model_copy(update={"collect_seconds": 0.01})
    monkeypatch.setattr(Settings, "heartbeat_seconds", 0.02)
    monkeypatch.setattr(stopping, "_worker", mmap.mmap(-1, 1))
    monkeypatch.setattr(retention, "apply_retention", other)
    monkeypatch.setattr(maintenance, "requeue_lost_jobs", other)
    ctx.db.close()
    pid = os.fork()
    if pid == 0:
        try:
            maintenance.run(settings, Requests(), "wrk_1", os.getpid())
        finally:
            os._exit(0)
    seen: set[datetime] = set()

    def enough() -> bool | None:
        with ctx.db.read() as session:
            seen.update(session.scalars(select(tables.Worker.last_seen_at)))
        return len(seen) >= 10 or None

    try:
        wait_for(enough, what="ten heartbeats")
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    with ctx.db.read() as session:
        assert session.get_one(tables.Worker, "wrk_1").stopping


def test_a_guard_that_has_stopped_starts_nothing_again(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "_worker", mmap.mmap(-1, 1))
    ctx.db.close()
    guard = maintenance.Guard(ctx.settings, Requests(), "wrk_1")

    def row() -> tables.Worker | None:
        with ctx.db.read() as session:
            return session.get(tables.Worker, "wrk_1")

    try:
        wait_for(row, what="the first heartbeat")
    finally:
        guard.stop()
    guard.restart_if_dead()  # the timer of the worker calls it until its jobs have ended
    assert "covey-guard" not in map(name_of, children(os.getpid()))
    stopped = row()
    assert stopped is not None
    assert stopped.stopping
