"""Columns, indexes and constraints for polling workers, races, retention and keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

JOBS = sa.table(
    "jobs",
    sa.column("kind", sa.String),
    sa.column("priority", sa.Integer),
    sa.column("state", sa.String),
    sa.column("key_id", sa.String),
    sa.column("claim_order", sa.Integer),
    sa.column("claim_key", sa.String),
)


def upgrade() -> None:
    _upgrade_jobs()
    _upgrade_references()
    _upgrade_retention()
    _upgrade_keys()


def downgrade() -> None:
    _downgrade_keys()
    _downgrade_retention()
    _downgrade_references()
    _downgrade_jobs()


def _upgrade_jobs() -> None:
    """Replace the time of the last notification by the order in which workers claim jobs."""
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_column("notified_at")
        batch_op.add_column(sa.Column("priority", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("claim_order", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("claim_key", sa.String(length=40), nullable=True))
    claim_class = sa.case({"ingest": 0, "evaluate": 1, "cell": 3}, value=JOBS.c.kind, else_=2)
    op.execute(JOBS.update().values(priority=0, claim_key=sa.func.coalesce(JOBS.c.key_id, "")))
    op.execute(JOBS.update().where(JOBS.c.state == "queued").values(claim_order=1000 * claim_class))
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.alter_column("priority", existing_type=sa.Integer(), nullable=False)
        batch_op.alter_column("claim_key", existing_type=sa.String(length=40), nullable=False)
    op.create_index(
        op.f("ix_jobs_claim_order_claim_key_created_at_id"),
        "jobs",
        ["claim_order", "claim_key", "created_at", "id"],
        postgresql_where=sa.text("claim_order IS NOT NULL"),
        sqlite_where=sa.text("claim_order IS NOT NULL"),
    )


def _downgrade_jobs() -> None:
    op.drop_index(op.f("ix_jobs_claim_order_claim_key_created_at_id"), "jobs")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_column("claim_key")
        batch_op.drop_column("claim_order")
        batch_op.drop_column("priority")
        batch_op.add_column(sa.Column("notified_at", sa.DateTime(timezone=True), nullable=True))


ROUTERS = sa.table(
    "routers",
    sa.column("name", sa.String),
    sa.column("model", sa.String),
    sa.column("config", sa.JSON),
    sa.column("version", sa.Integer),
    sa.column("alias", sa.String),
    sa.column("shadow_version", sa.Integer),
    sa.column("shadow_alias", sa.String),
)
MODELS = sa.table(
    "models",
    sa.column("name", sa.String),
    sa.column("last_version", sa.Integer),
    sa.column("created_at", sa.DateTime(timezone=True)),
)
VERSIONS = sa.table("model_versions", sa.column("model", sa.String), sa.column("version", sa.Integer))
ALIASES = sa.table("model_aliases", sa.column("model", sa.String), sa.column("alias", sa.String))
ROUTER_REFERENCES = (
    ("version", sa.Integer(), "model_versions", "version"),
    ("alias", sa.String(length=64), "model_aliases", "alias"),
    ("shadow_version", sa.Integer(), "model_versions", "version"),
    ("shadow_alias", sa.String(length=64), "model_aliases", "alias"),
)
NEW_INDEXES = (
    ("jobs", ["dataset_id", "state"]),
    ("jobs", ["model", "state"]),
    ("model_versions", ["artifact_key"]),
    ("datasets", ["upload_key"]),
    ("datasets", ["storage_key"]),
)
OLD_INDEXES = (("jobs", ["dataset_id"]), ("jobs", ["model"]), ("experiments", ["dataset_id"]))


def _upgrade_references() -> None:
    with op.batch_alter_table("routers", schema=None) as batch_op:
        for column, type_, _, _ in ROUTER_REFERENCES:
            batch_op.add_column(sa.Column(column, type_, nullable=True))
    _fill_router_references()
    with op.batch_alter_table("routers", schema=None) as batch_op:
        batch_op.create_foreign_key(batch_op.f("fk_routers_model_models"), "models", ["model"], ["name"])
        for column, _, table, key in ROUTER_REFERENCES:
            batch_op.create_foreign_key(
                batch_op.f(f"fk_routers_model_{column}_{table}"), table, ["model", column], ["model", key]
            )
    _change_indexes(create=NEW_INDEXES, drop=OLD_INDEXES)


def _downgrade_references() -> None:
    _change_indexes(create=OLD_INDEXES, drop=NEW_INDEXES)
    with op.batch_alter_table("routers", schema=None) as batch_op:
        for column, _, table, _ in ROUTER_REFERENCES:
            batch_op.drop_constraint(batch_op.f(f"fk_routers_model_{column}_{table}"), type_="foreignkey")
        batch_op.drop_constraint(batch_op.f("fk_routers_model_models"), type_="foreignkey")
        for column, _, _, _ in ROUTER_REFERENCES:
            batch_op.drop_column(column)


def _change_indexes(
    *, create: Sequence[tuple[str, list[str]]], drop: Sequence[tuple[str, list[str]]]
) -> None:
    for table, columns in create:
        op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, columns, unique=False)
    for table, columns in drop:
        op.drop_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table_name=table)


def _fill_router_references() -> None:
    """Copy the references of each router from its configuration.

    In earlier releases a race could delete what a router uses. Such a router is kept, without the reference,
    so that it can be changed: its model exists without versions.
    """
    connection = op.get_bind()
    models = set(connection.scalars(sa.select(MODELS.c.name)))
    versions = {(model, version) for model, version in connection.execute(sa.select(VERSIONS))}
    aliases = {(model, alias) for model, alias in connection.execute(sa.select(ALIASES))}
    for name, model, config in connection.execute(
        sa.select(ROUTERS.c.name, ROUTERS.c.model, ROUTERS.c.config)
    ).all():
        if model not in models:
            models.add(model)
            row = {"name": model, "last_version": 0, "created_at": datetime.now(UTC)}
            connection.execute(MODELS.insert().values(row))
        values = {}
        for reference, prefix in ((config.get("version", "live"), ""), (config.get("shadow"), "shadow_")):
            if (model, reference) in versions:
                values[f"{prefix}version"] = reference
            elif (model, reference) in aliases:
                values[f"{prefix}alias"] = reference
        if values:
            connection.execute(ROUTERS.update().where(ROUTERS.c.name == name).values(values))


def _upgrade_retention() -> None:
    op.create_index("ix_model_versions_training_job_id", "model_versions", ["training_job_id"])
    op.create_index("ix_experiments_job_id", "experiments", ["job_id"])
    op.create_index("ix_idempotency_records_created_at", "idempotency_records", ["created_at"])
    op.create_table(
        "file_holds",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_file_holds")),
    )


def _downgrade_retention() -> None:
    op.drop_table("file_holds")
    op.drop_index("ix_idempotency_records_created_at", "idempotency_records")
    op.drop_index("ix_experiments_job_id", "experiments")
    op.drop_index("ix_model_versions_training_job_id", "model_versions")


def _upgrade_keys() -> None:
    state = op.create_table(
        "authentication_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("required", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_authentication_state")),
    )
    keys = sa.table("api_keys", sa.column("id", sa.String))
    if op.get_bind().scalar(sa.select(keys.c.id).limit(1)) is not None:
        op.bulk_insert(state, [{"id": 1, "required": True}])


def _downgrade_keys() -> None:
    op.drop_table("authentication_state")
