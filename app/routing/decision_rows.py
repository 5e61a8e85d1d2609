"""The rows of new decisions. One statement inserts a group of them together with their labels.

``app.db.tables.Decision`` is the one definition of the columns. The statements follow from it.

A statement is the only call of a group to the database. Each such call gives up the interpreter's lock, and
with a busy event loop it takes up to the switch interval (0.5 ms) to get it back. The labels of the
decisions are therefore inserted by the same statement: by its second part on PostgreSQL, and by a trigger on
SQLite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, TypeAlias

from sqlalchemy import JSON, Connection, Dialect, select, tuple_
from sqlalchemy.exc import DBAPIError

from app.api.structs import to_json
from app.db.tables import RECORDED, Decision
from app.routing import schemas
from app.routing.decision_content import searchable_label


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A decision to record.

    Attributes:
        decision: the decision.
        router_id: id of the router.
        message_key: identifies the message; a router has one decision for each key.
        response: the part of the decision that is stored, a JSON text.
        kept_message: key of the file with the message; None if the message is not kept.
        kept_until: when the file is deleted; None if the message is not kept.
    """

    decision: schemas.Decision
    router_id: str
    message_key: str
    response: str
    kept_message: str | None = None
    kept_until: datetime | None = None


COLUMNS: Final = [column for column in Decision.__table__.columns if RECORDED in column.info]
"""Columns that a new decision has. The database's clock gives one more, the time of the decision."""

_NAMES: Final = [column.name for column in COLUMNS]
_read_values: Final[Callable[[DecisionRow], tuple[Any, ...]]] = attrgetter(
    *(column.info[RECORDED] for column in COLUMNS)
)
_Stored: TypeAlias = dict[tuple[str, str], tuple[str, dict[str, Any]]]


def prepare(connection: Connection) -> None:
    """Prepare a connection for ``insert``."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_CREATE_TRIGGER)


def release(connection: Connection) -> None:
    """Undo ``prepare``, because the connection returns to the pool and can then serve a restore."""
    if connection.dialect.name == "sqlite":
        with suppress(DBAPIError):  # the connection is closed
            connection.exec_driver_sql("DROP TRIGGER temp.insert_decision_labels")


def insert(connection: Connection, rows: Sequence[DecisionRow]) -> int:
    """Insert the rows whose message has no decision. Return the number of inserted rows."""
    dialect = connection.dialect
    values = [_bound_values(row, dialect) for row in rows]
    if dialect.name == "sqlite":
        parameters = tuple([value for of_row in values for value in of_row])
        return connection.exec_driver_sql(_sqlite_insert(len(rows)), parameters).rowcount
    records = [
        dict(zip(_NAMES, of_row, strict=True), labels=_labels(row.decision))
        for row, of_row in zip(rows, values, strict=True)
    ]
    statement = _postgresql_insert(dialect)
    inserted: int = connection.exec_driver_sql(statement, (to_json(records).decode(),)).scalar_one()
    return inserted


def find(connection: Connection, rows: Sequence[DecisionRow]) -> _Stored:
    """Return id and content of the decisions that exist, by router and message."""
    messages = [(row.router_id, row.message_key) for row in rows]
    statement = select(Decision.router_id, Decision.message_key, Decision.id, Decision.response).where(
        tuple_(Decision.router_id, Decision.message_key).in_(messages)
    )
    found = connection.execute(statement).all()
    return {(router_id, key): (id_, response) for router_id, key, id_, response in found}


def _bound_values(row: DecisionRow, dialect: Dialect) -> list[Any]:
    """Return the values of ``COLUMNS`` as the driver takes them."""
    values = list(_read_values(row))
    for position, convert in _converters(dialect):
        values[position] = convert(values[position])
    return values


@lru_cache(maxsize=4)
def _converters(dialect: Dialect) -> list[tuple[int, Callable[[Any], Any]]]:
    """Return how the types of the columns convert their values, by the positions of the columns."""
    converters: list[tuple[int, Callable[[Any], Any]]] = []
    for position, column in enumerate(COLUMNS):
        convert = column.type.dialect_impl(dialect).bind_processor(dialect)
        if convert is not None and not isinstance(column.type, JSON):  # it is JSON already
            converters.append((position, convert))
    return converters


def _labels(decision: schemas.Decision) -> list[str]:
    return [searchable_label(department.label) for department in decision.departments]


@lru_cache(maxsize=256)
def _sqlite_insert(n_rows: int) -> str:
    row = f"({'?, ' * len(COLUMNS)}strftime('%Y-%m-%d %H:%M:%f000', 'now'))"
    values, names = ", ".join([row] * n_rows), ", ".join(_NAMES)
    return (
        f"INSERT INTO decisions ({names}, created_at) VALUES {values} "  # noqa: S608 - constants
        "ON CONFLICT DO NOTHING"
    )


_CREATE_TRIGGER = """
CREATE TEMP TRIGGER insert_decision_labels AFTER INSERT ON main.decisions BEGIN
    INSERT OR IGNORE INTO decision_labels (router_id, label, decision_id)
    SELECT NEW.router_id, json_extract(value, '$.label'), NEW.id
    FROM json_each(NEW.response, '$.departments');
END
"""
"""Inserts the labels of each decision that the connection inserts; see SQLite's CREATE TRIGGER."""


@lru_cache(maxsize=4)
def _postgresql_insert(dialect: Dialect) -> str:
    """Return the statement that inserts decisions with their labels, and returns the number of decisions.

    Its text is the same for groups of all sizes, and its only parameter is a text: the driver would take
    longer for many parameters.
    """
    types, values = [], []
    for column in COLUMNS:
        if isinstance(column.type, JSON):  # a text, because it can contain what PostgreSQL cannot decode
            types.append(f"{column.name} text")
            values.append(f"{column.name}::json")
        else:
            types.append(f"{column.name} {column.type.compile(dialect)}")
            values.append(column.name)
    return f"""
WITH given AS (
    SELECT * FROM json_to_recordset(%s::json) AS record ({", ".join(types)}, labels json)
), new AS (
    INSERT INTO decisions ({", ".join(_NAMES)}, created_at)
    SELECT {", ".join(values)}, clock_timestamp()
    FROM given
    ON CONFLICT DO NOTHING
    RETURNING id, router_id
), new_labels AS (
    INSERT INTO decision_labels (router_id, label, decision_id)
    SELECT router_id, label, new.id
    FROM new JOIN given USING (id, router_id), json_array_elements_text(given.labels) AS label
)
SELECT count(*) FROM new
"""  # noqa: S608 - constants
