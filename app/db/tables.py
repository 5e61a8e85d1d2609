"""All tables. The database is the only source of truth: brokers and caches can be lost without harm."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

MAX_MESSAGE_ID: Final = 500
"""Number of characters of a Message-ID by which a decision is found."""

RECORDED: Final = "recorded"
"""Key of ``Column.info``: the attribute of a new row from which the INSERT takes the value."""


class UtcDateTime(TypeDecorator[datetime]):
    """A time: timezone-aware in Python, UTC in the database (SQLite stores no time zone)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a value for the database."""
        if value is None:
            return None
        return value.astimezone(UTC).replace(tzinfo=None if dialect.name == "sqlite" else UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Convert a value from the database."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class SearchableText(TypeDecorator[str]):
    """The beginning of a text, because an index has no room for long values, in a form that can be stored."""

    impl = String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    @property
    def python_type(self) -> type[str]:
        """The type of its values."""
        return str

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Convert a value for the database."""
        # PostgreSQL cannot store the character 0.
        return None if value is None else value[: self.length].replace("\0", "")


class Base(DeclarativeBase):
    """Base class of all tables. It names every constraint, so that migrations can alter each of them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it as a plain dict
        datetime: UtcDateTime,
        dict[str, Any]: JSON(none_as_null=True),
        list[Any]: JSON(none_as_null=True),
    }


class Dataset(Base):
    """A data set. It is immutable once it is ready. Its examples are one Parquet file in the storage."""

    __tablename__ = "datasets"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    description: Mapped[str | None] = mapped_column(Text)
    format: Mapped[str | None] = mapped_column(String(20))
    state: Mapped[str] = mapped_column(String(20), index=True)
    label_tree: Mapped[dict[str, Any] | None]
    options: Mapped[dict[str, Any]]
    """Options for reading the content: format options, max_bad_records, changes of labels, derivation."""
    upload_key: Mapped[str | None] = mapped_column(String(200), index=True)
    upload_encoding: Mapped[str | None] = mapped_column(String(20))
    uploaded_at: Mapped[datetime | None] = mapped_column(index=True)
    """When the content was uploaded. None if another data set cannot be read from it."""
    storage_key: Mapped[str | None] = mapped_column(String(200), index=True)
    sha256: Mapped[str | None] = mapped_column(String(64))
    size_bytes: Mapped[int | None] = mapped_column(BigInteger)
    report: Mapped[dict[str, Any] | None]
    error: Mapped[dict[str, Any] | None]
    lineage: Mapped[dict[str, Any] | None]
    """The sources of the data set, as the API returns it. None if its content was uploaded."""
    created_at: Mapped[datetime]
    ready_at: Mapped[datetime | None]


class DatasetSource(Base):
    """A data set that an unfinished job reads to make another one. Until then, it cannot be deleted."""

    __tablename__ = "dataset_sources"

    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True)
    source_id: Mapped[str] = mapped_column(ForeignKey("datasets.id"), primary_key=True, index=True)


class DatasetLabel(Base):
    """One label of a ready data set."""

    __tablename__ = "dataset_labels"

    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    label: Mapped[str] = mapped_column(Text)
    count: Mapped[int] = mapped_column(Integer)
    parent: Mapped[str | None] = mapped_column(Text)


class Job(Base):
    """A job for a worker. ``app.jobs.queue`` documents which process may change a job, and when."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index(
            None,
            *("claim_order", "claim_key", "created_at", "id"),
            postgresql_where=text("claim_order IS NOT NULL"),
            sqlite_where=text("claim_order IS NOT NULL"),
        ),
        Index(
            None,
            "sent_at",
            postgresql_where=text("sent_at IS NOT NULL"),
            sqlite_where=text("sent_at IS NOT NULL"),
        ),
        Index(None, "state", "due_at"),
        Index(None, "finished_at"),
        Index(None, "state", "lease_expires_at"),
        Index(None, "kind", "id"),
        Index(None, "key_id", "state"),
        Index(None, "dataset_id", "state"),
        Index(None, "model", "state"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    state: Mapped[str] = mapped_column(String(20))
    spec: Mapped[dict[str, Any]]
    dataset_id: Mapped[str | None] = mapped_column(ForeignKey("datasets.id"))
    model: Mapped[str | None] = mapped_column(String(64))
    attempt: Mapped[int] = mapped_column(Integer, default=0)
    """Number of attempts that were started."""
    failures: Mapped[int] = mapped_column(Integer, default=0)
    """Number of attempts whose process died without progress. ``COVEY_JOB_ATTEMPTS`` limits it."""
    consecutive_losses: Mapped[int] = mapped_column(Integer, default=0)
    """Number of lost attempts since the last progress, whatever the cause. Each loss lengthens the delay."""
    unavailable_since: Mapped[datetime | None]
    """When the first of the latest attempts has ended that all ended because the database or the storage was
    unavailable."""
    checkpoint: Mapped[dict[str, Any] | None]
    """Checkpoint from which a new attempt continues; see ``app.jobs.checkpoints``."""
    fence: Mapped[int] = mapped_column(Integer, default=0)
    lease_owner: Mapped[str | None] = mapped_column(String(40))
    lease_expires_at: Mapped[datetime | None]
    due_at: Mapped[datetime]
    """Earliest time at which the job can be claimed. A job that lost its worker waits before its retry."""
    priority: Mapped[int] = mapped_column(Integer, default=0)
    """The priority of the request. Cells have the priority of their experiment."""
    sent_at: Mapped[datetime | None]
    """When its task was sent to the broker, while the job is queued. None if it waits here."""
    claim_order: Mapped[int | None] = mapped_column(Integer)
    """Queue and priority as one number while the job waits here, otherwise None. The lowest is sent first.

    No other index contains this column and the next one, so no database chooses a slower index for a claim.
    """
    claim_key: Mapped[str] = mapped_column(String(40), default="")
    """``key_id``, or an empty string if it is None."""
    cancel_requested_at: Mapped[datetime | None]
    progress: Mapped[dict[str, Any] | None]
    result: Mapped[dict[str, Any] | None]
    error: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    key_id: Mapped[str | None] = mapped_column(String(40))
    """The API key or user that requested the job. None if the service requires no key."""


class JobEvent(Base):
    """An event of a job. The list of events only grows."""

    __tablename__ = "job_events"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(Integer, primary_key=True)
    at: Mapped[datetime]
    type: Mapped[str] = mapped_column(String(40))
    detail: Mapped[dict[str, Any]]


class CurvePoint(Base):
    """The measures of one round, epoch or pass of a training."""

    __tablename__ = "curve_points"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    step: Mapped[int] = mapped_column(Integer, primary_key=True)
    measures: Mapped[dict[str, Any]]


class Worker(Base):
    """A worker that is running, or was until recently."""

    __tablename__ = "workers"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    host: Mapped[str] = mapped_column(String(255))
    pid: Mapped[int] = mapped_column(Integer)
    machine: Mapped[str] = mapped_column(String(100), default="")
    """The boot and process namespace to which ``pid`` belongs. Empty if unknown."""
    concurrency: Mapped[int] = mapped_column(Integer)
    started_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    stopping: Mapped[bool] = mapped_column(default=False)
    broker_away_since: Mapped[datetime | None]
    """Since when the worker cannot send to the broker. None if it can."""


class Model(Base):
    """A named model, which has versions."""

    __tablename__ = "models"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    last_version: Mapped[int] = mapped_column(Integer, default=0)
    """Incremented in the transaction that inserts a version. Numbers are never reused."""
    created_at: Mapped[datetime]


class ModelVersion(Base):
    """An immutable trained model. Its artifact is a file in the storage."""

    __tablename__ = "model_versions"

    model: Mapped[str] = mapped_column(ForeignKey("models.name"), primary_key=True)
    version: Mapped[int] = mapped_column(Integer, primary_key=True)
    artifact_key: Mapped[str] = mapped_column(String(200), index=True)
    artifact_sha256: Mapped[str] = mapped_column(String(64))
    artifact_bytes: Mapped[int] = mapped_column(BigInteger)
    training_job_id: Mapped[str | None] = mapped_column(String(40), index=True)
    dataset_id: Mapped[str | None] = mapped_column(String(40), index=True)
    description: Mapped[dict[str, Any]]
    """Labels, learner, features, decision, thresholds, metrics, seed, software, timings, warnings, facts."""
    created_at: Mapped[datetime]


class ModelAlias(Base):
    """A name for one version of a model."""

    __tablename__ = "model_aliases"

    model: Mapped[str] = mapped_column(ForeignKey("models.name"), primary_key=True)
    alias: Mapped[str] = mapped_column(String(64), primary_key=True)
    version: Mapped[int] = mapped_column(Integer)
    revision: Mapped[int] = mapped_column(Integer, default=1)
    updated_at: Mapped[datetime]


class AliasChange(Base):
    """A change of an alias; see ``app.registry.alias_changes``."""

    __tablename__ = "alias_changes"

    model: Mapped[str] = mapped_column(ForeignKey("models.name"), primary_key=True)
    alias: Mapped[str] = mapped_column(String(64), primary_key=True)
    revision: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    """The revision of the alias after the change."""
    from_version: Mapped[int | None] = mapped_column(Integer)
    """None if the alias did not exist."""
    to_version: Mapped[int | None] = mapped_column(Integer)
    """None if the alias was deleted."""
    reason: Mapped[str] = mapped_column(String(20))
    key_id: Mapped[str | None] = mapped_column(String(40))
    """The API key or user that changed the alias or requested the training. None if the service requires no
    key."""
    job_id: Mapped[str | None] = mapped_column(String(40))
    """The training job that promoted the version."""
    changed_at: Mapped[datetime]


class VersionComparison(Base):
    """A comparison of a new version with the live one. It counts for later ones on the same documents.

    The rows of deleted versions remain.
    """

    __tablename__ = "version_comparisons"

    model: Mapped[str] = mapped_column(ForeignKey("models.name", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    """Number of the comparison of the model, from 1."""
    version: Mapped[int] = mapped_column(Integer)
    """The new version."""
    documents: Mapped[list[Any]]
    """Digests of test documents; see ``models.measures.attempts``."""
    compared_at: Mapped[datetime]


class Evaluation(Base):
    """Measures of a version on the data set of its training, or on another one."""

    __tablename__ = "evaluations"
    __table_args__ = (
        ForeignKeyConstraint(
            ["model", "version"], ["model_versions.model", "model_versions.version"], ondelete="CASCADE"
        ),
        Index(None, "model", "version", "id"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    model: Mapped[str] = mapped_column(String(64))
    version: Mapped[int] = mapped_column(Integer)
    job_id: Mapped[str] = mapped_column(String(40), index=True)
    """The evaluation job, or the training job that evaluated its own version."""
    of_training: Mapped[bool]
    dataset_id: Mapped[str] = mapped_column(String(40))
    request: Mapped[dict[str, Any]]
    content: Mapped[dict[str, Any] | None]
    """Measures by name of the part of the data set; see ``app.evaluations.evaluate``."""
    created_at: Mapped[datetime]


class BatchPrediction(Base):
    """The predictions of a version for all examples of a data set. Its state is that of its job.

    It stays when its model or its data set is deleted, because its result does not depend on them any more.
    """

    __tablename__ = "batch_predictions"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    model: Mapped[str] = mapped_column(String(64))
    version: Mapped[int] = mapped_column(Integer)
    dataset_id: Mapped[str] = mapped_column(String(40))
    request: Mapped[dict[str, Any]]
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), index=True)
    result_key: Mapped[str | None] = mapped_column(String(200), index=True)
    result: Mapped[dict[str, Any] | None]
    """Digest, size and number of documents of the file; set with ``result_key`` when the job succeeds."""
    created_at: Mapped[datetime]


class Experiment(Base):
    """A comparison of learners on the same splits of a data set."""

    __tablename__ = "experiments"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str | None] = mapped_column(String(200))
    dataset_id: Mapped[str] = mapped_column(String(40))
    dataset_sha256: Mapped[str | None] = mapped_column(String(64))
    request: Mapped[dict[str, Any]]
    """The request with all defaults filled in and grids expanded."""
    state: Mapped[str] = mapped_column(String(20), index=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), index=True)
    """The job that assigns examples to folds and queues the cells."""
    error: Mapped[dict[str, Any] | None]
    cancel_requested_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class ExperimentCell(Base):
    """One configuration on one fold. Its state is that of its job."""

    __tablename__ = "experiment_cells"

    experiment_id: Mapped[str] = mapped_column(
        ForeignKey("experiments.id", ondelete="CASCADE"), primary_key=True
    )
    configuration: Mapped[int] = mapped_column(Integer, primary_key=True)
    fold: Mapped[int] = mapped_column(Integer, primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), unique=True)


def _partial_index(condition: str, *columns: str, sqlite: str | None = None) -> Index:
    """Return an index of the rows that meet a condition; in SQLite, whose statements write it differently."""
    return Index(None, *columns, postgresql_where=text(condition), sqlite_where=text(sqlite or condition))


class Router(Base):
    """A named router, which decides the destinations of messages."""

    __tablename__ = "routers"
    __table_args__ = (
        ForeignKeyConstraint(["model"], ["models.name"]),
        ForeignKeyConstraint(["model", "version"], ["model_versions.model", "model_versions.version"]),
        ForeignKeyConstraint(["model", "alias"], ["model_aliases.model", "model_aliases.alias"]),
        ForeignKeyConstraint(["model", "shadow_version"], ["model_versions.model", "model_versions.version"]),
        ForeignKeyConstraint(["model", "shadow_alias"], ["model_aliases.model", "model_aliases.alias"]),
    )

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    id: Mapped[str] = mapped_column(String(40), unique=True)
    """Distinguishes the router from a deleted one of the same name, which keeps its own decisions."""
    model: Mapped[str] = mapped_column(String(64), index=True)
    config: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    version: Mapped[int | None] = mapped_column(Integer)
    """The version that decides, if the router names one by its number; otherwise ``alias`` names it, or there
    are several; see ``RouterVersion``."""
    alias: Mapped[str | None] = mapped_column(String(64))
    shadow_version: Mapped[int | None] = mapped_column(Integer)
    shadow_alias: Mapped[str | None] = mapped_column(String(64))


class RouterVersion(Base):
    """One of several versions between which a router splits its messages."""

    __tablename__ = "router_versions"
    __table_args__ = (
        ForeignKeyConstraint(["router"], ["routers.name"], ondelete="CASCADE"),
        ForeignKeyConstraint(["model", "version"], ["model_versions.model", "model_versions.version"]),
        ForeignKeyConstraint(["model", "alias"], ["model_aliases.model", "model_aliases.alias"]),
        Index(None, "model", "version"),
        Index(None, "model", "alias"),
    )

    router: Mapped[str] = mapped_column(String(64), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    model: Mapped[str] = mapped_column(String(64))
    version: Mapped[int | None] = mapped_column(Integer)
    """The version, if the router names it by its number; otherwise ``alias`` names it."""
    alias: Mapped[str | None] = mapped_column(String(64))


def _recorded(attribute: str) -> dict[str, str]:
    """Return the ``info`` of a column that a new decision has."""
    return {RECORDED: attribute}


class Decision(Base):
    """The decision of a router about one message.

    This is the one definition of the columns. To add one, add it here with the attribute of
    ``app.routing.decision_rows.DecisionRow`` that has its value, and a migration. The INSERT follows from it.
    Columns without such an attribute are empty in a new decision. Most columns repeat a part of ``response``,
    so that an index finds it.
    """

    __tablename__ = "decisions"
    __table_args__ = (
        UniqueConstraint("router_id", "message_key"),
        Index(None, "router_id", "id"),
        Index(None, "router_id", "disposition", "id"),
        Index(None, "router_id", "version", "id"),
        Index(None, "router_id", "message_id", "id"),
        _partial_index("feedback_state IS NOT NULL", "router_id", "feedback_state", "id"),
        _partial_index(  # the review queue: decisions leave it with their feedback
            "(sampled OR disposition <> 'routed') AND feedback_state IS NULL",
            *("router_id", "id", "sampled"),
            sqlite="(sampled = 1 OR disposition <> 'routed') AND feedback_state IS NULL",
        ),
        _partial_index("sampled", "router_id", "sampled", "id", sqlite="sampled = 1"),
        _partial_index(  # for webhooks
            "sampled OR disposition <> 'routed'",
            *("id", "sampled"),
            sqlite="sampled = 1 OR disposition <> 'routed'",
        ),
        _partial_index("kept_message IS NOT NULL", "kept_message"),
        _partial_index("kept_until IS NOT NULL", "kept_until"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True, info=_recorded("decision.decision_id"))
    router_id: Mapped[str] = mapped_column(String(40), info=_recorded("router_id"))
    router: Mapped[str] = mapped_column(String(64), info=_recorded("decision.router"))
    message_key: Mapped[str] = mapped_column(String(64), info=_recorded("message_key"))
    """Digest of the Message-ID and the body, so that the same message gets the same decision."""
    response: Mapped[dict[str, Any]] = mapped_column(info=_recorded("response"))
    shadow: Mapped[dict[str, Any] | None]
    feedback: Mapped[list[Any] | None]
    feedback_at: Mapped[datetime | None]
    feedback_by: Mapped[dict[str, Any] | None]
    """The id and the name of who gave the feedback, at that time; None for an anonymous request."""
    created_at: Mapped[datetime]
    disposition: Mapped[str | None] = mapped_column(String(20), info=_recorded("decision.disposition"))
    sampled: Mapped[bool] = mapped_column(
        default=False, server_default=false(), info=_recorded("decision.sampled")
    )
    """Whether the message belongs to the random sample that people review."""
    model: Mapped[str | None] = mapped_column(String(64), info=_recorded("decision.model"))
    version: Mapped[int | None] = mapped_column(Integer, info=_recorded("decision.version"))
    """The version that decided; None if none did, for example because the model was deleted."""
    message_id: Mapped[str | None] = mapped_column(
        SearchableText(MAX_MESSAGE_ID), info=_recorded("decision.message.message_id")
    )
    """The beginning of the Message-ID."""
    set_probability: Mapped[float | None] = mapped_column(Float, info=_recorded("decision.set_probability"))
    feedback_state: Mapped[str | None] = mapped_column(String(20))
    """``agreed`` if the feedback has exactly the predicted labels, ``corrected`` if not; None without it."""
    kept_message: Mapped[str | None] = mapped_column(String(200), info=_recorded("kept_message"))
    """Key of the file with the message; None if the message is not kept."""
    kept_until: Mapped[datetime | None] = mapped_column(info=_recorded("kept_until"))
    """Time after which the kept message is deleted."""
    unknown_words: Mapped[float | None] = mapped_column(
        Float, info=_recorded("decision.message.unknown_words")
    )
    """Share of the words of the message that the version does not know."""
    shadow_version: Mapped[int | None] = mapped_column(Integer)
    """The version in ``shadow``."""
    shadow_agrees: Mapped[bool | None]
    """Whether ``shadow`` has exactly the predicted labels; None without a shadow."""


class DecisionLabel(Base):
    """A predicted label of a decision, which finds the decisions with the label."""

    __tablename__ = "decision_labels"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 - SQLAlchemy reads it as a plain dict

    router_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    label: Mapped[str] = mapped_column(String(500), primary_key=True)
    decision_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    """The decision is deleted together with its labels; see ``app.routing.decisions.delete_rows``. A
    foreign key would need one more index, which takes time for every message."""


class Review(Base):
    """Who has a message of the review queue open, whose it is, and a note. Most messages have no row."""

    __tablename__ = "reviews"

    decision_id: Mapped[str] = mapped_column(ForeignKey("decisions.id", ondelete="CASCADE"), primary_key=True)
    reserved_by: Mapped[dict[str, Any] | None]
    """The id and the name of the person."""
    reserved_until: Mapped[datetime | None]
    assigned_to: Mapped[str | None] = mapped_column(String(200))
    note: Mapped[str | None] = mapped_column(Text)
    note_by: Mapped[dict[str, Any] | None]
    """The id and the name of who wrote the note; None for an anonymous request."""


class ApiKey(Base):
    """An API key. Only the digest of its secret is stored."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    secret_sha256: Mapped[str] = mapped_column(String(64), unique=True)
    scopes: Mapped[list[Any]]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    previous_secret_sha256: Mapped[str | None] = mapped_column(String(64), unique=True)
    """Digest of the secret before the last rotation. It is valid until ``previous_secret_expires_at``."""
    previous_secret_expires_at: Mapped[datetime | None]


class User(Base):
    """A person who has signed in with an OpenID provider."""

    __tablename__ = "users"
    __table_args__ = (UniqueConstraint("issuer", "subject"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    issuer: Mapped[str] = mapped_column(String(500))
    subject: Mapped[str] = mapped_column(String(255))
    """Id of the person at the provider."""
    name: Mapped[str] = mapped_column(String(200))
    email: Mapped[str | None] = mapped_column(Text)
    role: Mapped[str] = mapped_column(String(20))
    created_at: Mapped[datetime]
    last_sign_in_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]


class ConsoleSession(Base):
    """A browser that is signed in to the console. Only the digest of its cookie is stored."""

    __tablename__ = "console_sessions"

    token_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    secret_sha256: Mapped[str | None] = mapped_column(String(64))
    """Digest of the secret that signed in. The session is valid as long as this secret of a key is. None if
    a user signed in."""
    user_id: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    """The user who signed in. None if a key signed in."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)


class Webhook(Base):
    """A receiver of events: Covey sends it a signed request for each of them."""

    __tablename__ = "webhooks"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    url: Mapped[str] = mapped_column(Text)
    events: Mapped[list[Any]]
    router: Mapped[str | None] = mapped_column(String(64))
    """The only router whose decisions are sent. None: all routers."""
    model: Mapped[str | None] = mapped_column(String(64))
    """The only model whose events are sent. None: all models."""
    secret: Mapped[str] = mapped_column(String(300))
    """The key of the signatures; see ``app.webhooks.secrets``."""
    previous_secret: Mapped[str | None] = mapped_column(String(300))
    """The secret before the last rotation. It signs too until ``previous_secret_expires_at``."""
    previous_secret_expires_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    decisions_read_to: Mapped[datetime]
    """Decisions from before this time were considered, except for some that were committed late."""
    last_success_at: Mapped[datetime | None]
    failing_since: Mapped[datetime | None]
    """Time of the first failed attempt since the last successful one. None if the last one was successful."""
    disabled_at: Mapped[datetime | None]
    disabled_reason: Mapped[str | None] = mapped_column(Text)


class WebhookDelivery(Base):
    """One event for one webhook. It is written in the transaction of the event, and sent afterwards."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        UniqueConstraint("webhook_id", "decision_id"),
        Index(None, "webhook_id", "id"),
        Index(None, "state", "webhook_id", "due_at"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    event: Mapped[str] = mapped_column(String(40))
    decision_id: Mapped[str | None] = mapped_column(String(40))
    """The decision of the event. A webhook gets each decision once."""
    data: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(String(20))
    """``pending``, ``delivered`` or ``failed``."""
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    due_at: Mapped[datetime]
    """Time of the next attempt. An attempt moves it forward, so that no other process sends it, too."""
    created_at: Mapped[datetime]
    last_attempt_at: Mapped[datetime | None]
    response_status: Mapped[int | None] = mapped_column(Integer)
    response_body: Mapped[str | None] = mapped_column(Text)
    """The beginning of the last response."""
    error: Mapped[str | None] = mapped_column(Text)
    finished_at: Mapped[datetime | None]


class AuthenticationState(Base):
    """The requirement of an API key for requests. The only row is written when the first key is created."""

    __tablename__ = "authentication_state"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    required: Mapped[bool]


class IdempotencyRecord(Base):
    """The response to the first request with an ``Idempotency-Key``."""

    __tablename__ = "idempotency_records"

    caller: Mapped[str] = mapped_column(String(40), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    response: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(index=True)


class CatalogRevision(Base):
    """The number of changes of a part of the catalog; see ``app.db.revisions``."""

    __tablename__ = "catalog_revisions"

    part: Mapped[str] = mapped_column(String(20), primary_key=True)
    revision: Mapped[int] = mapped_column(BigInteger)


class StoredCounter(Base):
    """A counter that outlives the processes that count; see ``app.db.counters``."""

    __tablename__ = "stored_counters"

    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    label: Mapped[str] = mapped_column(String(80), primary_key=True)
    """What is counted, for example the name of a retention rule; empty if there is only one."""
    number: Mapped[int] = mapped_column(BigInteger)
    total: Mapped[float] = mapped_column(Float)
    """The sum of what each event adds, for example seconds."""
    updated_at: Mapped[datetime]


class BackupLock(Base):
    """A backup that is running. Files are not deleted before ``expires_at``; see ``app.db.backup_lock``."""

    __tablename__ = "file_holds"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    expires_at: Mapped[datetime]
