"""All rows of the database as JSON values, and back: the same for SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import JSON, DateTime, MetaData, Table, event, func, insert, select
from sqlalchemy.orm import Session

from app.db.session import Database, Transaction
from app.db.tables import Base, UtcDateTime

PASSING = {"workers"}
"""Tables that tell of processes, which are others after a restore."""

AT_ONCE = 500
"""Rows that are read or written at a time."""


@contextmanager
def snapshot(db: Database) -> Iterator[Session]:
    """A session that sees the database as it was at one moment, however long it reads."""
    with db.read() as session:
        if session.get_bind().dialect.name == "postgresql":
            session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        yield session


def table_names() -> list[str]:
    """The tables of this release whose rows are kept, those that others refer to first."""
    return [table.name for table in Base.metadata.sorted_tables if table.name not in PASSING]


def exported(session: Session, name: str) -> Iterator[dict[str, Any]]:
    """Every row of a table; moments as RFC 3339, what has no value left out."""
    table = Base.metadata.tables[name]
    found = session.execute(
        select(table).order_by(*table.primary_key), execution_options={"yield_per": AT_ONCE}
    )
    for row in found.mappings():
        yield {column: _said(value) for column, value in row.items() if value is not None}


def reflected(tx: Transaction) -> dict[str, Table]:
    """The tables that the database has at its revision, which may be an older release's."""
    metadata = MetaData()
    event.listen(metadata, "column_reflect", _as_ours, propagate=True)
    metadata.reflect(tx.session.connection())
    return dict(metadata.tables)


def holds_rows(session: Session) -> list[str]:
    """The tables of this release that are not empty."""
    return [
        name
        for name in table_names()
        if session.scalar(select(func.count()).select_from(Base.metadata.tables[name]))
    ]


def imported(tx: Transaction, table: Table, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write rows that were exported; gives how many there were."""
    moments = [column.name for column in table.columns if isinstance(column.type, UtcDateTime)]
    nothing = {column.name: None for column in table.columns}
    rows = iter(rows)
    count = 0
    while batch := [{**nothing, **row} for row in islice(rows, AT_ONCE)]:
        for row in batch:
            for name in moments:
                if row[name] is not None:
                    row[name] = datetime.fromisoformat(row[name])
        tx.session.execute(insert(table), batch)
        count += len(batch)
    return count


def _said(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _as_ours(_inspector: Any, _table: Any, column: dict[str, Any]) -> None:
    """A reflected column takes values in the way in which this service's own tables do."""
    if isinstance(column["type"], DateTime):
        column["type"] = UtcDateTime()
    elif isinstance(column["type"], JSON):
        column["type"] = JSON(none_as_null=True)
