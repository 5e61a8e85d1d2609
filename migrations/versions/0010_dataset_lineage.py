"""Data sets that are made from others: their lineage, and the data sets that a job reads meanwhile."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("datasets", sa.Column("lineage", sa.JSON(none_as_null=True), nullable=True))
    op.create_table(
        "dataset_sources",
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("source_id", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_dataset_sources_dataset_id_datasets"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["datasets.id"], name=op.f("fk_dataset_sources_source_id_datasets")
        ),
        sa.PrimaryKeyConstraint("dataset_id", "source_id", name=op.f("pk_dataset_sources")),
    )
    op.create_index("ix_dataset_sources_source_id", "dataset_sources", ["source_id"])


def downgrade() -> None:
    op.drop_table("dataset_sources")
    op.drop_column("datasets", "lineage")
