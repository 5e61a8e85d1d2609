"""Count the changes of what requests read from memory, so that every process notices them.

Each API process keeps a snapshot of keys, aliases and routers; see ``app.serving.state``. A transaction
that changes one of them increments the revision of its part, in its last statement before the commit. It then
holds the lock on the revision until the commit. So a process that reads a revision sees every transaction
that has incremented it before, and other transactions wait only for a commit.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeAlias

from sqlalchemy import Connection, Delete, Engine, Executable, Insert, Update, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.db.tables import CatalogRevision

Part: TypeAlias = Literal["keys", "models", "routers"]
PARTS: tuple[Part, ...] = ("keys", "models", "routers")

CHANGES = "covey_catalog_changes"
"""Execution option of a connection: the set to which its statements add the parts that they change."""

UNCHANGED = "covey_catalog_unchanged"
"""Execution option of a statement that changes only columns that are not in the snapshot."""

_PART_OF: Mapping[str, Part] = {
    "api_keys": "keys",
    "authentication_state": "keys",
    "model_aliases": "models",
    "model_versions": "models",
    "routers": "routers",
}
"""The part of the snapshot that contains rows of a table."""


def record_changes(engine: Engine) -> None:
    """Let the connections of an engine record which parts their statements change."""
    event.listen(engine, "before_execute", _record)


def _record(
    connection: Connection,
    statement: Executable,
    _multiparams: Any,
    _params: Any,
    execution_options: Mapping[str, Any],
) -> None:
    if not isinstance(statement, Insert | Update | Delete):
        return
    changes: set[Part] | None = connection.get_execution_options().get(CHANGES)
    if changes is None or execution_options.get(UNCHANGED, False):
        return
    table = getattr(statement.table, "name", "")
    part = _PART_OF.get(table)
    # A new version changes nothing until an alias or a request names it.
    if part is not None and not (table == "model_versions" and isinstance(statement, Insert)):
        changes.add(part)


def increment(session: Session, parts: Collection[Part]) -> None:
    """Increment the revisions of parts, in the last statement of a transaction."""
    connection = session.connection()
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    # A table that is dropped and created again must not repeat a revision, so the first one is a time.
    first = time.time_ns() // 1000
    # In the order of their names, so that two transactions do not wait for each other.
    rows = insert(CatalogRevision).values([{"part": part, "revision": first} for part in sorted(parts)])
    session.execute(
        rows.on_conflict_do_update(index_elements=["part"], set_={"revision": CatalogRevision.revision + 1})
    )
