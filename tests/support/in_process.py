"""Runs jobs in the process of the test, without a worker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rows
from sqlalchemy import select

from app.api.idempotency import Idempotency
from app.context import AppContext
from app.datasets import creation
from app.datasets import service as datasets
from app.datasets.schemas import DatasetCreate
from app.db import tables
from app.db.session import Database
from app.jobs.problems import failure_of
from app.jobs.progress import CancelledError, ProgressReporter
from app.settings import Settings
from app.storage import LocalStorage
from models.errors import CoveyError
from workers import job_kinds

WITHOUT_KEY = Idempotency("test", None, "")


class NoRelay:
    """Hands out no jobs."""

    def notify(self, _job_id: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


@contextmanager
def context(database: Database, url: str, folder: Path) -> Iterator[AppContext]:
    """Open the context of a process of the service, without a relay.

    Args:
        database: the database.
        url: its URL.
        folder: the data folder.
    """
    settings = Settings(data_dir=folder, database_url=url, lease_seconds=10)
    storage = LocalStorage(folder / "storage")
    storage.initialize()
    yield AppContext(settings, database, storage, NoRelay())


def dataset(ctx: AppContext, examples: Iterable[Mapping[str, Any]], **fields: Any) -> str:
    """Create a data set from examples, and return its id."""
    created = creation.create(ctx, DatasetCreate(name="test", **fields), WITHOUT_KEY)
    key = datasets.new_upload_key(created.id)
    with ctx.storage.create(key) as file:
        file.write("".join(json.dumps(example) + "\n" for example in examples).encode())
    datasets.attach_content(ctx, created.id, key, None)
    work(ctx)
    ready = datasets.get(ctx.db, created.id)
    assert ready.state == "ready", ready.error
    return created.id


def queued(ctx: AppContext) -> list[str]:
    """Return the queued jobs, the oldest first."""
    with ctx.db.read() as session:
        statement = select(tables.Job.id).where(tables.Job.state == "queued")
        return list(session.scalars(statement.order_by(tables.Job.created_at, tables.Job.id)))


def work(ctx: AppContext, max_jobs: int = 1000) -> list[str]:
    """Run queued jobs until none is left, or ``max_jobs`` have run; return their kinds in order."""
    done: list[str] = []
    while len(done) < max_jobs and (pending := queued(ctx)):
        done.append(run_job(ctx, pending[0]))
    return done


def run_job(ctx: AppContext, job_id: str) -> str:
    """Claim a job and run it, as a job process does; return its kind."""
    claim = rows.claimed(ctx.db, job_id, "wrk_test", seconds=60)
    try:
        job_kinds.WORK[claim.kind].run(ctx, claim, ProgressReporter(ctx.db, claim))
    except CancelledError:
        job_kinds.cancel(ctx, claim)
    except (CoveyError, MemoryError) as error:
        job_kinds.fail(ctx, claim, failure_of(error))
    return claim.kind
