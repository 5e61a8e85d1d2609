"""If the database is unavailable for longer than a lease, trainings continue and the API returns 503."""

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

pytestmark = [pytest.mark.faults, pytest.mark.system]

LEASE = 5.0
SETTINGS = {"COVEY_LEASE_SECONDS": str(LEASE)}


@pytest.fixture
def database_url(postgres_server: postgres.PostgresServer) -> Iterator[str]:
    url = postgres_server.create()
    yield url
    postgres_server.drop(url)


@contextmanager
def unavailable(url: str) -> Iterator[None]:
    """Close all connections to the database and reject new ones."""
    parsed_url = make_url(url)
    assert parsed_url.database is not None
    name = sql.Identifier(parsed_url.database)
    other_database = parsed_url.set(database="postgres").render_as_string(hide_password=False)
    with psycopg.connect(other_database, autocommit=True) as connection:
        connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
        try:
            query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            connection.execute(query, [parsed_url.database])
            yield
        finally:
            connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))


def test_a_training_that_ends_while_the_database_is_unavailable_is_not_lost(
    database_url: str, tmp_path: Path
) -> None:
    stack = Stack(tmp_path / "data", {**SETTINGS, "COVEY_DATABASE_URL": database_url}).start()
    try:
        dataset = stack.dataset(departments(40))
        hold = stack.hold()
        job = stack.train(dataset["id"], model="outage")
        hold.wait()
        processes = {"api": stack.api_pids(), "worker": stack.worker_pids()}
        artifacts = stack.data / "storage" / "artifacts"
        with unavailable(database_url):
            end_of_lease = time.monotonic() + LEASE + 1
            while time.monotonic() < end_of_lease:
                response = stack.http.get(f"/v1/training-jobs/{job['id']}")
                assert response.status_code == 503, response.text
                assert response.headers["content-type"] == "application/problem+json"
                assert int(response.headers["retry-after"]) > 0
                time.sleep(0.3)
            hold.release()
            wait_for(lambda: any(artifacts.glob("*")) or None, what="the training to end")
        assert len(list(artifacts.iterdir())) == 1
        job = stack.finished(job["id"])
        assert job["state"] == "succeeded", job
        assert job["attempt"] == 1
        assert stack.call("GET", "/v1/models/outage", 200)["versions"] == 1
        assert {"api": stack.api_pids(), "worker": stack.worker_pids()} == processes
        # New trainings run, too.
        assert stack.finished(stack.train(dataset["id"], model="after")["id"])["state"] == "succeeded"
    finally:
        stack.stop()
