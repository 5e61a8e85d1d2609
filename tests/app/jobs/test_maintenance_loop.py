"""The maintenance loop requeues jobs of dead workers, and extends leases after an outage of the database."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import rows

from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.jobs import queue
from workers.maintenance import MaintenanceLoop, this_machine


class Clocks:
    """The clocks of the maintenance loop and of the database. They advance only if the test requests it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
        self._clock = clock
        self.now = 1000.0
        monkeypatch.setattr("workers.maintenance.time.monotonic", lambda: self.now)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self._clock.advance(seconds)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch, clock: Any) -> Clocks:
    return Clocks(monkeypatch, clock)


@pytest.fixture
def create_loop(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], MaintenanceLoop]]:
    monkeypatch.setattr(os, "register_at_fork", lambda **_: None)
    loops: list[MaintenanceLoop] = []

    def create(id_: str) -> MaintenanceLoop:
        loops.append(MaintenanceLoop(ctx.settings, id_))
        return loops[-1]

    yield create
    for loop in loops:
        loop._ctx.close()


@pytest.fixture
def loop(create_loop: Callable[[str], MaintenanceLoop]) -> MaintenanceLoop:
    return create_loop("wrk_1")


def insert_worker(database: Database, id_: str, pid: int, machine: str) -> None:
    with database.write() as tx:
        tx.session.add(
            tables.Worker(
                id=id_,
                host="h",
                pid=pid,
                machine=machine,
                concurrency=1,
                started_at=tx.now,
                last_seen_at=tx.now,
            )
        )


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_worker_without_heartbeats_loses_its_jobs_when_the_lease_expires(
    database: Database, loop: MaintenanceLoop, clocks: Clocks
) -> None:
    job_id = rows.queued(database)
    rows.claimed(database, job_id, "wrk_other", seconds=8)
    for _ in range(8):
        loop.tick()
        assert rows.job(database, job_id).state == "running"
        clocks.advance(1)
    clocks.advance(0.1)
    loop.tick()
    assert rows.job(database, job_id).state == "queued"


def test_a_worker_whose_process_is_dead_loses_its_jobs_immediately(
    database: Database, loop: MaintenanceLoop, clocks: Clocks
) -> None:
    insert_worker(database, "wrk_dead", dead_pid(), this_machine())
    insert_worker(database, "wrk_alive", os.getpid(), this_machine())
    insert_worker(database, "wrk_other_machine", dead_pid(), "another boot")
    jobs = {}
    for owner in ("wrk_dead", "wrk_alive", "wrk_other_machine"):
        jobs[owner] = rows.queued(database)
        rows.claimed(database, jobs[owner], owner, seconds=60)
    loop.tick()
    states = {owner: rows.job(database, job_id).state for owner, job_id in jobs.items()}
    assert states == {"wrk_dead": "queued", "wrk_alive": "running", "wrk_other_machine": "running"}
    loop.tick()
    with database.read() as session:
        assert session.get(tables.Worker, "wrk_dead") is None


@pytest.mark.parametrize("restart", [False, True], ids=["the same loop", "a loop that has just started"])
def test_leases_are_extended_after_an_outage_of_the_database(
    database: Database, create_loop: Callable[[str], MaintenanceLoop], clocks: Clocks, restart: bool
) -> None:
    loop = create_loop("wrk_1")
    alive, dead = rows.queued(database), rows.queued(database)
    claim = rows.claimed(database, alive, "wrk_other", seconds=8)
    rows.claimed(database, dead, "wrk_dead", seconds=8)
    insert_worker(database, "wrk_other", os.getpid(), "other machine")
    loop.tick()
    clocks.advance(60)  # the database is unavailable to all workers
    if restart:
        loop = create_loop("wrk_new")
    loop.tick()
    assert rows.job(database, alive).state == "running"
    queue.renew_lease(database, claim, lease_seconds=30)
    for _ in range(11):
        clocks.advance(1)
        loop.tick()
    assert rows.job(database, alive).state == "running"
    assert rows.job(database, dead).state == "queued"
