"""The random sample of messages that people review, and the comparisons of versions on the same documents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_ROUTERS = sa.table("routers", sa.column("name", sa.String), sa.column("config", sa.JSON(none_as_null=True)))


def upgrade() -> None:
    op.create_table(
        "version_comparisons",
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("documents", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("compared_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["model"], ["models.name"], name=op.f("fk_version_comparisons_model_models"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("model", "number", name=op.f("pk_version_comparisons")),
    )
    op.drop_index("ix_decisions_router_id_disposition_feedback_state_id", "decisions")
    op.drop_index("ix_decisions_disposition_id", "decisions")
    op.add_column("decisions", sa.Column("sampled", sa.Boolean(), server_default=sa.false(), nullable=False))
    _create_index(
        "(sampled OR disposition = 'review') AND feedback_state IS NULL", "router_id", "id", "sampled"
    )
    _create_index("sampled", "router_id", "sampled", "id")
    _create_index("sampled OR disposition = 'review'", "id", "sampled")


def downgrade() -> None:
    for columns in ("router_id_id_sampled", "router_id_sampled_id", "id_sampled"):
        op.drop_index(f"ix_decisions_{columns}", "decisions")
    op.drop_column("decisions", "sampled")
    _create_index(
        "disposition = 'review' AND feedback_state IS NULL",
        *("router_id", "disposition", "feedback_state", "id"),
    )
    _create_index("disposition = 'review'", "disposition", "id")
    op.drop_table("version_comparisons")
    # The earlier release rejects settings of a router that it does not know.
    connection = op.get_bind()
    for name, config in connection.execute(sa.select(_ROUTERS.c.name, _ROUTERS.c.config)).all():
        kept = {field: value for field, value in config.items() if field != "review_sample"}
        connection.execute(sa.update(_ROUTERS).where(_ROUTERS.c.name == name).values(config=kept))


def _create_index(condition: str, *columns: str) -> None:
    op.create_index(
        f"ix_decisions_{'_'.join(columns)}",
        "decisions",
        [*columns],
        postgresql_where=sa.text(condition),
        sqlite_where=sa.text(condition.replace("sampled", "sampled = 1")),  # as in the statements for SQLite
    )
