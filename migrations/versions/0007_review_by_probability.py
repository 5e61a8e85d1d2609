"""Routers compare ``review_below`` with a probability instead of a margin between scores.

A margin has no meaning as a probability. A small one would let almost every message pass without a review, so
each router with a margin gets 1: it sends every message to review until someone sets a probability.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_ROUTERS = sa.table("routers", sa.column("name", sa.String), sa.column("config", sa.JSON(none_as_null=True)))


def upgrade() -> None:
    connection = op.get_bind()
    for name, config in connection.execute(sa.select(_ROUTERS.c.name, _ROUTERS.c.config)).all():
        if config.get("review_below") is not None:
            connection.execute(
                sa.update(_ROUTERS)
                .where(_ROUTERS.c.name == name)
                .values(config={**config, "review_below": 1.0})
            )


def downgrade() -> None:
    """Keep the values: a probability is a small margin, and the margins are unknown."""
