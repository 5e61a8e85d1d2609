"""``Idempotency-Key``: a request that is sent twice, even at the same time, is executed once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import BaseModel
from sqlalchemy import func, select
from waiting import LIMIT_SECONDS

from app.api.idempotency import Idempotency
from app.db import tables
from app.db.session import Database, Transaction
from app.errors import Conflict
from app.jobs import queue


class CreatedJob(BaseModel):
    """Response to the request."""

    job_id: str


def create_job(tx: Transaction) -> CreatedJob:
    return CreatedJob(job_id=queue.enqueue(tx, "train", {}).id)


def fail(tx: Transaction) -> CreatedJob:
    create_job(tx)
    raise ZeroDivisionError


def n_jobs(database: Database) -> int:
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(tables.Job)) or 0


def test_a_repeated_request_gets_the_first_response(database: Database, notified: list[str]) -> None:
    first = Idempotency("key_1", "k", "body").run(database, CreatedJob, create_job)
    assert Idempotency("key_1", "k", "body").run(database, CreatedJob, create_job) == first
    assert n_jobs(database) == 1
    assert notified == [first.job_id]


def test_another_body_with_the_same_key_is_rejected(database: Database) -> None:
    Idempotency("key_1", "k", "body").run(database, CreatedJob, create_job)
    with pytest.raises(Conflict) as raised:
        Idempotency("key_1", "k", "another body").run(database, CreatedJob, create_job)
    assert raised.value.code == "idempotency_key_reused"
    assert n_jobs(database) == 1


def test_each_caller_has_its_own_keys_and_requests_without_a_key_are_independent(database: Database) -> None:
    requests = [("key_1", "k"), ("key_1", "l"), ("key_2", "k"), ("key_1", None), ("key_1", None)]
    job_ids = {
        Idempotency(caller, key, "body").run(database, CreatedJob, create_job).job_id
        for caller, key in requests
    }
    assert len(job_ids) == len(requests)


def test_a_failed_request_can_be_sent_again(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        Idempotency("key_1", "k", "body").run(database, CreatedJob, fail)
    assert n_jobs(database) == 0
    Idempotency("key_1", "k", "body").run(database, CreatedJob, create_job)
    assert n_jobs(database) == 1


def test_simultaneous_requests_are_executed_once_and_get_the_same_response(
    database: Database, notified: list[str]
) -> None:
    n = 5
    for key in ("a", "b", "c"):
        barrier = threading.Barrier(n)

        def send(_: int, key: str = key, barrier: threading.Barrier = barrier) -> CreatedJob:
            barrier.wait()
            return Idempotency("key_1", key, "body").run(database, CreatedJob, create_job)

        with ThreadPoolExecutor(n) as pool:
            responses = list(pool.map(send, range(n)))
        assert len({response.job_id for response in responses}) == 1
    assert n_jobs(database) == 3
    assert len(notified) == 3


def test_a_waiting_request_is_executed_if_the_first_one_fails(database: Database) -> None:
    first_started = threading.Event()
    second_sent = threading.Event()

    def fail_late(tx: Transaction) -> CreatedJob:
        first_started.set()
        second_sent.wait(LIMIT_SECONDS)
        return fail(tx)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(Idempotency("key_1", "k", "body").run, database, CreatedJob, fail_late)
        first_started.wait(LIMIT_SECONDS)
        second = pool.submit(Idempotency("key_1", "k", "body").run, database, CreatedJob, create_job)
        threading.Event().wait(0.1)
        second_sent.set()
        with pytest.raises(ZeroDivisionError):
            first.result()
        second.result()
    assert n_jobs(database) == 1
