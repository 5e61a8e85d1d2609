"""A worker queues the jobs of dead workers again, and trusts no lease after an outage of the database."""

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
from workers.heartbeat import Heartbeat, this_machine
from workers.lost_jobs import requeue_lost_jobs


class Clocks:
    """The clocks of the heartbeat and of the database. They advance only if the test requests it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
        self._clock = clock
        self.now = 1000.0
        monkeypatch.setattr("workers.heartbeat.time.monotonic", lambda: self.now)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self._clock.advance(seconds)


class NeverAway:
    """A relay whose broker is available."""

    unavailable_since: float | None = None


class Worker:
    """The maintenance of one worker."""

    def __init__(self, ctx: AppContext, id_: str) -> None:
        self.id = id_
        self.heartbeat = Heartbeat(ctx.settings, id_, os.getpid(), NeverAway())
        self._ctx = ctx

    def requeue(self) -> None:
        requeue_lost_jobs(self._ctx, self.id, self.heartbeat)

    def tick(self) -> None:
        self.heartbeat.beat()
        self.requeue()


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch, clock: Any) -> Clocks:
    return Clocks(monkeypatch, clock)


@pytest.fixture
def start_worker(ctx: AppContext) -> Iterator[Callable[[str], Worker]]:
    workers: list[Worker] = []

    def start(id_: str) -> Worker:
        workers.append(Worker(ctx, id_))
        return workers[-1]

    yield start
    for worker in workers:
        worker.heartbeat._db.close()


@pytest.fixture
def worker(start_worker: Callable[[str], Worker]) -> Worker:
    return start_worker("wrk_1")


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
    database: Database, worker: Worker, clocks: Clocks
) -> None:
    job_id = rows.queued(database)
    rows.claimed(database, job_id, "wrk_other", seconds=8)
    for _ in range(8):
        worker.tick()
        assert rows.job(database, job_id).state == "running"
        clocks.advance(1)
    clocks.advance(0.1)
    worker.tick()
    assert rows.job(database, job_id).state == "queued"


def test_a_worker_whose_process_is_dead_loses_its_jobs_immediately(
    database: Database, worker: Worker, clocks: Clocks
) -> None:
    insert_worker(database, "wrk_dead", dead_pid(), this_machine())
    insert_worker(database, "wrk_alive", os.getpid(), this_machine())
    insert_worker(database, "wrk_other_machine", dead_pid(), "another boot")
    jobs = {}
    for owner in ("wrk_dead", "wrk_alive", "wrk_other_machine"):
        jobs[owner] = rows.queued(database)
        rows.claimed(database, jobs[owner], owner, seconds=60)
    worker.requeue()
    states = {owner: rows.job(database, job_id).state for owner, job_id in jobs.items()}
    assert states == {"wrk_dead": "queued", "wrk_alive": "running", "wrk_other_machine": "running"}
    worker.requeue()
    with database.read() as session:
        assert session.get(tables.Worker, "wrk_dead") is None


@pytest.mark.parametrize("restart", [False, True], ids=["the same worker", "a worker that has just started"])
def test_leases_are_extended_after_an_outage_of_the_database(
    database: Database, start_worker: Callable[[str], Worker], clocks: Clocks, restart: bool
) -> None:
    worker = start_worker("wrk_1")
    alive, dead = rows.queued(database), rows.queued(database)
    claim = rows.claimed(database, alive, "wrk_other", seconds=8)
    rows.claimed(database, dead, "wrk_dead", seconds=8)
    insert_worker(database, "wrk_other", os.getpid(), "other machine")
    worker.tick()
    clocks.advance(60)  # the database is unavailable to all workers
    if restart:
        worker = start_worker("wrk_new")
    worker.requeue()  # the heartbeat is written by another thread, perhaps later
    assert rows.job(database, alive).state == "running"
    worker.tick()
    assert rows.job(database, alive).state == "running"
    queue.renew_lease(database, claim, lease_seconds=30)
    for _ in range(11):
        clocks.advance(1)
        worker.tick()
    assert rows.job(database, alive).state == "running"
    assert rows.job(database, dead).state == "queued"


def test_a_stopping_worker_is_marked(database: Database, worker: Worker, clocks: Clocks) -> None:
    for stopping in (False, True):
        worker.heartbeat.beat(stopping=stopping)
        with database.read() as session:
            row = session.get_one(tables.Worker, "wrk_1")
        assert (row.stopping, row.pid) == (stopping, os.getpid())
