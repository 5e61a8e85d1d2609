"""The limit on the unfinished jobs of an API key is exact, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import in_process
import pytest
import rows

from app.api.idempotency import Idempotency
from app.context import AppContext
from app.datasets import creation
from app.datasets import service as datasets
from app.datasets.schemas import DatasetCreate, Example
from app.db import tables
from app.db.session import Database
from app.errors import TooMany
from app.jobs import queue
from app.keys import service as keys
from app.keys.schemas import ApiKeyCreate
from app.limits import service as limits


@pytest.fixture
def key(database: Database) -> str:
    return keys.create(database, ApiKeyCreate(name="test", scopes=["train"])).id


def enqueue(database: Database, key: str | None, max_jobs: int) -> str:
    with database.write() as tx:
        job = queue.enqueue(tx, "train", {}, key_id=key)
        limits.check_job_limit(tx, key, max_jobs)
        return job.id


def test_a_job_above_the_limit_is_rejected_and_not_enqueued(
    database: Database, key: str, notified: list[str]
) -> None:
    jobs = [enqueue(database, key, 2) for _ in range(2)]
    with pytest.raises(TooMany) as raised:
        enqueue(database, key, 2)
    assert raised.value.code == "too_many_jobs"
    assert "Retry-After" in raised.value.headers
    assert notified == jobs
    with database.read() as session:
        assert session.query(tables.Job).count() == 2
        assert session.get_one(tables.Job, jobs[0]).key_id == key


@pytest.mark.parametrize("end", queue.FINISHED)
def test_a_job_that_has_ended_does_not_count(database: Database, key: str, end: str) -> None:
    ended = enqueue(database, key, 1)
    with database.write() as tx:
        tx.session.get_one(tables.Job, ended).state = end
    enqueue(database, key, 1)


def test_a_running_job_counts(database: Database, key: str) -> None:
    rows.claimed(database, enqueue(database, key, 1))
    with pytest.raises(TooMany):
        enqueue(database, key, 1)


def test_each_key_has_its_own_limit_and_anonymous_requests_have_none(database: Database, key: str) -> None:
    other = keys.create(database, ApiKeyCreate(name="other", scopes=["train"])).id
    for caller in (key, other, None, None):
        enqueue(database, caller, 1)
    for _ in range(3):
        enqueue(database, key, 0)


def test_simultaneous_jobs_do_not_exceed_the_limit(database: Database, key: str) -> None:
    def try_enqueue() -> str | None:
        try:
            return enqueue(database, key, 3)
        except TooMany:
            return None

    with ThreadPoolExecutor(10) as threads:
        jobs = [future.result() for future in [threads.submit(try_enqueue) for _ in range(10)]]
    assert len([job for job in jobs if job is not None]) == 3


def test_an_ingestion_counts(ctx: AppContext, key: str) -> None:
    ctx = replace(ctx, settings=ctx.settings.model_copy(update={"jobs_in_flight": 1}))
    caller = Idempotency(key, None, "")

    def create(**fields: Any) -> str:
        return creation.create(ctx, DatasetCreate(name="test", **fields), caller).id

    uploaded = create()
    create(examples=[Example(text="a", labels=["x"])])
    with pytest.raises(TooMany):
        create(examples=[Example(text="a", labels=["x"])])
    with pytest.raises(TooMany):
        datasets.check_accepts_content(ctx, uploaded, key)
    content = datasets.new_upload_key(uploaded)
    with ctx.storage.create(content) as file:
        file.write(b"{}\n")
    with pytest.raises(TooMany):
        datasets.attach_content(ctx, uploaded, content, None, key)
    in_process.work(ctx)
    datasets.check_accepts_content(ctx, uploaded, key)
