"""When the task of a queued job was sent to the broker."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_IS_SENT = sa.text("sent_at IS NOT NULL")


def upgrade() -> None:
    op.add_column("jobs", sa.Column("sent_at", sa.DateTime(timezone=True)))
    op.add_column("workers", sa.Column("broker_away_since", sa.DateTime(timezone=True)))
    op.create_index("ix_jobs_sent_at", "jobs", ["sent_at"], postgresql_where=_IS_SENT, sqlite_where=_IS_SENT)


def downgrade() -> None:
    # The earlier release claims queued jobs by their order.
    op.execute(
        "UPDATE jobs SET claim_order = 1000 * CASE kind WHEN 'ingest' THEN 0 WHEN 'evaluate' THEN 1"
        " WHEN 'batch_prediction' THEN 1 WHEN 'cell' THEN 3 ELSE 2 END - priority WHERE sent_at IS NOT NULL"
    )
    op.drop_column("workers", "broker_away_since")
    op.drop_index("ix_jobs_sent_at", "jobs")
    op.drop_column("jobs", "sent_at")
