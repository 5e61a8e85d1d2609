"""Tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("previous_secret_sha256", sa.String(length=64), nullable=True),
        sa.Column("previous_secret_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("previous_secret_sha256", name=op.f("uq_api_keys_previous_secret_sha256")),
        sa.UniqueConstraint("secret_sha256", name=op.f("uq_api_keys_secret_sha256")),
    )
    op.create_table(
        "authentication_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("required", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_authentication_state")),
    )
    op.create_table(
        "catalog_revisions",
        sa.Column("part", sa.String(length=20), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("part", name=op.f("pk_catalog_revisions")),
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("format", sa.String(length=20), nullable=True),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("label_tree", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("options", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("upload_key", sa.String(length=200), nullable=True),
        sa.Column("upload_encoding", sa.String(length=20), nullable=True),
        sa.Column("uploaded_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("storage_key", sa.String(length=200), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("report", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("lineage", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ready_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
    )
    op.create_index(op.f("ix_datasets_state"), "datasets", ["state"], unique=False)
    op.create_index(op.f("ix_datasets_storage_key"), "datasets", ["storage_key"], unique=False)
    op.create_index(op.f("ix_datasets_upload_key"), "datasets", ["upload_key"], unique=False)
    op.create_index(op.f("ix_datasets_uploaded_at"), "datasets", ["uploaded_at"], unique=False)
    op.create_table(
        "decision_labels",
        sa.Column("router_id", sa.String(length=40), nullable=False),
        sa.Column("label", sa.String(length=500), nullable=False),
        sa.Column("decision_id", sa.String(length=40), nullable=False),
        sa.PrimaryKeyConstraint("router_id", "label", "decision_id", name=op.f("pk_decision_labels")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "decisions",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("router_id", sa.String(length=40), nullable=False),
        sa.Column("router", sa.String(length=64), nullable=False),
        sa.Column("message_key", sa.String(length=64), nullable=False),
        sa.Column("response", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("shadow", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("feedback", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("feedback_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("feedback_by", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disposition", sa.String(length=20), nullable=True),
        sa.Column("sampled", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("model", sa.String(length=64), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("message_id", sa.String(length=500), nullable=True),
        sa.Column("set_probability", sa.Float(), nullable=True),
        sa.Column("feedback_state", sa.String(length=20), nullable=True),
        sa.Column("kept_message", sa.String(length=200), nullable=True),
        sa.Column("kept_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("unknown_words", sa.Float(), nullable=True),
        sa.Column("shadow_version", sa.Integer(), nullable=True),
        sa.Column("shadow_agrees", sa.Boolean(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decisions")),
        sa.UniqueConstraint("router_id", "message_key", name=op.f("uq_decisions_router_id_message_key")),
    )
    op.create_index(
        op.f("ix_decisions_id_sampled"),
        "decisions",
        ["id", "sampled"],
        unique=False,
        postgresql_where=sa.text("sampled OR disposition <> 'routed'"),
        sqlite_where=sa.text("sampled = 1 OR disposition <> 'routed'"),
    )
    op.create_index(
        op.f("ix_decisions_kept_message"),
        "decisions",
        ["kept_message"],
        unique=False,
        postgresql_where=sa.text("kept_message IS NOT NULL"),
        sqlite_where=sa.text("kept_message IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_decisions_kept_until"),
        "decisions",
        ["kept_until"],
        unique=False,
        postgresql_where=sa.text("kept_until IS NOT NULL"),
        sqlite_where=sa.text("kept_until IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_decisions_router_id_disposition_id"),
        "decisions",
        ["router_id", "disposition", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_decisions_router_id_feedback_state_id"),
        "decisions",
        ["router_id", "feedback_state", "id"],
        unique=False,
        postgresql_where=sa.text("feedback_state IS NOT NULL"),
        sqlite_where=sa.text("feedback_state IS NOT NULL"),
    )
    op.create_index(op.f("ix_decisions_router_id_id"), "decisions", ["router_id", "id"], unique=False)
    op.create_index(
        op.f("ix_decisions_router_id_id_sampled"),
        "decisions",
        ["router_id", "id", "sampled"],
        unique=False,
        postgresql_where=sa.text("(sampled OR disposition <> 'routed') AND feedback_state IS NULL"),
        sqlite_where=sa.text("(sampled = 1 OR disposition <> 'routed') AND feedback_state IS NULL"),
    )
    op.create_index(
        op.f("ix_decisions_router_id_message_id_id"),
        "decisions",
        ["router_id", "message_id", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_decisions_router_id_sampled_id"),
        "decisions",
        ["router_id", "sampled", "id"],
        unique=False,
        postgresql_where=sa.text("sampled"),
        sqlite_where=sa.text("sampled = 1"),
    )
    op.create_index(
        op.f("ix_decisions_router_id_version_id"), "decisions", ["router_id", "version", "id"], unique=False
    )
    op.create_table(
        "file_holds",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_file_holds")),
    )
    op.create_table(
        "idempotency_records",
        sa.Column("caller", sa.String(length=40), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("response", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("caller", "key", name=op.f("pk_idempotency_records")),
    )
    op.create_index(
        op.f("ix_idempotency_records_created_at"), "idempotency_records", ["created_at"], unique=False
    )
    op.create_table(
        "models",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("last_version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_models")),
    )
    op.create_table(
        "stored_counters",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("label", sa.String(length=80), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.Float(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", "label", name=op.f("pk_stored_counters")),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("router", sa.String(length=64), nullable=True),
        sa.Column("model", sa.String(length=64), nullable=True),
        sa.Column("secret", sa.String(length=300), nullable=False),
        sa.Column("previous_secret", sa.String(length=300), nullable=True),
        sa.Column("previous_secret_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decisions_read_to", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_success_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("disabled_reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("machine", sa.String(length=100), nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stopping", sa.Boolean(), nullable=False),
        sa.Column("broker_away_since", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
    )
    op.create_table(
        "reviews",
        sa.Column("decision_id", sa.String(length=40), nullable=False),
        sa.Column("reserved_by", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("reserved_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("assigned_to", sa.String(length=200), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("note_by", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["decision_id"],
            ["decisions.id"],
            name=op.f("fk_reviews_decision_id_decisions"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("decision_id", name=op.f("pk_reviews")),
    )
    op.create_table(
        "alias_changes",
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("alias", sa.String(length=64), nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("from_version", sa.Integer(), nullable=True),
        sa.Column("to_version", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(length=20), nullable=False),
        sa.Column("key_id", sa.String(length=40), nullable=True),
        sa.Column("job_id", sa.String(length=40), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["model"], ["models.name"], name=op.f("fk_alias_changes_model_models")),
        sa.PrimaryKeyConstraint("model", "alias", "revision", name=op.f("pk_alias_changes")),
    )
    op.create_table(
        "dataset_labels",
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_dataset_labels_dataset_id_datasets"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("dataset_id", "position", name=op.f("pk_dataset_labels")),
    )
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
    op.create_index(op.f("ix_dataset_sources_source_id"), "dataset_sources", ["source_id"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("spec", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("dataset_id", sa.String(length=40), nullable=True),
        sa.Column("model", sa.String(length=64), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("consecutive_losses", sa.Integer(), nullable=False),
        sa.Column("unavailable_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("checkpoint", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(length=40), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claim_order", sa.Integer(), nullable=True),
        sa.Column("claim_key", sa.String(length=40), nullable=False),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("progress", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("key_id", sa.String(length=40), nullable=True),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_jobs_dataset_id_datasets")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index(
        op.f("ix_jobs_claim_order_claim_key_created_at_id"),
        "jobs",
        ["claim_order", "claim_key", "created_at", "id"],
        unique=False,
        postgresql_where=sa.text("claim_order IS NOT NULL"),
        sqlite_where=sa.text("claim_order IS NOT NULL"),
    )
    op.create_index(op.f("ix_jobs_dataset_id_state"), "jobs", ["dataset_id", "state"], unique=False)
    op.create_index(op.f("ix_jobs_finished_at"), "jobs", ["finished_at"], unique=False)
    op.create_index(op.f("ix_jobs_key_id_state"), "jobs", ["key_id", "state"], unique=False)
    op.create_index(op.f("ix_jobs_kind_id"), "jobs", ["kind", "id"], unique=False)
    op.create_index(op.f("ix_jobs_model_state"), "jobs", ["model", "state"], unique=False)
    op.create_index(
        op.f("ix_jobs_sent_at"),
        "jobs",
        ["sent_at"],
        unique=False,
        postgresql_where=sa.text("sent_at IS NOT NULL"),
        sqlite_where=sa.text("sent_at IS NOT NULL"),
    )
    op.create_index(op.f("ix_jobs_state_due_at"), "jobs", ["state", "due_at"], unique=False)
    op.create_index(
        op.f("ix_jobs_state_lease_expires_at"), "jobs", ["state", "lease_expires_at"], unique=False
    )
    op.create_table(
        "model_aliases",
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("alias", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["model"], ["models.name"], name=op.f("fk_model_aliases_model_models")),
        sa.PrimaryKeyConstraint("model", "alias", name=op.f("pk_model_aliases")),
    )
    op.create_table(
        "model_versions",
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("artifact_key", sa.String(length=200), nullable=False),
        sa.Column("artifact_sha256", sa.String(length=64), nullable=False),
        sa.Column("artifact_bytes", sa.BigInteger(), nullable=False),
        sa.Column("training_job_id", sa.String(length=40), nullable=True),
        sa.Column("dataset_id", sa.String(length=40), nullable=True),
        sa.Column("description", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["model"], ["models.name"], name=op.f("fk_model_versions_model_models")),
        sa.PrimaryKeyConstraint("model", "version", name=op.f("pk_model_versions")),
    )
    op.create_index(op.f("ix_model_versions_artifact_key"), "model_versions", ["artifact_key"], unique=False)
    op.create_index(op.f("ix_model_versions_dataset_id"), "model_versions", ["dataset_id"], unique=False)
    op.create_index(
        op.f("ix_model_versions_training_job_id"), "model_versions", ["training_job_id"], unique=False
    )
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
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("webhook_id", sa.String(length=40), nullable=False),
        sa.Column("event", sa.String(length=40), nullable=False),
        sa.Column("decision_id", sa.String(length=40), nullable=True),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("response_status", sa.Integer(), nullable=True),
        sa.Column("response_body", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["webhook_id"],
            ["webhooks.id"],
            name=op.f("fk_webhook_deliveries_webhook_id_webhooks"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
        sa.UniqueConstraint(
            "webhook_id", "decision_id", name=op.f("uq_webhook_deliveries_webhook_id_decision_id")
        ),
    )
    op.create_index(
        op.f("ix_webhook_deliveries_state_webhook_id_due_at"),
        "webhook_deliveries",
        ["state", "webhook_id", "due_at"],
        unique=False,
    )
    op.create_index(
        op.f("ix_webhook_deliveries_webhook_id_id"), "webhook_deliveries", ["webhook_id", "id"], unique=False
    )
    op.create_table(
        "batch_predictions",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("request", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("result_key", sa.String(length=200), nullable=True),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_batch_predictions_job_id_jobs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batch_predictions")),
    )
    op.create_index(op.f("ix_batch_predictions_job_id"), "batch_predictions", ["job_id"], unique=False)
    op.create_index(
        op.f("ix_batch_predictions_result_key"), "batch_predictions", ["result_key"], unique=False
    )
    op.create_table(
        "curve_points",
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("measures", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_curve_points_job_id_jobs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "step", name=op.f("pk_curve_points")),
    )
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
    op.create_index(op.f("ix_evaluations_job_id"), "evaluations", ["job_id"], unique=False)
    op.create_index(
        op.f("ix_evaluations_model_version_id"), "evaluations", ["model", "version", "id"], unique=False
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
    op.create_index(op.f("ix_experiments_job_id"), "experiments", ["job_id"], unique=False)
    op.create_index(op.f("ix_experiments_state"), "experiments", ["state"], unique=False)
    op.create_table(
        "job_events",
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("type", sa.String(length=40), nullable=False),
        sa.Column("detail", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_job_events_job_id_jobs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "seq", name=op.f("pk_job_events")),
    )
    op.create_table(
        "routers",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("config", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("alias", sa.String(length=64), nullable=True),
        sa.Column("shadow_version", sa.Integer(), nullable=True),
        sa.Column("shadow_alias", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(
            ["model", "alias"],
            ["model_aliases.model", "model_aliases.alias"],
            name=op.f("fk_routers_model_alias_model_aliases"),
        ),
        sa.ForeignKeyConstraint(
            ["model", "shadow_alias"],
            ["model_aliases.model", "model_aliases.alias"],
            name=op.f("fk_routers_model_shadow_alias_model_aliases"),
        ),
        sa.ForeignKeyConstraint(
            ["model", "shadow_version"],
            ["model_versions.model", "model_versions.version"],
            name=op.f("fk_routers_model_shadow_version_model_versions"),
        ),
        sa.ForeignKeyConstraint(
            ["model", "version"],
            ["model_versions.model", "model_versions.version"],
            name=op.f("fk_routers_model_version_model_versions"),
        ),
        sa.ForeignKeyConstraint(["model"], ["models.name"], name=op.f("fk_routers_model_models")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_routers")),
        sa.UniqueConstraint("id", name=op.f("uq_routers_id")),
    )
    op.create_index(op.f("ix_routers_model"), "routers", ["model"], unique=False)
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
    op.create_table(
        "router_versions",
        sa.Column("router", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("alias", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(
            ["model", "alias"],
            ["model_aliases.model", "model_aliases.alias"],
            name=op.f("fk_router_versions_model_alias_model_aliases"),
        ),
        sa.ForeignKeyConstraint(
            ["model", "version"],
            ["model_versions.model", "model_versions.version"],
            name=op.f("fk_router_versions_model_version_model_versions"),
        ),
        sa.ForeignKeyConstraint(
            ["router"], ["routers.name"], name=op.f("fk_router_versions_router_routers"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("router", "position", name=op.f("pk_router_versions")),
    )
    op.create_index(
        op.f("ix_router_versions_model_alias"), "router_versions", ["model", "alias"], unique=False
    )
    op.create_index(
        op.f("ix_router_versions_model_version"), "router_versions", ["model", "version"], unique=False
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("issuer", sa.String(length=500), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_sign_in_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_users_issuer_subject")),
    )
    op.create_table(
        "console_sessions",
        sa.Column("token_sha256", sa.String(length=64), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=True),
        sa.Column("user_id", sa.String(length=40), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_console_sessions_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token_sha256", name=op.f("pk_console_sessions")),
    )
    op.create_index(op.f("ix_console_sessions_expires_at"), "console_sessions", ["expires_at"], unique=False)
    op.create_index(op.f("ix_console_sessions_user_id"), "console_sessions", ["user_id"], unique=False)


def downgrade() -> None:
    op.drop_table("console_sessions")
    op.drop_table("users")
    op.drop_table("router_versions")
    op.drop_table("experiment_cells")
    op.drop_table("routers")
    op.drop_table("job_events")
    op.drop_table("experiments")
    op.drop_table("evaluations")
    op.drop_table("curve_points")
    op.drop_table("batch_predictions")
    op.drop_table("webhook_deliveries")
    op.drop_table("version_comparisons")
    op.drop_table("model_versions")
    op.drop_table("model_aliases")
    op.drop_table("jobs")
    op.drop_table("dataset_sources")
    op.drop_table("dataset_labels")
    op.drop_table("alias_changes")
    op.drop_table("workers")
    op.drop_table("webhooks")
    op.drop_table("stored_counters")
    op.drop_table("models")
    op.drop_table("idempotency_records")
    op.drop_table("file_holds")
    op.drop_table("reviews")
    op.drop_table("decisions")
    op.drop_table("decision_labels")
    op.drop_table("datasets")
    op.drop_table("catalog_revisions")
    op.drop_table("authentication_state")
    op.drop_table("api_keys")
