"""``Idempotency-Key``: the same request sent twice, even at once, is done once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import BaseModel
from sqlalchemy import func, select
from waiting import LIMIT_SECONDS

from app.db import tables
from app.db.session import Database, Transaction
from app.http.errors import Conflict
from app.http.idempotency import Idempotency
from app.jobs import queue


class Made(BaseModel):
    """What the request made."""

    job_id: str


def work(tx: Transaction) -> Made:
    return Made(job_id=queue.enqueue(tx, "train", {}).id)


def fail(tx: Transaction) -> Made:
    work(tx)
    raise ZeroDivisionError


def n_jobs(database: Database) -> int:
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(tables.Job)) or 0


def test_a_repeated_request_gets_the_first_answer(database: Database, notified: list[str]) -> None:
    first = Idempotency("key_1", "k", "body").run(database, Made, work)
    assert Idempotency("key_1", "k", "body").run(database, Made, work) == first
    assert n_jobs(database) == 1
    assert notified == [first.job_id]


def test_another_body_under_the_same_key_is_refused(database: Database) -> None:
    Idempotency("key_1", "k", "body").run(database, Made, work)
    with pytest.raises(Conflict) as refused:
        Idempotency("key_1", "k", "another body").run(database, Made, work)
    assert refused.value.code == "idempotency_key_reused"
    assert n_jobs(database) == 1


def test_keys_are_each_callers_own_and_without_one_nothing_is_remembered(database: Database) -> None:
    requests = [("key_1", "k"), ("key_1", "l"), ("key_2", "k"), ("key_1", None), ("key_1", None)]
    made = {Idempotency(caller, key, "body").run(database, Made, work).job_id for caller, key in requests}
    assert len(made) == len(requests)


def test_a_request_that_failed_may_be_sent_again(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        Idempotency("key_1", "k", "body").run(database, Made, fail)
    assert n_jobs(database) == 0
    Idempotency("key_1", "k", "body").run(database, Made, work)
    assert n_jobs(database) == 1


def test_requests_at_the_same_moment_are_done_once_and_get_one_answer(
    database: Database, notified: list[str]
) -> None:
    n = 5
    for key in ("a", "b", "c"):
        together = threading.Barrier(n)

        def send(_: int, key: str = key, together: threading.Barrier = together) -> Made:
            together.wait()
            return Idempotency("key_1", key, "body").run(database, Made, work)

        with ThreadPoolExecutor(n) as pool:
            answers = list(pool.map(send, range(n)))
        assert len({answer.job_id for answer in answers}) == 1
    assert n_jobs(database) == 3
    assert len(notified) == 3


def test_a_request_whose_twin_fails_while_it_waits_is_done(database: Database) -> None:
    begun = threading.Event()
    both = threading.Event()

    def fail_late(tx: Transaction) -> Made:
        begun.set()
        both.wait(LIMIT_SECONDS)
        return fail(tx)

    with ThreadPoolExecutor(2) as pool:
        failing = pool.submit(Idempotency("key_1", "k", "body").run, database, Made, fail_late)
        begun.wait(LIMIT_SECONDS)
        waiting = pool.submit(Idempotency("key_1", "k", "body").run, database, Made, work)
        threading.Event().wait(0.1)
        both.set()
        with pytest.raises(ZeroDivisionError):
            failing.result()
        waiting.result()
    assert n_jobs(database) == 1
