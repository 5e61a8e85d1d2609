"""Celery runs the jobs, with Redis and with RabbitMQ: its own tools see, stop and limit them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fault_proxy
import fork_server
import postgres
import production
import pytest
import rabbitmq
import redis
import required
from celery import Celery
from fault_proxy import FaultProxy
from holds import Hold
from production import Production
from sqlalchemy.engine import make_url
from stack import command_of, departments, descendants
from waiting import LIMIT_SECONDS, wait_for

from app.jobs.celery_config import celery_config
from app.settings import Settings

pytestmark = pytest.mark.system

BROKERS = {"redis": production.redis, "rabbitmq": rabbitmq.server}


@dataclass
class Installation:
    """A service on PostgreSQL with one worker of two processes, and a broker behind a proxy.

    Attributes:
        service: the service.
        broker: the proxy of the broker.
        direct_url: URL of the broker without its proxy.
        dataset: id of a data set.
    """

    service: Production
    broker: FaultProxy
    direct_url: str
    dataset: str

    @property
    def celery(self) -> Celery:
        """Celery as its own tools use it."""
        app = Celery("covey", set_as_current=False)
        app.conf.update(celery_config(Settings(broker_url=self.direct_url)))
        return app

    def train(self, model: str, **request: Any) -> str:
        """Create a training, and return its id."""
        job_id: str = self.service.train(self.dataset, model=model, **request)["id"]
        return job_id

    def hold_trainings(self, n: int) -> tuple[list[Hold], list[str]]:
        """Create trainings, and wait until all of them are held; return the holds, and the ids."""
        models = [f"held-{time.monotonic_ns()}-{number}" for number in range(n)]
        holds = [self.service.hold(model=model) for model in models]
        jobs = [self.train(model) for model in models]
        for hold in holds:
            hold.wait()
        return holds, jobs

    def events(self, job_id: str) -> list[str]:
        """Return the types of a training's events."""
        path = f"/v1/training-jobs/{job_id}/events"
        return [event["type"] for event in self.service.call("GET", path, 200)["items"]]

    def warnings(self) -> list[str]:
        """Return the warnings of readiness."""
        warnings: list[str] = self.service.call("GET", "/health/ready", 200).get("warnings", [])
        return warnings

    def waiting(self) -> int:
        """Return the number of trainings that the broker holds; only with Redis."""
        with redis.Redis.from_url(self.direct_url) as client:
            return int(client.llen("training"))

    @contextmanager
    def extra_worker(self, *arguments: str) -> Iterator[str]:
        """Run ``celery -A workers worker`` for trainings while the block lasts; yield its name."""
        name = f"extra{time.monotonic_ns()}@localhost"
        with self.service.log.open("ab") as log:
            words = ("celery", "-A", "workers", "worker", "-Q", "training", "-c", "1", "-n", name, *arguments)
            process = fork_server.start(words, self.service.environment(), log, log)
        try:
            wait_for(lambda: self.celery.control.ping([name], timeout=1) or None, what="the extra worker")
            yield name
        finally:
            process.terminate()
            assert process.wait(LIMIT_SECONDS) == 0, self.service.tail()


# The tests of one broker share an installation, so they run in one process.
PARAMETERS = {
    "redis": pytest.param("redis", marks=pytest.mark.xdist_group("celery-redis")),
    "rabbitmq": pytest.param(
        "rabbitmq", marks=[pytest.mark.xdist_group("celery-rabbitmq"), pytest.mark.faults]
    ),
}

only_redis = pytest.mark.parametrize("installation", [PARAMETERS["redis"]], indirect=True)


def and_with_redis(name: str, both: object, redis_only: object) -> pytest.MarkDecorator:
    """Give an argument one value with each broker, and another one with Redis only."""
    values = [(broker, both) for broker in BROKERS] + [("redis", redis_only)]
    return pytest.mark.parametrize(
        ("installation", name),
        [pytest.param(broker, value, marks=PARAMETERS[broker].marks) for broker, value in values],
        indirect=["installation"],
        scope="module",
    )


@pytest.fixture(scope="module", params=PARAMETERS.values())
def installation(
    request: pytest.FixtureRequest,
    postgres_server: postgres.PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp(request.param)
    with ExitStack() as opened:
        try:
            (folder / "broker").mkdir()
            direct_url = opened.enter_context(BROKERS[request.param](folder / "broker"))
        except (rabbitmq.UnavailableError, production.UnavailableError) as error:
            required.missing(str(error))
        database = postgres_server.create()
        opened.callback(postgres_server.drop, database)
        direct = make_url(direct_url)
        assert direct.port is not None
        broker = opened.enter_context(fault_proxy.proxy(("127.0.0.1", direct.port)))
        settings = {
            "COVEY_DATABASE_URL": database,
            "COVEY_BROKER_URL": direct_url.replace(f"127.0.0.1:{direct.port}", broker.address),
            "COVEY_WORKER_CONCURRENCY": "2",
            "COVEY_LEASE_SECONDS": "60",
        }
        service = Production(folder, settings, workers=1).start()
        yield Installation(service, broker, direct_url, service.dataset(departments(40))["id"])
        assert service.stop() == 0, service.tail()


@pytest.fixture(autouse=True)
def _end_of_test(installation: Installation) -> Iterator[None]:
    """Let a failed test leave nothing behind that the next one would wait for."""
    yield
    installation.broker.heal()
    installation.service.release_all()


@contextmanager
def monitor(celery: Celery) -> Iterator[Any]:
    """Receive the events of workers while the block lasts, as Flower does."""
    state = celery.events.State()
    with celery.connection_for_read() as connection:
        receiver = celery.events.Receiver(connection, handlers={"*": state.event})
        thread = threading.Thread(target=receiver.capture, daemon=True)
        thread.start()
        try:
            wait_for(lambda: bool(state.workers) or None, what="an event of a worker")
            yield state
        finally:
            receiver.should_stop = True
            thread.join(LIMIT_SECONDS)


def test_celery_shows_a_training_with_its_id_kind_queue_and_state(installation: Installation) -> None:
    celery, service = installation.celery, installation.service
    with monitor(celery) as state, service.hold() as hold:
        job = installation.train("shown")
        hold.wait()
        active = [task for tasks in (celery.control.inspect().active() or {}).values() for task in tasks]
        assert [(task["id"], task["name"]) for task in active] == [(job, "covey.train")]
        assert active[0]["delivery_info"]["routing_key"] == "training"
        wait_for(lambda: state.tasks[job].state == "STARTED" or None, what="the event of the start")
        hold.release()
        assert service.finished(job)["state"] == "succeeded"
        wait_for(lambda: state.tasks[job].state == "SUCCESS" or None, what="the event of the end")
        assert state.tasks[job].name == "covey.train"
        failing = installation.train("fails", features={"kind": "text", "min_df": 1000})
        assert service.finished(failing)["state"] == "failed"
        wait_for(lambda: state.tasks[failing].state == "FAILURE" or None, what="the event of the failure")


@pytest.mark.parametrize("how", ["revoked", "cancelled"])
def test_a_revoked_or_cancelled_training_is_cancelled_though_it_does_not_stop_itself(
    installation: Installation, how: str
) -> None:
    hold = installation.service.hold()
    job = installation.train(how)
    process = hold.wait()
    os.kill(process, signal.SIGSTOP)
    if how == "revoked":
        installation.celery.control.revoke(job, terminate=True)
    else:
        installation.service.call("POST", f"/v1/training-jobs/{job}/cancel", 202)
    ended = installation.service.finished(job)
    hold.release()
    assert (ended["state"], ended["attempt"]) == ("cancelled", 1)
    assert command_of(process) == ""
    assert installation.service.finished(installation.train("next"))["state"] == "succeeded"


def test_a_task_revoked_before_it_starts_cancels_its_job(installation: Installation) -> None:
    holds, first = installation.hold_trainings(2)
    waiting = installation.train("waiting")
    installation.celery.control.revoke(waiting)
    wait_for(
        lambda: (
            all(
                waiting in (ids or [])
                for ids in (installation.celery.control.inspect().revoked() or {}).values()
            )
            or None
        ),
        what="the worker to know",
    )
    for hold in holds:
        hold.release()
    ended = installation.service.finished(waiting)
    assert (ended["state"], ended["attempt"]) == ("cancelled", 0)
    assert {installation.service.finished(job)["state"] for job in first} == {"succeeded"}


@and_with_redis("limit", "--time-limit", "--soft-time-limit")
def test_a_worker_of_celery_joins_and_its_time_limit_ends_a_training(
    installation: Installation, limit: str
) -> None:
    service = installation.service
    busy, others = installation.hold_trainings(2)
    with installation.extra_worker(limit, "1") as name:
        assert service.call("GET", "/health/ready", 200)["workers"] == 2
        hold = service.hold(model="limited")
        job = installation.train("limited")
        ended = service.finished(job)
        hold.release()
        assert (ended["state"], ended["error"]["code"]) == ("failed", "out_of_time")
        stats = installation.celery.control.inspect([name]).stats()
        assert stats is not None
        assert stats[name]["total"] == {"covey.train": 1}
    for hold in busy:
        hold.release()
    assert {service.finished(other)["state"] for other in others} == {"succeeded"}


@only_redis
def test_a_training_survives_the_kill_of_its_worker(installation: Installation) -> None:
    service = installation.service
    assert service.finished(installation.train("desk"))["state"] == "succeeded"
    request_body = {"instances": [{"text": "parcel late courier delivery tracking"}]}
    before = service.http.post("/v1/models/desk/predict", json=request_body)
    assert before.json()["predictions"][0]["labels"] == ["shipping"]

    with service.another_worker():
        hold = service.hold()
        job = installation.train("desk")
        hold.wait()
        service.kill_worker_of_the_job()
        assert service.http.post("/v1/models/desk/predict", json=request_body).content == before.content
        ended = service.finished(job)
    assert ended["state"] == "succeeded", ended
    assert ended["attempt"] == 2
    assert ended["result"]["version"] == 2
    events = installation.events(job)
    assert events.count("lost") == 1
    assert events.count("succeeded") == 1
    assert service.call("GET", "/v1/models/desk", 200)["versions"] == 2
    service.call("GET", "/health/ready", 200)


def test_two_workers_run_each_of_many_jobs_once(installation: Installation) -> None:
    service = installation.service
    with service.another_worker():
        jobs = [installation.train(f"many-{i % 3}") for i in range(12)]
        ended = [service.finished(job) for job in jobs]
    assert [job["state"] for job in ended] == ["succeeded"] * 12
    assert [job["attempt"] for job in ended] == [1] * 12
    for i in range(3):
        assert service.call("GET", f"/v1/models/many-{i}", 200)["versions"] == 4


@only_redis
def test_autoscaling_adds_processes(installation: Installation) -> None:
    service = installation.service
    with installation.extra_worker("--autoscale", "4,1"):
        holds, jobs = installation.hold_trainings(6)
        for hold in holds:
            hold.release()
        assert {service.finished(job)["attempt"] for job in jobs} == {1}


@only_redis
def test_jobs_start_in_their_order_also_on_two_workers(installation: Installation) -> None:
    """With RabbitMQ, a busy worker keeps a task for up to three seconds, which others overtake."""
    service = installation.service
    with installation.extra_worker():
        busy, first = installation.hold_trainings(3)
        handed_out = [installation.train("early") for _ in range(2)]
        wait_for(lambda: installation.waiting() == 2 or None, what="the tasks of two jobs")
        low = installation.train("low", priority=-1)
        normal = [installation.train("normal") for _ in range(2)]
        high = installation.train("high", priority=5)
        # One process becomes free, so the others run one after the other.
        busy[0].release()
        jobs = [service.finished(job) for job in (*handed_out, high, *normal, low)]
        started = [job["started_at"] for job in jobs]
        assert started == sorted(started)
        for hold in busy[1:]:
            hold.release()
        assert {service.finished(job)["state"] for job in first} == {"succeeded"}


@pytest.mark.faults
@pytest.mark.parametrize("fault", ["refuse", "mute"])
def test_without_the_broker_running_jobs_continue_and_new_ones_start_when_it_is_back(
    installation: Installation, fault: str
) -> None:
    service = installation.service
    holds, running = installation.hold_trainings(2)
    getattr(installation.broker, fault)()
    jobs = [installation.train("waiting") for _ in range(5)]
    wait_for(lambda: installation.warnings() or None, what="a warning that the broker is away")
    assert "broker" in installation.warnings()[0]
    metrics = service.http.get("/metrics").text
    (line,) = [line for line in metrics.splitlines() if line.startswith("covey_broker_unavailable_seconds ")]
    assert float(line.split()[1]) > 0
    service.call("POST", f"/v1/training-jobs/{jobs[4]}/cancel", 202)
    assert service.job(jobs[4])["state"] == "cancelled"
    service.call("POST", f"/v1/training-jobs/{running[0]}/cancel", 202)
    assert service.finished(running[0])["state"] == "cancelled"
    holds[1].release()
    ended = service.finished(running[1])
    assert (ended["state"], ended["attempt"]) == ("succeeded", 1)
    assert {service.job(job)["state"] for job in jobs[:4]} == {"queued"}
    installation.broker.heal()
    ended_jobs = [service.finished(job) for job in jobs[:4]]
    assert {(job["state"], job["attempt"]) for job in ended_jobs} == {("succeeded", 1)}
    wait_for(lambda: not installation.warnings() or None, what="the warning to end")


@pytest.mark.faults
def test_a_worker_that_starts_without_the_broker_runs_jobs_when_it_is_back(
    installation: Installation,
) -> None:
    service = installation.service
    service.stop_workers()
    installation.broker.refuse()
    job = installation.train("queued-before-the-start")
    service.start_workers()
    installation.broker.heal()
    assert service.finished(job)["state"] == "succeeded"


@pytest.mark.faults
@and_with_redis("number", signal.SIGTERM, signal.SIGQUIT)
def test_a_worker_stops_and_releases_its_job_also_if_the_broker_is_mute(
    installation: Installation, number: signal.Signals
) -> None:
    service = installation.service
    hold = service.hold(attempt=1)
    job = installation.train("released")
    hold.wait()
    (worker,) = service.workers
    parts = descendants(worker.pid)
    installation.broker.mute()
    worker.send_signal(number)
    worker.wait(LIMIT_SECONDS)
    wait_for(lambda: not any(map(command_of, parts)) or None, what="all processes of the worker to end")
    wait_for(lambda: "released" in installation.events(job) or None, what="the release")
    installation.broker.heal()
    hold.release()
    service.start_workers()
    ended = service.finished(job)
    assert (ended["state"], ended["attempt"]) == ("succeeded", 2)
    assert "lost" not in installation.events(job)


@pytest.mark.faults
@only_redis
def test_a_worker_stops_while_the_database_does_not_respond(installation: Installation) -> None:
    service = installation.service
    hold = service.hold(attempt=1)
    job = installation.train("frozen")
    hold.wait()
    (worker,) = service.workers
    servers = [pid for pid in descendants(os.getpid()) if "postgres" in Path(command_of(pid).split()[0]).name]
    assert servers
    parts = descendants(worker.pid)
    try:
        for pid in servers:
            os.kill(pid, signal.SIGSTOP)
        worker.terminate()
        worker.wait(LIMIT_SECONDS)
        wait_for(lambda: not any(map(command_of, parts)) or None, what="all processes of the worker to end")
    finally:
        for pid in servers:
            os.kill(pid, signal.SIGCONT)
    hold.release()
    service.start_workers()
    ended = service.finished(job)
    assert (ended["state"], ended["attempt"], ended["result"]["version"]) == ("succeeded", 2, 1)
