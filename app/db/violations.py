"""Name what a violated constraint of the database is about."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlalchemy import ForeignKeyConstraint, PrimaryKeyConstraint, UniqueConstraint
from sqlalchemy.exc import IntegrityError

from app.db.tables import Base

_UNIQUE, _FOREIGN_KEY = "23505", "23503"
"""Codes (SQLSTATE) of PostgreSQL."""


def find_violation(error: IntegrityError) -> str | None:
    """Return in words which rows collided, or None if the values of one row alone violate a constraint.

    A unique constraint or a foreign key is violated if another transaction has inserted or deleted a row.
    Every other violation is a bug.
    """
    cause = error.orig
    if (name := getattr(cause, "sqlite_errorname", None)) is not None:
        unique = re.search(r"failed: (.+)", str(cause))
        if name in ("SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY") and unique is not None:
            columns = [column.strip().split(".") for column in unique[1].split(",")]
            return _same(columns[0][0], [column[-1] for column in columns])
        # SQLite does not name the foreign key.
        return "a resource that this one refers to" if name == "SQLITE_CONSTRAINT_FOREIGNKEY" else None
    if getattr(cause, "sqlstate", None) not in (_UNIQUE, _FOREIGN_KEY):
        return None
    violated = getattr(getattr(cause, "diag", None), "constraint_name", None)
    for table in Base.metadata.sorted_tables:
        for constraint in table.constraints:
            if constraint.name != violated:
                continue
            if isinstance(constraint, ForeignKeyConstraint):
                return f"{_words(constraint.referred_table.name)} that {_words(table.name)} refer to"
            if isinstance(constraint, UniqueConstraint | PrimaryKeyConstraint):
                return _same(table.name, [column.name for column in constraint.columns])
    return None


def _same(table: str, columns: Sequence[str]) -> str:
    return f"{_words(table)} with the same {' and '.join(_words(column) for column in columns)}"


def _words(name: str) -> str:
    return name.replace("_", " ")
