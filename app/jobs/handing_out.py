"""Hand the next jobs of each queue to the broker, and send tasks again that the broker has lost.

The rows of the database are the backlog. Of each queue only the next ``QUEUE_AHEAD`` jobs are handed
out, so that priority and fair share are decided at the last moment: by priority of the request, then the API
key with the fewest jobs that run or are handed out, then the oldest job.

A task may be sent twice without harm: the second one finds its job claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.db.session import Database, Transaction, database_now
from app.db.tables import Job
from app.jobs.kinds import QUEUE_OF, QUEUES
from app.jobs.queue import MAX_PRIORITY

ADVISORY_LOCK = 0x72656C6179  # "relay"

FROZEN_SECONDS = 5.0
"""Time after which PostgreSQL ends the transaction of a relay whose process is frozen."""

LOST_SECONDS = 2.0
"""Age from which a task that no worker has started may be lost."""


@dataclass(frozen=True)
class Task:
    """The task of a job that is to be sent.

    Attributes:
        job_id: id of the job, and of the task.
        kind: kind of the job.
    """

    job_id: str
    kind: str

    @property
    def name(self) -> str:
        """The name of the task."""
        return f"covey.{self.kind}"

    @property
    def queue(self) -> str:
        """The queue of the task."""
        return QUEUE_OF[self.kind]


def hand_out(db: Database, ahead: int) -> list[Task]:
    """Mark the next jobs of each queue as sent, and return their tasks, which the caller then sends.

    A look at queues that are full or empty only reads, so it never waits for SQLite's write lock.
    """
    with db.read() as session:
        if not _queues_with_room(session, database_now(session), ahead):
            return []
    with db.write() as tx:
        _lock(tx)
        return [
            Task(job.id, job.kind)
            for queue, room in _queues_with_room(tx.session, tx.now, ahead)
            for job in _next_jobs(tx, queue, room)
        ]


def perhaps_lost(db: Database) -> dict[str, list[Task]]:
    """Return the tasks of each queue that were sent ``LOST_SECONDS`` ago and not started."""
    found: dict[str, list[Task]] = {}
    with db.read() as session:
        before = database_now(session) - timedelta(seconds=LOST_SECONDS)
        for id_, kind in session.execute(
            select(Job.id, Job.kind).where(Job.sent_at.is_not(None), Job.sent_at < before)
        ):
            found.setdefault(QUEUE_OF[kind], []).append(Task(id_, kind))
    return found


def mark_sent(db: Database, tasks: Sequence[Task]) -> None:
    """Record that tasks are sent again."""
    with db.write() as tx:
        tx.session.execute(
            update(Job)
            .where(Job.id.in_([task.job_id for task in tasks]), Job.sent_at.is_not(None))
            .values(sent_at=tx.now)
        )


def _lock(tx: Transaction) -> None:
    """Let other relays wait until this transaction ends, or jobs of two relays could overtake each other."""
    if tx.session.get_bind().dialect.name == "postgresql":
        milliseconds = str(round(1000 * FROZEN_SECONDS))
        is_local = True  # to this transaction
        setting = func.set_config("idle_in_transaction_session_timeout", milliseconds, is_local)
        tx.session.execute(select(setting))
        tx.session.execute(select(func.pg_advisory_xact_lock(ADVISORY_LOCK)))


def _queues_with_room(session: Session, now: datetime, ahead: int) -> list[tuple[str, int]]:
    """Return the queues with a job that is due, and how many more of it may be handed out."""
    # Few rows: they are counted here, so that no index but that of ``sent_at`` serves the query.
    sent = Counter(
        QUEUE_OF[kind] for kind in session.scalars(select(Job.kind).where(Job.sent_at.is_not(None)))
    )
    return [
        (queue, ahead - sent[queue])
        for queue in QUEUES
        if sent[queue] < ahead and _next_order(session, now, queue, after=None) is not None
    ]


def _next_jobs(tx: Transaction, queue: str, n: int) -> list[Job]:
    """Mark up to n jobs of a queue as sent, in their order."""
    found: list[Job] = []
    order = _next_order(tx.session, tx.now, queue, after=None)
    while order is not None and len(found) < n:
        job = _next_of_order(tx, order)
        if job is None:
            order = _next_order(tx.session, tx.now, queue, after=order)
            continue
        job.claim_order, job.sent_at = None, tx.now
        tx.session.flush()
        found.append(job)
    return found


def _next_of_order(tx: Transaction, order: int) -> Job | None:
    for key in _keys_in_order(tx.session, tx.now, order):
        job = tx.session.scalars(
            select(Job)
            .where(Job.claim_order == order, Job.claim_key == key, Job.due_at <= tx.now)
            .order_by(Job.created_at, Job.id)
            .limit(1)
            .with_for_update(skip_locked=True)
        ).first()
        if job is not None:
            return job
    return None


def _next_order(session: Session, now: datetime, queue: str, *, after: int | None) -> int | None:
    """Return the lowest ``claim_order`` of a queue's jobs that are due, above ``after``; None if none is."""
    middle = 1000 * QUEUES.index(queue)
    lowest = middle - MAX_PRIORITY if after is None else after + 1
    return session.scalar(
        select(Job.claim_order)
        .where(Job.claim_order.between(lowest, middle + MAX_PRIORITY), Job.due_at <= now)
        .order_by(Job.claim_order)
        .limit(1)
    )


def _keys_in_order(session: Session, now: datetime, order: int) -> list[str]:
    """Return the keys of the due jobs of one ``claim_order``.

    They are ordered by the number of jobs that run or are handed out, then by their oldest job. Every step is
    a search in an index, so the cost grows with the number of keys, not of queued jobs.
    """
    of_order = Job.claim_order == order
    keys = select(func.min(Job.claim_key).label("key")).where(of_order).cte("keys", recursive=True)
    following = select(func.min(Job.claim_key)).where(of_order, Job.claim_key > keys.c.key)
    keys = keys.union_all(select(following.scalar_subquery()).where(keys.c.key.is_not(None)))

    def oldest(column: InstrumentedAttribute[Any]) -> ColumnElement[Any]:
        statement = select(column).where(of_order, Job.claim_key == keys.c.key, Job.due_at <= now)
        return statement.order_by(Job.created_at, Job.id).limit(1).scalar_subquery()

    statement = select(keys.c.key, oldest(Job.created_at).label("created_at"), oldest(Job.id).label("id"))
    rows = session.execute(statement.where(keys.c.key.is_not(None))).all()
    busy = Counter(session.scalars(select(Job.claim_key).where(Job.sent_at.is_not(None))))
    by_key = select(Job.claim_key, func.count()).where(Job.state == "running").group_by(Job.claim_key)
    busy.update({row[0]: row[1] for row in session.execute(by_key)})
    due = [row for row in rows if row.id is not None]
    return [row.key for row in sorted(due, key=lambda row: (busy[row.key], row.created_at, row.id))]
