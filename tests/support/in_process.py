"""Jobs carried out here and now, without a worker: for tests of what jobs do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import select

from app.datasets import service as datasets
from app.datasets.schemas import DatasetCreate
from app.db import tables
from app.environment import Environment
from app.errors import job_problem
from app.idempotency import Once
from app.jobs import kinds, ledger
from app.jobs.reporter import CancelledError, Reporter
from models.errors import CoveyError

ONCE = Once("test", None, "")


def dataset(env: Environment, examples: Iterable[Mapping[str, Any]], **fields: Any) -> str:
    """A data set that is ready; gives its id."""
    made = datasets.create(env, DatasetCreate(name="test", **fields), ONCE)
    key = datasets.upload_key(made.id)
    with env.storage.create(key) as file:
        file.write("".join(json.dumps(example) + "\n" for example in examples).encode())
    datasets.attach_content(env, made.id, key, None)
    work(env)
    ready = datasets.get(env.db, made.id)
    assert ready.state == "ready", ready.error
    return made.id


def queued(env: Environment) -> list[str]:
    """The jobs that wait for a worker, the oldest first."""
    with env.db.read() as session:
        statement = select(tables.Job.id).where(tables.Job.state == "queued")
        return list(session.scalars(statement.order_by(tables.Job.created_at, tables.Job.id)))


def work(env: Environment, most: int = 1000) -> list[str]:
    """Carry out queued jobs until there are none, or so many; gives their kinds in order."""
    done: list[str] = []
    while len(done) < most and (waiting := queued(env)):
        done.append(carry_out(env, waiting[0]))
    return done


def carry_out(env: Environment, job_id: str) -> str:
    """Claim a job and see it through as a worker's process does; gives its kind."""
    claim = ledger.claim(env.db, job_id, "wrk_test", lease_seconds=60)
    assert claim is not None
    try:
        kinds.KINDS[claim.kind].run(env, claim, Reporter(env.db, claim))
    except CancelledError:
        kinds.cancelled(env, claim)
    except CoveyError as error:
        kinds.fail(env, claim, job_problem(error))
    return claim.kind
