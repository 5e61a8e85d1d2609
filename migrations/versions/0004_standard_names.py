"""Standard names for columns, event types and callers. Drops an index that no query uses."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

COLUMNS = (
    ("jobs", "rung_at", "notified_at"),
    ("jobs", "setbacks", "consecutive_losses"),
    ("workers", "seen_at", "last_seen_at"),
    ("decisions", "answer", "response"),
    ("idempotency_records", "answer", "response"),
    ("api_keys", "previous_until", "previous_secret_expires_at"),
)
EVENTS = sa.table("job_events", sa.column("type", sa.String))
RECORDS = sa.table("idempotency_records", sa.column("caller", sa.String))


def upgrade() -> None:
    for table, old, new in COLUMNS:
        _rename_column(table, old, new)
    _rename_unique_column("api_keys", "previous_sha256", "previous_secret_sha256")
    with op.batch_alter_table("model_versions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_model_versions_artifact_sha256"))
    op.execute(EVENTS.update().where(EVENTS.c.type == "handed_back").values(type="released"))
    op.execute(RECORDS.update().where(RECORDS.c.caller == "open").values(caller="anonymous"))


def downgrade() -> None:
    op.execute(RECORDS.update().where(RECORDS.c.caller == "anonymous").values(caller="open"))
    op.execute(EVENTS.update().where(EVENTS.c.type == "released").values(type="handed_back"))
    with op.batch_alter_table("model_versions", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_model_versions_artifact_sha256"), ["artifact_sha256"], unique=False
        )
    _rename_unique_column("api_keys", "previous_secret_sha256", "previous_sha256")
    for table, old, new in reversed(COLUMNS):
        _rename_column(table, new, old)


def _rename_column(table: str, old: str, new: str) -> None:
    with op.batch_alter_table(table, schema=None) as batch_op:
        batch_op.alter_column(old, new_column_name=new)


def _rename_unique_column(table: str, old: str, new: str) -> None:
    """Rename a column and its constraint in three steps, because a batch cannot refer to a renamed column."""
    with op.batch_alter_table(table, schema=None) as batch_op:
        batch_op.drop_constraint(batch_op.f(f"uq_{table}_{old}"), type_="unique")
    _rename_column(table, old, new)
    with op.batch_alter_table(table, schema=None) as batch_op:
        batch_op.create_unique_constraint(batch_op.f(f"uq_{table}_{new}"), [new])
