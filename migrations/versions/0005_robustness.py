"""Columns, indexes and constraints for polling workers, races, retention and keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

JOBS = sa.table(
    "jobs",
    sa.column("kind", sa.String),
    sa.column("priority", sa.Integer),
    sa.column("claim_order", sa.Integer),
)


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
    """Replace the time of the last notification by the order in which workers claim jobs."""
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_column("notified_at")
        batch_op.add_column(sa.Column("priority", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("claim_order", sa.Integer(), nullable=True))
    claim_class = sa.case({"ingest": 0, "evaluate": 1, "cell": 3}, value=JOBS.c.kind, else_=2)
    op.execute(JOBS.update().values(priority=0, claim_order=1000 * claim_class))
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.alter_column("priority", existing_type=sa.Integer(), nullable=False)
        batch_op.alter_column("claim_order", existing_type=sa.Integer(), nullable=False)
    op.create_index(
        op.f("ix_jobs_claim_order_key_id_created_at_id"),
        "jobs",
        ["claim_order", "key_id", "created_at", "id"],
        postgresql_where=sa.text("state = 'queued'"),
        sqlite_where=sa.text("state = 'queued'"),
    )


def _downgrade_jobs() -> None:
    op.drop_index(op.f("ix_jobs_claim_order_key_id_created_at_id"), "jobs")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_column("claim_order")
        batch_op.drop_column("priority")
        batch_op.add_column(sa.Column("notified_at", sa.DateTime(timezone=True), nullable=True))


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
