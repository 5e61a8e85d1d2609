"""Limit the unfinished jobs of an API key. The jobs are counted in the database, so the limit is exact."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.db import tables
from app.db.session import Transaction
from app.errors import TooMany
from app.jobs.queue import UNFINISHED

RETRY_SECONDS = 5.0
"""Value of ``Retry-After``. The end of a job cannot be predicted."""


def check_job_limit(tx: Transaction, key_id: str | None, max_jobs: int) -> None:
    """Check the number of unfinished jobs of an API key, after a job was enqueued for it.

    Args:
        tx: the transaction that enqueued the job.
        key_id: id of the key or user; None for an anonymous request.
        max_jobs: maximum number of unfinished jobs of the key, including this one; 0 for no limit.

    Raises:
        TooMany: the job exceeds the limit; the transaction must not be committed.
    """
    if key_id is None or not max_jobs:
        return
    # The lock makes concurrent requests of one key count one after the other.
    table = tables.User if key_id.startswith("usr_") else tables.ApiKey
    tx.session.scalar(select(table.id).where(table.id == key_id).with_for_update())
    if _unfinished(tx.session, key_id) > max_jobs:
        raise _too_many(max_jobs)


def check_next_job(session: Session, key_id: str | None, max_jobs: int) -> None:
    """Check that an API key may have another job, before the content is received that the job reads.

    Raises:
        TooMany: the job would exceed the limit; see ``check_job_limit``.
    """
    if key_id is not None and max_jobs and _unfinished(session, key_id) >= max_jobs:
        raise _too_many(max_jobs)


def _unfinished(session: Session, key_id: str) -> int:
    statement = select(func.count()).where(tables.Job.key_id == key_id, tables.Job.state.in_(UNFINISHED))
    return session.scalars(statement).one()


def _too_many(max_jobs: int) -> TooMany:
    return TooMany(
        f"this API key may have {max_jobs} jobs in flight; wait until one ends, or cancel one",
        code="too_many_jobs",
        retry_after=RETRY_SECONDS,
    )
