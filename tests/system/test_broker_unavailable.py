"""Workers find, claim and run jobs without the broker, however long it is unavailable."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import postgres
import production
import pytest
import required
from fault_proxy import proxy
from production import Production
from sqlalchemy import select
from stack import Stack, command_of, departments, descendants
from waiting import LIMIT_SECONDS, wait_for

from app.db import tables
from app.db.session import Database

pytestmark = pytest.mark.system

WORKERS = 1


def dead_broker() -> str:
    """Return the URL of a broker that does not exist."""
    return f"redis://127.0.0.1:{production.free_port()}/0"


def test_jobs_run_without_a_broker_on_sqlite(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "data", {"COVEY_BROKER_URL": dead_broker()}).start()
    try:
        dataset = stack.dataset(departments(40))
        assert stack.finished(stack.train(dataset["id"])["id"])["state"] == "succeeded"
    finally:
        stack.stop()


def wait_for_heartbeats(database: Database, n: int) -> None:
    """Wait until the workers have written ``n`` further heartbeats."""
    seen: set[datetime] = set()

    def enough() -> bool | None:
        with database.read() as session:
            seen.update(session.scalars(select(tables.Worker.last_seen_at)))
        return len(seen) > n or None

    wait_for(enough, what=f"{n} heartbeats")


def test_a_broker_that_never_responds_delays_neither_jobs_nor_heartbeats(tmp_path: Path) -> None:
    with production.valkey(tmp_path) as url:
        port = int(url.rsplit(":", 1)[1].partition("/")[0])
        with proxy(("127.0.0.1", port)) as broker:
            broker.mute()
            settings = {
                "COVEY_BROKER_URL": f"redis://{broker.address}/0",
                "COVEY_HEARTBEAT_SECONDS": "0.2",
                "COVEY_LEASE_SECONDS": "60",
            }
            stack = Stack(tmp_path / "data", settings).start()
            database = Database(f"sqlite:///{stack.data / 'covey.db'}")
            try:
                dataset = stack.dataset(departments(40))
                hold = [stack.hold(model=f"held-{n}") for n in range(2)]
                jobs = [stack.train(dataset["id"], model=f"held-{n}") for n in range(2)]
                jobs += [stack.train(dataset["id"], model="waiting") for _ in range(4)]
                for one in hold:
                    one.wait()
                wait_for_heartbeats(database, 10)
                (worker,) = stack.worker_pids()
                parts = {role: stack.worker_parts(worker, role) for role in ("slot", "maintenance", "celery")}
                assert {role: len(pids) for role, pids in parts.items()} == {
                    "slot": 2,
                    "maintenance": 1,
                    "celery": 1,
                }
                # Each part is started again, while the worker stays.
                for pid in (*parts["maintenance"], *parts["celery"]):
                    os.kill(pid, signal.SIGKILL)
                for role in ("maintenance", "celery"):
                    killed = parts[role]

                    def restarted(role: str = role, killed: list[int] = killed) -> bool | None:
                        pids = stack.worker_parts(worker, role)
                        return (len(pids) == 1 and pids != killed) or None

                    wait_for(restarted, what=f"another {role} process")
                wait_for_heartbeats(database, 3)
                for one in hold:
                    one.release()
                states = {stack.finished(job["id"])["state"] for job in jobs}
                assert states == {"succeeded"}
                assert {stack.job(job["id"])["attempt"] for job in jobs} == {1}
                assert stack.worker_pids() == [worker]
            finally:
                database.close()
                stack.stop()


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[postgres.PostgresServer]:
    try:
        with postgres.server() as server:
            yield server
    except postgres.UnavailableError as error:
        required.missing(f"no PostgreSQL: {error}")


@pytest.fixture(scope="module")
def without_broker(
    postgres_server: postgres.PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Production]:
    """A service on PostgreSQL whose broker does not exist."""
    folder = tmp_path_factory.mktemp("without_broker")
    settings = {"COVEY_BROKER_URL": dead_broker(), "COVEY_DATABASE_URL": postgres_server.create()}
    service = Production(folder, settings, workers=WORKERS).start()
    yield service
    service.stop()


def test_jobs_run_without_a_broker_on_postgresql(without_broker: Production) -> None:
    dataset = without_broker.dataset(departments(40))
    assert without_broker.finished(without_broker.train(dataset["id"])["id"])["state"] == "succeeded"


def test_a_worker_stops_while_the_database_does_not_respond(without_broker: Production) -> None:
    service = without_broker
    dataset = service.dataset(departments(40))
    hold = service.hold()
    job = service.train(dataset["id"], model="frozen")
    process = hold.wait()
    (worker,) = service.workers
    servers = [pid for pid in descendants(os.getpid()) if "postgres" in Path(command_of(pid).split()[0]).name]
    assert servers
    try:
        for pid in servers:
            os.kill(pid, signal.SIGSTOP)
        parts = descendants(worker.pid)
        assert process in parts
        worker.terminate()
        assert worker.wait(LIMIT_SECONDS) == 0
        wait_for(lambda: not any(map(command_of, parts)) or None, what="all processes of the worker to end")
    finally:
        for pid in servers:
            os.kill(pid, signal.SIGCONT)
    hold.release()
    service.start_workers()
    ended = service.finished(job["id"])
    assert (ended["state"], ended["attempt"], ended["result"]["version"]) == ("succeeded", 2, 1)


def test_a_worker_that_starts_without_a_broker_runs_jobs(without_broker: Production) -> None:
    service = without_broker
    dataset = service.dataset(departments(40))
    service.stop_workers()
    job = service.train(dataset["id"], model="queued-before-the-start")
    service.start_workers()
    assert service.finished(job["id"])["state"] == "succeeded"
