"""Creates, claims and reads jobs in the database, for tests of the job queue."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select, text
from waiting import wait_for

from app.db import tables
from app.db.session import Database
from app.jobs import queue
from app.jobs.handing_out import hand_out
from app.jobs.kinds import QUEUE_OF, QUEUES, Kind


def queued(
    database: Database,
    spec: dict[str, Any] | None = None,
    *,
    kind: Kind = "train",
    priority: int = 0,
    key_id: str | None = None,
) -> str:
    """Queue a job, and return its id."""
    with database.write() as tx:
        job = queue.enqueue(tx, kind, spec or {}, model="test", priority=priority, key_id=key_id)
        return job.id


def claimed(database: Database, job_id: str, owner: str = "wrk_1", *, seconds: float = 10) -> queue.Claim:
    """Claim a queued job, whatever the order of the queue."""
    claim = queue.claim(database, job_id, owner, lease_seconds=seconds)
    assert claim is not None
    return claim


def claim_next(database: Database, owner: str = "wrk_1", *, seconds: float = 60) -> queue.Claim | None:
    """Hand out one job of each queue, and claim the first, as a worker for all queues does."""
    hand_out(database, ahead=1)
    with database.read() as session:
        sent = session.execute(select(tables.Job.id, tables.Job.kind).where(tables.Job.sent_at.is_not(None)))
        by_queue = {QUEUE_OF[kind]: id_ for id_, kind in sent}
    for name in QUEUES:
        if name in by_queue:
            return claimed(database, by_queue[name], owner, seconds=seconds)
    return None


def job(database: Database, job_id: str) -> tables.Job:
    """Return the row of a job."""
    with database.read() as session:
        return session.get_one(tables.Job, job_id)


def events(database: Database, job_id: str) -> list[str]:
    """Return the types of a job's events in order, and check that their numbers have no gaps."""
    with database.read() as session:
        rows = session.scalars(
            select(tables.JobEvent).where(tables.JobEvent.job_id == job_id).order_by(tables.JobEvent.seq)
        ).all()
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    return [row.type for row in rows]


def all_rows(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables, to check that nothing has changed."""
    with database.read() as session:
        return {
            table.name: sorted((tuple(row) for row in session.execute(select(table))), key=repr)
            for table in tables.Base.metadata.sorted_tables
        }


def lock_waits(database: Database) -> int:
    """Count the sessions of a PostgreSQL database that wait for the lock of another one."""
    query = text(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with database.read() as session:
        count: int = session.execute(query).scalar_one()
        return count


def wait_for_lock_wait(database: Database) -> None:
    """Wait until a session of a PostgreSQL database waits for the lock of another one."""
    wait_for(lambda: lock_waits(database) or None, what="a session that waits for a lock")
