"""INSERT statements that can state what happens if the row already exists, for both kinds of databases."""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlalchemy.dialects import postgresql, sqlite

from app.db.session import Transaction
from app.db.tables import Base

Upsert: TypeAlias = postgresql.Insert | sqlite.Insert


def upsert(tx: Transaction, table: type[Base], **values: Any) -> Upsert:
    """Return an INSERT of one row that supports ``ON CONFLICT``.

    One statement decides whether the row exists. A SELECT before an INSERT cannot: another transaction may
    insert the row in between. If another transaction is inserting the row now, the statement waits for its
    end.
    """
    insert = postgresql.insert if tx.session.get_bind().dialect.name == "postgresql" else sqlite.insert
    return insert(table).values(**values)


def insert_if_absent(tx: Transaction, table: type[Base], **values: Any) -> bool:
    """Insert a row unless a row with the same primary key or unique value exists.

    Returns:
        Whether the row was inserted.
    """
    key = next(iter(table.__table__.primary_key))
    statement = upsert(tx, table, **values).on_conflict_do_nothing().returning(key)
    return tx.session.execute(statement).first() is not None
