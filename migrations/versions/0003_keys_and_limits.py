"""Previous secrets of API keys, for rotation with a grace period, and the API key of each job."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.add_column(sa.Column("previous_sha256", sa.String(length=64), nullable=True))
        batch_op.add_column(sa.Column("previous_until", sa.DateTime(timezone=True), nullable=True))
        batch_op.create_unique_constraint(batch_op.f("uq_api_keys_previous_sha256"), ["previous_sha256"])
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.add_column(sa.Column("key_id", sa.String(length=40), nullable=True))
        batch_op.create_index(batch_op.f("ix_jobs_key_id_state"), ["key_id", "state"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_jobs_key_id_state"))
        batch_op.drop_column("key_id")
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.drop_constraint(batch_op.f("uq_api_keys_previous_sha256"), type_="unique")
        batch_op.drop_column("previous_until")
        batch_op.drop_column("previous_sha256")
