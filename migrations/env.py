"""Runs migrations in the transaction that holds the migration lock."""

from __future__ import annotations

from alembic import context

from app.db.tables import Base

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=True,
    compare_type=True,
    transaction_per_migration=False,
)
context.run_migrations()
