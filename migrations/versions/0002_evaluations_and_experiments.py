"""Tables of evaluations and experiments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "evaluations",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("of_training", sa.Boolean(), nullable=False),
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("request", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("content", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["model", "version"],
            ["model_versions.model", "model_versions.version"],
            name=op.f("fk_evaluations_model_version_model_versions"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluations")),
    )
    with op.batch_alter_table("evaluations", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_evaluations_job_id"), ["job_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_evaluations_model_version_id"), ["model", "version", "id"], unique=False
        )

    op.create_table(
        "experiments",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=True),
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("dataset_sha256", sa.String(length=64), nullable=True),
        sa.Column("request", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_experiments_job_id_jobs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_experiments")),
    )
    with op.batch_alter_table("experiments", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_experiments_dataset_id"), ["dataset_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_experiments_state"), ["state"], unique=False)

    op.create_table(
        "experiment_cells",
        sa.Column("experiment_id", sa.String(length=40), nullable=False),
        sa.Column("configuration", sa.Integer(), nullable=False),
        sa.Column("fold", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment_id"],
            ["experiments.id"],
            name=op.f("fk_experiment_cells_experiment_id_experiments"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_experiment_cells_job_id_jobs")),
        sa.PrimaryKeyConstraint("experiment_id", "configuration", "fold", name=op.f("pk_experiment_cells")),
        sa.UniqueConstraint("job_id", name=op.f("uq_experiment_cells_job_id")),
    )


def downgrade() -> None:
    op.drop_table("experiment_cells")
    op.drop_table("experiments")
    op.drop_table("evaluations")
