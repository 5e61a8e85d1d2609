"""Columns, indexes and constraints for polling workers, races, retention and keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _upgrade_jobs()
    _upgrade_references()
    _upgrade_retention()
    _upgrade_keys()


def downgrade() -> None:
    _downgrade_keys()
    _downgrade_retention()
    _downgrade_references()
    _downgrade_jobs()


def _upgrade_jobs() -> None:
    pass


def _downgrade_jobs() -> None:
    pass


def _upgrade_references() -> None:
    pass


def _downgrade_references() -> None:
    pass


def _upgrade_retention() -> None:
    op.create_index("ix_model_versions_training_job_id", "model_versions", ["training_job_id"])
    op.create_index("ix_experiments_job_id", "experiments", ["job_id"])
    op.create_index("ix_idempotency_records_created_at", "idempotency_records", ["created_at"])
    op.create_table(
        "file_holds",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_file_holds")),
    )


def _downgrade_retention() -> None:
    op.drop_table("file_holds")
    op.drop_index("ix_idempotency_records_created_at", "idempotency_records")
    op.drop_index("ix_experiments_job_id", "experiments")
    op.drop_index("ix_model_versions_training_job_id", "model_versions")


def _upgrade_keys() -> None:
    state = op.create_table(
        "authentication_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("required", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_authentication_state")),
    )
    keys = sa.table("api_keys", sa.column("id", sa.String))
    if op.get_bind().scalar(sa.select(keys.c.id).limit(1)) is not None:
        op.bulk_insert(state, [{"id": 1, "required": True}])


def _downgrade_keys() -> None:
    op.drop_table("authentication_state")
