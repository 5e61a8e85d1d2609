"""The database is away for longer than a lease: trainings go on and are not lost, and clients are told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import postgres
import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url
from stack import Stack, departments
from waiting import wait_for

pytestmark = pytest.mark.system

LEASE = 5.0
SETTINGS = {"COVEY_LEASE_SECONDS": str(LEASE), "COVEY_HEARTBEAT_SECONDS": "0.5"}


@pytest.fixture
def database_url() -> Iterator[str]:
    try:
        with postgres.server() as server:
            url = server.create()
            yield url
            server.drop(url)
    except postgres.UnavailableError as error:
        pytest.skip(f"no PostgreSQL: {error}")


@contextmanager
def away(url: str) -> Iterator[None]:
    """Throw out everybody who uses the database, and let nobody in."""
    made = make_url(url)
    assert made.database is not None
    name = sql.Identifier(made.database)
    neighbour = made.set(database="postgres").render_as_string(hide_password=False)
    with psycopg.connect(neighbour, autocommit=True) as connection:
        connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
        try:
            query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            connection.execute(query, [made.database])
            yield
        finally:
            connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))


def test_a_training_that_ends_while_the_database_is_away_is_not_lost(
    database_url: str, tmp_path: Path
) -> None:
    stack = Stack(tmp_path / "data", {**SETTINGS, "COVEY_DATABASE_URL": database_url}).start()
    try:
        dataset = stack.dataset(departments(40))
        hold = stack.hold()
        job = stack.train(dataset["id"], model="patient")
        hold.wait()
        processes = {"api": stack.processes("-m app api"), "worker": stack.worker_pids()}
        artifacts = stack.data / "storage" / "artifacts"
        with away(database_url):
            lease_ended = time.monotonic() + LEASE + 1
            while time.monotonic() < lease_ended:
                response = stack.http.get(f"/v1/training-jobs/{job['id']}")
                assert response.status_code == 503, response.text
                assert response.headers["content-type"] == "application/problem+json"
                assert int(response.headers["retry-after"]) > 0
                time.sleep(0.3)
            hold.release()
            wait_for(lambda: any(artifacts.glob("*")) or None, what="the training to end")
        assert len(list(artifacts.iterdir())) == 1
        ended = stack.finished(job["id"])
        assert ended["state"] == "succeeded", ended
        assert ended["attempt"] == 1
        assert stack.call("GET", "/v1/models/patient", 200)["versions"] == 1
        assert {"api": stack.processes("-m app api"), "worker": stack.worker_pids()} == processes
        # And work goes on.
        assert stack.finished(stack.train(dataset["id"], model="after")["id"])["state"] == "succeeded"
    finally:
        stack.stop()
