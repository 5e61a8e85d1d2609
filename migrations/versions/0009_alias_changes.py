"""The history of aliases. It starts with this revision: earlier changes are unknown."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "alias_changes",
        sa.Column("model", sa.String(64), nullable=False),
        sa.Column("alias", sa.String(64), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("from_version", sa.Integer(), nullable=True),
        sa.Column("to_version", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(20), nullable=False),
        sa.Column("key_id", sa.String(40), nullable=True),
        sa.Column("job_id", sa.String(40), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["model"], ["models.name"], name=op.f("fk_alias_changes_model_models")),
        sa.PrimaryKeyConstraint("model", "alias", "revision", name=op.f("pk_alias_changes")),
    )


def downgrade() -> None:
    op.drop_table("alias_changes")
