"""Export and import of all rows as JSON values, in the same form for SQLite and PostgreSQL."""

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

TRANSIENT_TABLES = {"workers", "file_holds", "catalog_revisions"}
"""Tables about running processes. Their rows have no meaning after a restore."""

BATCH_SIZE = 500
"""Number of rows that are read or written at a time."""


@contextmanager
def snapshot(db: Database) -> Iterator[Session]:
    """Open a session that sees the database as it was at one moment, for any length of time."""
    with db.read() as session:
        if session.get_bind().dialect.name == "postgresql":
            session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        yield session


def table_names() -> list[str]:
    """Return the tables to export, in an order in which foreign keys refer only to earlier tables."""
    return [table.name for table in Base.metadata.sorted_tables if table.name not in TRANSIENT_TABLES]


def export_rows(session: Session, name: str) -> Iterator[dict[str, Any]]:
    """Yield every row of a table. Times are RFC 3339 strings; columns without a value are omitted."""
    table = Base.metadata.tables[name]
    result = session.execute(
        select(table).order_by(*table.primary_key), execution_options={"yield_per": BATCH_SIZE}
    )
    for row in result.mappings():
        yield {column: _to_json(value) for column, value in row.items() if value is not None}


def reflect_tables(tx: Transaction) -> dict[str, Table]:
    """Return the tables of the database at its current revision, which may be that of an older release."""
    metadata = MetaData()
    event.listen(metadata, "column_reflect", _set_column_type, propagate=True)
    metadata.reflect(tx.session.connection())
    return dict(metadata.tables)


def non_empty_tables(session: Session) -> list[str]:
    """Return the names of the tables that contain rows, except transient ones."""
    return [
        name
        for name in table_names()
        if session.scalar(select(func.count()).select_from(Base.metadata.tables[name]))
    ]


def import_rows(tx: Transaction, table: Table, rows: Iterable[Mapping[str, Any]]) -> int:
    """Insert exported rows. Return their number."""
    time_columns = [column.name for column in table.columns if isinstance(column.type, UtcDateTime)]
    defaults = {column.name: None for column in table.columns}
    rows = iter(rows)
    count = 0
    while batch := [{**defaults, **row} for row in islice(rows, BATCH_SIZE)]:
        for row in batch:
            for name in time_columns:
                if row[name] is not None:
                    row[name] = datetime.fromisoformat(row[name])
        tx.session.execute(insert(table), batch)
        count += len(batch)
    return count


def _to_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _set_column_type(_inspector: Any, _table: Any, column: dict[str, Any]) -> None:
    """Give a reflected column the type that the tables of this release use, so that it converts values."""
    if isinstance(column["type"], DateTime):
        column["type"] = UtcDateTime()
    elif isinstance(column["type"], JSON):
        column["type"] = JSON(none_as_null=True)
