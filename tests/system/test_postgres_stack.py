"""The production setup: `covey migrate`, `covey api` and two `covey worker`, on PostgreSQL and a broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import postgres
import production
import pytest
import rabbitmq
import required
from production import Production
from stack import departments

pytestmark = pytest.mark.system


BROKERS = {"valkey": production.valkey, "redis": production.redis, "rabbitmq": rabbitmq.server}


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "broker"
    folder.mkdir()
    with ExitStack() as opened:
        try:
            url = opened.enter_context(BROKERS[getattr(request, "param", "valkey")](folder))
        except (rabbitmq.UnavailableError, production.UnavailableError) as error:
            required.missing(str(error))
        yield url


@pytest.fixture
def deployment(broker: str, tmp_path: Path) -> Iterator[Production]:
    with ExitStack() as opened:
        try:
            server = opened.enter_context(postgres.server())
        except postgres.UnavailableError as error:
            required.missing(f"no PostgreSQL: {error}")
        database = server.create()
        settings = {
            "COVEY_DATABASE_URL": database,
            "COVEY_BROKER_URL": broker,
            "COVEY_STORAGE_URL": f"file://{tmp_path}/storage",
            "COVEY_WORKER_CONCURRENCY": "1",
            "COVEY_LEASE_SECONDS": "60",
        }
        deployment = Production(tmp_path, settings, workers=2).start()
        yield deployment
        status = deployment.stop()
        server.drop(database)
        assert status == 0, deployment.tail()


def test_a_training_job_survives_the_kill_of_its_worker(deployment: Production) -> None:
    dataset = deployment.dataset(departments(80))
    first = deployment.finished(deployment.train(dataset["id"], model="desk")["id"])
    assert first["state"] == "succeeded", first
    request_body = {"instances": [{"text": "parcel late courier delivery tracking"}]}
    before = deployment.http.post("/v1/models/desk/predict", json=request_body)
    assert before.json()["predictions"][0]["labels"] == ["shipping"]

    hold = deployment.hold()
    job = deployment.train(dataset["id"], model="desk")
    hold.wait()
    victim = deployment.worker_of_the_job()
    victim.kill()
    victim.wait()
    assert deployment.http.post("/v1/models/desk/predict", json=request_body).content == before.content

    ended = deployment.finished(job["id"])
    assert ended["state"] == "succeeded", ended
    assert ended["attempt"] == 2
    assert ended["result"]["version"] == 2
    events = [
        e["type"] for e in deployment.call("GET", f"/v1/training-jobs/{job['id']}/events", 200)["items"]
    ]
    assert events.count("lost") == 1
    assert events.count("succeeded") == 1
    assert deployment.call("GET", "/v1/models/desk", 200)["versions"] == 2
    deployment.call("GET", "/health/ready", 200)


@pytest.mark.parametrize("broker", ["redis", "rabbitmq"], indirect=True)
def test_two_workers_run_each_of_many_jobs_once(deployment: Production) -> None:
    dataset = deployment.dataset(departments(40))
    jobs = [deployment.train(dataset["id"], model=f"m{i % 3}")["id"] for i in range(12)]
    ended = [deployment.finished(job) for job in jobs]
    assert [job["state"] for job in ended] == ["succeeded"] * 12
    assert [job["attempt"] for job in ended] == [1] * 12
    for i in range(3):
        assert deployment.call("GET", f"/v1/models/m{i}", 200)["versions"] == 4
