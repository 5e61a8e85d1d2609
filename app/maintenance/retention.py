"""Retention: deletes what is no longer needed, in small steps that any number of workers can do together.

Each step is one short transaction, with a pause after it, and one pass does a bounded number of steps. So a
writer waits for one step at most, also if years of rows expire at once because a setting was changed. A
worker that dies in between leaves work for the others, but no damage.

``RULES`` has the rows that expire. Ids begin with the time of their creation, so the primary key finds old
rows, and no index on a time is needed. Rows that another worker is deleting are skipped on PostgreSQL.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import structlog
from sqlalchemy import ColumnElement, and_, delete, exists, inspect, select, tuple_, update
from sqlalchemy.orm import InstrumentedAttribute

from app.context import AppContext
from app.db import counters, tables
from app.db.session import Transaction
from app.ids import Prefix, first_id
from app.jobs.queue import FINISHED
from app.maintenance import old_versions, unused_files
from app.routing import decisions as recorded_decisions
from app.settings import Settings

log = structlog.get_logger()

BATCH_SIZE = 500
"""Maximum number of rows that one transaction deletes from a table."""

MAX_BATCHES = 200
"""Maximum number of transactions per rule and pass."""

PAUSE_SECONDS = 0.05
"""Pause after each transaction, in which other writers get their turn."""

KEEP_IDEMPOTENCY_DAYS = 1.0
"""How long a response to an ``Idempotency-Key`` is kept: much longer than clients repeat a request, and as
long as signatures of e-mail providers are valid."""

KEEP_WORKERS_DAYS = 1.0
"""How long the record of a dead worker is kept: long enough to look into its death."""

KEEP_SESSIONS = timedelta(days=1)
"""How long a session of the console is kept after its end, so that the console can say why it has ended."""

Keys: TypeAlias = Sequence[tuple[Any, ...]]
"""Primary keys of rows."""


@dataclass(frozen=True)
class RetentionResult:
    """The numbers of deleted files and rows.

    Attributes:
        files: number of files that no row needed.
        rows: number of rows, without the events and curve points of jobs.
    """

    files: int
    rows: int


@dataclass(frozen=True)
class Rule:
    """The rows of a table that expire, and what happens to them.

    Attributes:
        name: what expires, for the log.
        table: the table.
        expired: the condition that a row is older than a moment.
        keep_days: the age in days at which rows expire, from the settings or a constant; 0 for never. None
            if each row has a time of its own, and the moment is now.
        at_least: the age that rows reach whatever the setting says.
        prefix: prefix of the ids, so that the search begins at the right age; None if they have no time.
        order_by: an indexed column in whose order rows expire. None for the primary key: then each
            transaction continues after the rows of the one before.
        batch_size: maximum number of rows of one transaction.
        file: the column with the key of a file that only this row needs.
        remove: what a transaction does with the rows. It returns False if a part of them is left for the next
            one. None deletes them.
    """

    name: str
    table: type[tables.Base]
    expired: Callable[[datetime], ColumnElement[bool]]
    keep_days: Callable[[Settings], float] | None = None
    at_least: timedelta = timedelta(0)
    prefix: Prefix | None = None
    order_by: InstrumentedAttribute[Any] | None = None
    batch_size: int = BATCH_SIZE
    file: ColumnElement[str | None] | None = None
    remove: Callable[[Transaction, Keys], bool] | None = None


def apply_retention(ctx: AppContext, stop: Callable[[], bool] = lambda: False) -> RetentionResult:
    """Delete rows that have expired, then files that no row needs.

    Args:
        ctx: the application context.
        stop: checked before each step; if it returns True, the pass ends early.

    Raises:
        OSError: the storage is unavailable. Rows are deleted first, so they do not depend on it.
        SQLAlchemyError: the database is unavailable.
    """
    rows = delete_expired_rows(ctx, stop)
    # Also if the pass has deleted nothing: a request may have deleted a decision that a reader still saw.
    ctx.db.truncate_wal()
    if any(rows.values()):
        log.info("retention.rows_deleted", **rows)
    files = unused_files.delete_unused(ctx, stop)
    if files:
        log.info("retention.files_deleted", files=files)
    if not stop():
        with ctx.db.write() as tx:
            counters.count(tx, "retention_pass")
            for what, number in sorted({**rows, "files": files}.items()):
                if number:
                    counters.count(tx, "retention_deleted", what, number=number)
    return RetentionResult(files, sum(rows.values()))


def delete_expired_rows(ctx: AppContext, stop: Callable[[], bool]) -> dict[str, int]:
    """Delete expired rows with their files. Return their number by what they are."""
    deleted = {rule.name: _apply(ctx, rule, stop) for rule in RULES}
    deleted["versions"] = old_versions.delete_old_versions(ctx, stop)
    deleted["datasets"] = old_versions.delete_old_datasets(ctx, stop)
    return deleted


def _apply(ctx: AppContext, rule: Rule, stop: Callable[[], bool]) -> int:
    """Delete batches of rows until none is left, the pass has done enough, or ``stop`` returns True."""
    age = timedelta(0)
    if rule.keep_days is not None:
        age = timedelta(days=rule.keep_days(ctx.settings))
        if not age:
            return 0
    deleted = 0
    after: Any = None
    for _ in range(MAX_BATCHES):
        if stop():
            break
        with ctx.db.write() as tx:
            keys, files = _expired_keys(tx, rule, tx.now - max(age, rule.at_least), after)
            done = (rule.remove or _delete_from(rule.table))(tx, keys)
        ctx.deletion.delete(files)
        if done:
            deleted += len(keys)
            if len(keys) < rule.batch_size:
                break
            after = keys[-1][0]
        time.sleep(PAUSE_SECONDS)
    return deleted


def _expired_keys(tx: Transaction, rule: Rule, before: datetime, after: Any) -> tuple[Keys, list[str]]:
    """Lock a batch of expired rows, and return their primary keys and the keys of their files."""
    key = _primary_key(rule.table)
    columns: list[ColumnElement[Any]] = [*key]
    if rule.file is not None:
        columns.append(rule.file)
    statement = select(*columns).where(rule.expired(before))
    if rule.prefix is not None:
        statement = statement.where(key[0] < first_id(rule.prefix, before))
    if rule.order_by is None and after is not None:
        statement = statement.where(key[0] > after)
    rows = tx.session.execute(
        statement.order_by(key[0] if rule.order_by is None else rule.order_by)
        .limit(rule.batch_size)
        .with_for_update(skip_locked=True)
    ).all()
    files = [] if rule.file is None else [row[-1] for row in rows if row[-1] is not None]
    return [tuple(row[: len(key)]) for row in rows], files


def _primary_key(table: type[tables.Base]) -> tuple[ColumnElement[Any], ...]:
    return inspect(table).primary_key


def _delete_from(table: type[tables.Base]) -> Callable[[Transaction, Keys], bool]:
    def remove(tx: Transaction, keys: Keys) -> bool:
        tx.session.execute(delete(table).where(_is_one_of(_primary_key(table), keys)))
        return True

    return remove


def _is_one_of(key: Sequence[ColumnElement[Any]], keys: Keys) -> ColumnElement[bool]:
    return key[0].in_([value for (value,) in keys]) if len(key) == 1 else tuple_(*key).in_(keys)


def _delete_decisions(tx: Transaction, keys: Keys) -> bool:
    """Delete decisions with their labels."""
    of_keys = _is_one_of(_primary_key(tables.Decision), keys)
    recorded_decisions.delete_rows(tx, tx.session.scalars(select(tables.Decision).where(of_keys)).all())
    return True


def _forget_messages(tx: Transaction, keys: Keys) -> bool:
    """Remove messages from their decisions."""
    of_keys = _is_one_of(_primary_key(tables.Decision), keys)
    tx.session.execute(update(tables.Decision).where(of_keys).values(kept_message=None, kept_until=None))
    return True


def _forget_uploads(tx: Transaction, keys: Keys) -> bool:
    """Remove uploads from their data sets."""
    of_keys = _is_one_of(_primary_key(tables.Dataset), keys)
    tx.session.execute(update(tables.Dataset).where(of_keys).values(upload_key=None, uploaded_at=None))
    return True


def _delete_jobs(tx: Transaction, keys: Keys) -> bool:
    """Delete jobs with their events and curves.

    A job can have many thousands of curve points. If they are more than one batch, this deletes a part of
    them, and the next batch continues with the same jobs.
    """
    for table in (tables.CurvePoint, tables.JobEvent):
        key = _primary_key(table)
        of_jobs = table.job_id.in_([id_ for (id_,) in keys])
        parts = [tuple(row) for row in tx.session.execute(select(*key).where(of_jobs).limit(BATCH_SIZE))]
        tx.session.execute(delete(table).where(_is_one_of(key, parts)))
        if len(parts) == BATCH_SIZE:
            return False
    return _delete_from(tables.Job)(tx, keys)


def _finished(row: type[tables.Job | tables.Experiment], before: datetime) -> ColumnElement[bool]:
    return and_(row.state.in_(FINISHED), row.finished_at < before)


_JOB_REFERENCES: tuple[InstrumentedAttribute[str] | InstrumentedAttribute[str | None], ...] = (
    tables.ModelVersion.training_job_id,
    tables.Evaluation.job_id,
    tables.BatchPrediction.job_id,
    tables.Experiment.job_id,
    tables.ExperimentCell.job_id,
)
"""Columns with ids of jobs that are kept."""

RULES: Sequence[Rule] = (
    Rule(
        "decisions",
        tables.Decision,
        lambda before: tables.Decision.created_at < before,
        keep_days=lambda settings: settings.keep_decisions_days,
        prefix="dec",
        file=tables.Decision.kept_message.expression,
        remove=_delete_decisions,
    ),
    Rule(
        "kept_messages",
        tables.Decision,
        lambda now: tables.Decision.kept_until < now,
        order_by=tables.Decision.kept_until,
        file=tables.Decision.kept_message.expression,
        remove=_forget_messages,
    ),
    # Several data sets can have one upload. When the last of them is forgotten, no row needs the file.
    Rule(
        "uploads",
        tables.Dataset,
        lambda before: and_(tables.Dataset.uploaded_at < before, tables.Dataset.state != "ingesting"),
        keep_days=lambda settings: settings.keep_uploads_days,
        order_by=tables.Dataset.uploaded_at,
        remove=_forget_uploads,
    ),
    # Experiments and batch predictions come before jobs, because they keep their jobs. Their jobs then expire
    # like others, and their files are unused. The cells of an experiment are deleted with it.
    Rule(
        "experiments",
        tables.Experiment,
        lambda before: _finished(tables.Experiment, before),
        keep_days=lambda settings: settings.keep_experiments_days,
        prefix="exp",
        batch_size=1,
    ),
    Rule(
        "batch_predictions",
        tables.BatchPrediction,
        lambda before: exists().where(
            tables.Job.id == tables.BatchPrediction.job_id, _finished(tables.Job, before)
        ),
        keep_days=lambda settings: settings.keep_batch_predictions_days,
        prefix="bp",
    ),
    Rule(
        "jobs",
        tables.Job,
        lambda before: and_(
            _finished(tables.Job, before),
            *(~exists().where(reference == tables.Job.id) for reference in _JOB_REFERENCES),
        ),
        keep_days=lambda settings: settings.keep_jobs_days,
        prefix="job",
        batch_size=20,
        remove=_delete_jobs,
    ),
    Rule(
        "idempotency_records",
        tables.IdempotencyRecord,
        lambda before: tables.IdempotencyRecord.created_at < before,
        keep_days=lambda _: KEEP_IDEMPOTENCY_DAYS,
        order_by=tables.IdempotencyRecord.created_at,
    ),
    Rule(
        "webhook_deliveries",
        tables.WebhookDelivery,
        lambda before: and_(
            tables.WebhookDelivery.state != "pending", tables.WebhookDelivery.finished_at < before
        ),
        keep_days=lambda settings: settings.keep_webhook_deliveries_days,
        at_least=timedelta(hours=1),  # a delivery shows that a recent decision was sent already
        prefix="msg",
    ),
    # A worker that holds a lease is kept, because its jobs must be queued again.
    Rule(
        "workers",
        tables.Worker,
        lambda before: and_(
            tables.Worker.last_seen_at < before,
            tables.Worker.id.not_in(
                select(tables.Job.lease_owner).where(tables.Job.lease_owner.is_not(None))
            ),
        ),
        keep_days=lambda _: KEEP_WORKERS_DAYS,
    ),
    Rule(
        "console_sessions",
        tables.ConsoleSession,
        lambda now: tables.ConsoleSession.expires_at <= now - KEEP_SESSIONS,
        order_by=tables.ConsoleSession.expires_at,
    ),
)

COUNTED = (*(rule.name for rule in RULES), "versions", "datasets", "files")
"""What retention counts: rows by rule, old versions and data sets, and files that no row needs."""
