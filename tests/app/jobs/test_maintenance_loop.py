"""The supervisor's judgement: whose silence means death, and whose only that the database was away."""

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


class Times:
    """The supervisor's own clock and the database's, in the test's hands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
        self._clock = clock
        self.now = 1000.0
        monkeypatch.setattr("workers.maintenance.time.monotonic", lambda: self.now)

    def pass_(self, seconds: float) -> None:
        self.now += seconds
        self._clock.advance(seconds)


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch, clock: Any) -> Times:
    return Times(monkeypatch, clock)


@pytest.fixture
def make(ctx: AppContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], MaintenanceLoop]]:
    monkeypatch.setattr(os, "register_at_fork", lambda **_: None)
    made: list[MaintenanceLoop] = []

    def make(id_: str) -> MaintenanceLoop:
        made.append(MaintenanceLoop(ctx.settings, id_))
        return made[-1]

    yield make
    for loop in made:
        loop._ctx.close()


@pytest.fixture
def made(make: Callable[[str], MaintenanceLoop]) -> MaintenanceLoop:
    return make("wrk_me")


def worker(database: Database, id_: str, pid: int, machine: str) -> None:
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


def test_a_silent_worker_loses_its_jobs_when_the_lease_runs_out(
    database: Database, made: MaintenanceLoop, times: Times
) -> None:
    job_id = rows.queued(database)
    rows.claimed(database, job_id, "wrk_other", seconds=8)
    for _ in range(8):
        made.tick()
        assert rows.job(database, job_id).state == "running"
        times.pass_(1)
    times.pass_(0.1)
    made.tick()
    assert rows.job(database, job_id).state == "queued"


def test_a_worker_whose_process_is_gone_loses_its_jobs_at_once(
    database: Database, made: MaintenanceLoop, times: Times
) -> None:
    worker(database, "wrk_dead", dead_pid(), this_machine())
    worker(database, "wrk_living", os.getpid(), this_machine())
    worker(database, "wrk_elsewhere", dead_pid(), "another boot")
    jobs = {}
    for owner in ("wrk_dead", "wrk_living", "wrk_elsewhere"):
        jobs[owner] = rows.queued(database)
        rows.claimed(database, jobs[owner], owner, seconds=60)
    made.tick()
    states = {owner: rows.job(database, job_id).state for owner, job_id in jobs.items()}
    assert states == {"wrk_dead": "queued", "wrk_living": "running", "wrk_elsewhere": "running"}
    made.tick()
    with database.read() as session:
        assert session.get(tables.Worker, "wrk_dead") is None


@pytest.mark.parametrize("fresh", [False, True], ids=["the same supervisor", "one that has just started"])
def test_after_an_outage_the_others_get_a_lease_to_say_that_they_live(
    database: Database, make: Callable[[str], MaintenanceLoop], times: Times, fresh: bool
) -> None:
    made = make("wrk_me")
    living, dead = rows.queued(database), rows.queued(database)
    claim = rows.claimed(database, living, "wrk_other", seconds=8)
    rows.claimed(database, dead, "wrk_dead", seconds=8)
    worker(database, "wrk_other", os.getpid(), "elsewhere")
    made.tick()
    times.pass_(60)  # nobody could reach the database
    if fresh:
        made = make("wrk_new")
    made.tick()
    assert rows.job(database, living).state == "running"
    queue.renew_lease(database, claim, lease_seconds=30)
    for _ in range(11):
        times.pass_(1)
        made.tick()
    assert rows.job(database, living).state == "running"
    assert rows.job(database, dead).state == "queued"
