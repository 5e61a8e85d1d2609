"""Table of the versions between which routers split their messages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "router_versions",
        sa.Column("router", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("alias", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(
            ["router"], ["routers.name"], name=op.f("fk_router_versions_router_routers"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["model", "version"],
            ["model_versions.model", "model_versions.version"],
            name=op.f("fk_router_versions_model_version_model_versions"),
        ),
        sa.ForeignKeyConstraint(
            ["model", "alias"],
            ["model_aliases.model", "model_aliases.alias"],
            name=op.f("fk_router_versions_model_alias_model_aliases"),
        ),
        sa.PrimaryKeyConstraint("router", "position", name=op.f("pk_router_versions")),
    )
    for column in ("version", "alias"):
        op.create_index(f"ix_router_versions_model_{column}", "router_versions", ["model", column])


def downgrade() -> None:
    op.drop_table("router_versions")
