"""Tables of batch predictions, and of the revisions of what requests read from memory."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _upgrade_catalog()
    _upgrade_batch_predictions()


def downgrade() -> None:
    _downgrade_batch_predictions()
    _downgrade_catalog()


def _upgrade_catalog() -> None:
    op.create_table(
        "catalog_revisions",
        sa.Column("part", sa.String(length=20), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("part", name=op.f("pk_catalog_revisions")),
    )


def _downgrade_catalog() -> None:
    op.drop_table("catalog_revisions")


def _upgrade_batch_predictions() -> None:
    op.create_table(
        "batch_predictions",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("request", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("result_key", sa.String(length=200), nullable=True),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_batch_predictions_job_id_jobs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batch_predictions")),
    )
    op.create_index("ix_batch_predictions_job_id", "batch_predictions", ["job_id"])
    op.create_index("ix_batch_predictions_result_key", "batch_predictions", ["result_key"])


def _downgrade_batch_predictions() -> None:
    op.drop_table("batch_predictions")
