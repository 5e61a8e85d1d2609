"""How many jobs one API key may have in flight. The rows are counted, so that no count can be wrong."""

from __future__ import annotations

from sqlalchemy import func, select

from app.db import tables
from app.db.session import Transaction
from app.http.errors import TooMany
from app.jobs.queue import FINISHED

RETRY_SECONDS = 5.0
"""When to ask again; nobody can know when a job ends."""


def own(tx: Transaction, job: tables.Job, key_id: str | None, most: int) -> None:
    """Make a job that was just queued a key's own.

    Args:
        tx: the transaction that queued it.
        job: the job.
        key_id: of the key; None where the service is open.
        most: jobs that the key may have in flight, this one included; 0 for no limit.

    Raises:
        TooMany: it is one too many; the transaction must not be committed.
    """
    if key_id is None:
        return
    job.key_id = key_id
    if not most:
        return
    # Two requests of one key that come at the same moment are counted one after the other.
    tx.session.scalar(select(tables.ApiKey.id).where(tables.ApiKey.id == key_id).with_for_update())
    tx.session.flush()
    found = tx.session.scalar(
        select(func.count()).where(tables.Job.key_id == key_id, tables.Job.state.not_in(FINISHED))
    )
    if (found or 0) > most:
        raise TooMany(
            f"this API key may have {most} jobs in flight; wait for one to end, or cancel one",
            code="too_many_jobs",
            retry_after=RETRY_SECONDS,
        )
