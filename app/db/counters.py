"""Counters in the database: they outlive the process that counts, and every process reads the same number.

Workers have no metrics that Prometheus reads, so ended jobs, deleted rows and files, and backups are counted
here. ``app.health.metrics`` returns the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias, cast, get_args

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.db.session import Transaction
from app.db.tables import StoredCounter
from app.db.upsert import upsert

Name: TypeAlias = Literal["job", "retention_pass", "retention_deleted", "backup"]


@dataclass(frozen=True)
class CounterValue:
    """A counter.

    Attributes:
        number: number of events.
        total: sum of what the events added, for example seconds.
        updated_at: time of the last event.
    """

    number: int
    total: float
    updated_at: datetime


def count(tx: Transaction, name: Name, label: str = "", *, number: int = 1, total: float = 0.0) -> None:
    """Count events. Give it a transaction of its own: the row stays locked until the commit.

    Args:
        tx: the transaction.
        name: name of the counter.
        label: what is counted.
        number: number of events.
        total: what the events add to the sum.
    """
    values = {"number": number, "total": total, "updated_at": tx.now}
    statement = upsert(tx, StoredCounter, name=name, label=label, **values)
    tx.session.execute(
        statement.on_conflict_do_update(
            index_elements=["name", "label"],
            set_={
                "number": StoredCounter.number + number,
                "total": StoredCounter.total + total,
                "updated_at": tx.now,
            },
        )
    )


def read(session: Session) -> dict[Name, dict[str, CounterValue]]:
    """Return the values of all counters by their names, and by what is counted."""
    values: dict[Name, dict[str, CounterValue]] = {name: {} for name in get_args(Name)}
    for row in session.scalars(select(StoredCounter)):
        values[cast("Name", row.name)][row.label] = CounterValue(row.number, row.total, row.updated_at)
    return values
