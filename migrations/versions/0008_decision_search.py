"""Columns and indexes that find decisions, and a table of their labels.

The columns repeat parts of the decision, which is a JSON text. Both databases would read the JSON of every
row to find a few. The rows are read and written in batches, because a database can have millions of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

BATCH_SIZE = 1000
MAX_MESSAGE_ID = 500

_COLUMNS: tuple[tuple[str, Any], ...] = (
    ("disposition", sa.String(length=20)),
    ("model", sa.String(length=64)),
    ("version", sa.Integer()),
    ("message_id", sa.String(length=MAX_MESSAGE_ID)),
    ("set_probability", sa.Float()),
    ("feedback_state", sa.String(length=20)),
    ("kept_message", sa.String(length=200)),
    ("kept_until", sa.DateTime(timezone=True)),
)
_INDEXES: tuple[tuple[Sequence[str], str | None], ...] = (
    (("router_id", "disposition", "id"), None),
    (("router_id", "version", "id"), None),
    (("router_id", "message_id", "id"), None),
    (("router_id", "feedback_state", "id"), "feedback_state IS NOT NULL"),
    (
        ("router_id", "disposition", "feedback_state", "id"),
        "disposition = 'review' AND feedback_state IS NULL",
    ),
    (("kept_message",), "kept_message IS NOT NULL"),
    (("kept_until",), "kept_until IS NOT NULL"),
)

_DECISIONS = sa.table(
    "decisions",
    sa.column("id", sa.String),
    sa.column("router_id", sa.String),
    sa.column("response", sa.JSON(none_as_null=True)),
    sa.column("feedback", sa.JSON(none_as_null=True)),
    *(sa.column(name, type_) for name, type_ in _COLUMNS),
)
_LABELS = sa.table(
    "decision_labels",
    sa.column("router_id", sa.String),
    sa.column("label", sa.String),
    sa.column("decision_id", sa.String),
)


def upgrade() -> None:
    for name, type_ in _COLUMNS:
        op.add_column("decisions", sa.Column(name, type_, nullable=True))
    op.create_table(
        "decision_labels",
        sa.Column("router_id", sa.String(length=40), nullable=False),
        sa.Column("label", sa.String(length=500), nullable=False),
        sa.Column("decision_id", sa.String(length=40), nullable=False),
        sa.PrimaryKeyConstraint("router_id", "label", "decision_id", name=op.f("pk_decision_labels")),
        sqlite_with_rowid=False,
    )
    connection = op.get_bind()
    for rows in _batches(connection):
        _fill(connection, rows)
    for columns, condition in _INDEXES:
        where = None if condition is None else sa.text(condition)
        op.create_index(_name(columns), "decisions", [*columns], postgresql_where=where, sqlite_where=where)


def downgrade() -> None:
    for columns, _ in _INDEXES:
        op.drop_index(_name(columns), "decisions")
    op.drop_table("decision_labels")
    for name, _ in _COLUMNS:
        op.drop_column("decisions", name)


def _name(columns: Sequence[str]) -> str:
    return f"ix_decisions_{'_'.join(columns)}"


def _batches(connection: sa.Connection) -> Iterator[Sequence[Any]]:
    """Yield all decisions in order of their ids."""
    after = ""
    while rows := connection.execute(
        sa.select(_DECISIONS.c.id, _DECISIONS.c.router_id, _DECISIONS.c.response, _DECISIONS.c.feedback)
        .where(_DECISIONS.c.id > after)
        .order_by(_DECISIONS.c.id)
        .limit(BATCH_SIZE)
    ).all():
        yield rows
        after = rows[-1].id


def _fill(connection: sa.Connection, rows: Sequence[Any]) -> None:
    """Fill the columns and the labels of some decisions."""
    updates, labels = [], []
    for id_, router_id, response, feedback in rows:
        departments = {_text(department["label"], 500) for department in response.get("departments", ())}
        state = None
        if feedback is not None:
            state = "agreed" if {_text(label, 500) for label in feedback} == departments else "corrected"
        message_id = response.get("message", {}).get("message_id")
        updates.append(
            {
                "decision_id": id_,
                "disposition": response.get("disposition"),
                "model": response.get("model"),
                "version": response.get("version"),
                "message_id": None if message_id is None else _text(message_id, MAX_MESSAGE_ID),
                "set_probability": response.get("set_probability"),
                "feedback_state": state,
            }
        )
        labels += [
            {"router_id": router_id, "label": label, "decision_id": id_} for label in sorted(departments)
        ]
    connection.execute(
        sa.update(_DECISIONS)
        .where(_DECISIONS.c.id == sa.bindparam("decision_id"))
        .values({name: sa.bindparam(name) for name in updates[0] if name != "decision_id"}),
        updates,
    )
    if labels:
        connection.execute(sa.insert(_LABELS), labels)


def _text(value: str, max_length: int) -> str:
    """Return the beginning of a text without characters that a database cannot store."""
    return value.replace("\0", "").encode(errors="replace").decode()[:max_length]
