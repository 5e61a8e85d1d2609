"""Jobs carried out here and now, without a worker: for tests of what jobs do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import select

from app.context import AppContext
from app.datasets import service as datasets
from app.datasets.schemas import DatasetCreate
from app.db import tables
from app.http.errors import job_problem
from app.http.idempotency import Idempotency
from app.jobs import queue
from app.jobs.progress import CancelledError, ProgressReporter
from models.errors import CoveyError
from workers import job_kinds

ONCE = Idempotency("test", None, "")


def dataset(ctx: AppContext, examples: Iterable[Mapping[str, Any]], **fields: Any) -> str:
    """A data set that is ready; gives its id."""
    made = datasets.create(ctx, DatasetCreate(name="test", **fields), ONCE)
    key = datasets.new_upload_key(made.id)
    with ctx.storage.create(key) as file:
        file.write("".join(json.dumps(example) + "\n" for example in examples).encode())
    datasets.attach_content(ctx, made.id, key, None)
    work(ctx)
    ready = datasets.get(ctx.db, made.id)
    assert ready.state == "ready", ready.error
    return made.id


def queued(ctx: AppContext) -> list[str]:
    """The jobs that wait for a worker, the oldest first."""
    with ctx.db.read() as session:
        statement = select(tables.Job.id).where(tables.Job.state == "queued")
        return list(session.scalars(statement.order_by(tables.Job.created_at, tables.Job.id)))


def work(ctx: AppContext, most: int = 1000) -> list[str]:
    """Carry out queued jobs until there are none, or so many; gives their kinds in order."""
    done: list[str] = []
    while len(done) < most and (waiting := queued(ctx)):
        done.append(carry_out(ctx, waiting[0]))
    return done


def carry_out(ctx: AppContext, job_id: str) -> str:
    """Claim a job and see it through as a worker's process does; gives its kind."""
    claim = queue.claim(ctx.db, job_id, "wrk_test", lease_seconds=60)
    assert claim is not None
    try:
        job_kinds.KINDS[claim.kind].run(ctx, claim, ProgressReporter(ctx.db, claim))
    except CancelledError:
        job_kinds.cancel(ctx, claim)
    except CoveyError as error:
        job_kinds.fail(ctx, claim, job_problem(error))
    return claim.kind
