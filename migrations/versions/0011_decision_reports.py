"""Columns of decisions that reports of routers count: unknown words, and the agreement of shadows.

Older decisions have no share of unknown words. The agreement of their shadows comes from their labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

BATCH_SIZE = 1000

_COLUMNS: tuple[tuple[str, Any], ...] = (
    ("unknown_words", sa.Float()),
    ("shadow_version", sa.Integer()),
    ("shadow_agrees", sa.Boolean()),
)
_DECISIONS = sa.table(
    "decisions",
    sa.column("id", sa.String),
    sa.column("response", sa.JSON(none_as_null=True)),
    sa.column("shadow", sa.JSON(none_as_null=True)),
    *(sa.column(name, type_) for name, type_ in _COLUMNS),
)


def upgrade() -> None:
    for name, type_ in _COLUMNS:
        op.add_column("decisions", sa.Column(name, type_, nullable=True))
    connection = op.get_bind()
    for rows in _batches(connection):
        connection.execute(
            sa.update(_DECISIONS)
            .where(_DECISIONS.c.id == sa.bindparam("decision_id"))
            .values(shadow_version=sa.bindparam("version"), shadow_agrees=sa.bindparam("agrees")),
            [
                {
                    "decision_id": id_,
                    "version": shadow["version"],
                    "agrees": {*shadow["labels"]} == {item["label"] for item in response["departments"]},
                }
                for id_, response, shadow in rows
            ],
        )


def downgrade() -> None:
    for name, _ in _COLUMNS:
        op.drop_column("decisions", name)


def _batches(connection: sa.Connection) -> Iterator[Sequence[Any]]:
    """Yield all decisions with a shadow in order of their ids."""
    after = ""
    while rows := connection.execute(
        sa.select(_DECISIONS.c.id, _DECISIONS.c.response, _DECISIONS.c.shadow)
        .where(_DECISIONS.c.id > after, _DECISIONS.c.shadow.is_not(None))
        .order_by(_DECISIONS.c.id)
        .limit(BATCH_SIZE)
    ).all():
        yield rows
        after = rows[-1].id
