"""Deletes rows that are older than the settings ``keep_*_days`` allow.

Ids begin with the time of their creation, so the primary key finds old rows, and no index on a time is
needed. Rows that another worker is deleting are skipped on PostgreSQL.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeAlias

from sqlalchemy import delete, exists, select, tuple_, update
from sqlalchemy.orm import InstrumentedAttribute

from app.context import AppContext
from app.db import tables
from app.db.session import Transaction
from app.ids import first_id
from app.jobs.queue import FINISHED
from app.routing import decisions as recorded_decisions

BATCH_SIZE = 500
"""Maximum number of rows that one transaction deletes from a table."""

JOBS_AT_ONCE = 20
"""Maximum number of jobs that one transaction deletes."""

MAX_BATCHES = 200
"""Maximum number of transactions per table and pass."""

PAUSE_SECONDS = 0.05
"""Pause after each transaction, in which other writers get their turn."""

KEEP_IDEMPOTENCY_DAYS = 1.0
"""How long a response to an ``Idempotency-Key`` is kept: much longer than clients repeat a request, and as
long as signatures of e-mail providers are valid."""

KEEP_WORKERS_DAYS = 1.0
"""How long the record of a dead worker is kept: long enough to look into its death."""

_ANY_AGE = 1.0
"""Number of days for rows that have an expiry of their own; it is not used."""

Batch: TypeAlias = tuple[int, str | None]
"""Number of deleted rows, and the position after which the next batch starts; None after the last batch."""


def delete_expired(ctx: AppContext, stop: Callable[[], bool]) -> dict[str, int]:
    """Delete expired rows. Return their number by table."""
    settings = ctx.settings
    return {
        "decisions": _delete_in_batches(ctx, stop, settings.keep_decisions_days, _delete_decisions),
        "kept_messages": _delete_in_batches(ctx, stop, _ANY_AGE, _forget_messages),
        # Experiments and batch predictions come before jobs, because they keep their jobs.
        "experiments": _delete_in_batches(ctx, stop, settings.keep_experiments_days, _delete_experiments),
        "batch_predictions": _delete_in_batches(
            ctx, stop, settings.keep_batch_predictions_days, _delete_batch_predictions
        ),
        "jobs": _delete_in_batches(ctx, stop, settings.keep_jobs_days, _delete_jobs),
        "idempotency_records": _delete_in_batches(
            ctx, stop, KEEP_IDEMPOTENCY_DAYS, _delete_idempotency_records
        ),
        "webhook_deliveries": _delete_in_batches(
            ctx, stop, settings.keep_webhook_deliveries_days, _delete_webhook_deliveries
        ),
        "workers": _delete_in_batches(ctx, stop, KEEP_WORKERS_DAYS, _delete_workers),
        "console_sessions": _delete_in_batches(ctx, stop, _ANY_AGE, _delete_console_sessions),
    }


def _delete_in_batches(
    ctx: AppContext,
    stop: Callable[[], bool],
    keep_days: float,
    delete_batch: Callable[[Transaction, datetime, str], Batch],
) -> int:
    """Delete batches of rows until none is left, the pass has done enough, or ``stop`` returns True."""
    deleted = 0
    position: str | None = ""
    for _ in range(MAX_BATCHES if keep_days else 0):
        if position is None or stop():
            break
        with ctx.db.write() as tx:
            count, position = delete_batch(tx, tx.now - timedelta(days=keep_days), position)
        deleted += count
        if position is not None:
            time.sleep(PAUSE_SECONDS)
    return deleted


def _delete_decisions(tx: Transaction, before: datetime, after: str) -> Batch:
    decisions = tables.Decision
    rows = tx.session.scalars(
        select(decisions)
        .where(decisions.id > after, decisions.id < first_id("dec", before), decisions.created_at < before)
        .order_by(decisions.id)
        .limit(BATCH_SIZE)
        .with_for_update(skip_locked=True)
    ).all()
    recorded_decisions.delete_rows(tx, rows)
    return len(rows), rows[-1].id if len(rows) == BATCH_SIZE else None


def _forget_messages(tx: Transaction, _before: datetime, after: str) -> Batch:
    """Remove messages whose own time has passed from their decisions. Their files are then unused."""
    decisions = tables.Decision
    ids = tx.session.scalars(
        select(decisions.id)
        .where(decisions.kept_until < tx.now)
        .order_by(decisions.kept_until)
        .limit(BATCH_SIZE)
        .with_for_update(skip_locked=True)
    ).all()
    tx.session.execute(
        update(decisions).where(decisions.id.in_(ids)).values(kept_message=None, kept_until=None)
    )
    return len(ids), after if len(ids) == BATCH_SIZE else None


def _delete_experiments(tx: Transaction, before: datetime, after: str) -> Batch:
    """Delete an experiment with its cells. Its jobs then expire like others, and its files are orphans."""
    experiments = tables.Experiment
    id_ = tx.session.scalar(
        select(experiments.id)
        .where(
            experiments.id > after,
            experiments.id < first_id("exp", before),
            experiments.state.in_(FINISHED),
            experiments.finished_at < before,
        )
        .order_by(experiments.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    if id_ is None:
        return 0, None
    tx.session.execute(delete(experiments).where(experiments.id == id_))
    return 1, id_


def _delete_batch_predictions(tx: Transaction, before: datetime, after: str) -> Batch:
    """Delete finished batch predictions. Their jobs then expire like others, and their files are orphans."""
    predictions, jobs = tables.BatchPrediction, tables.Job
    ids = tx.session.scalars(
        select(predictions.id)
        .join(jobs, jobs.id == predictions.job_id)
        .where(
            predictions.id > after,
            predictions.id < first_id("bp", before),
            jobs.state.in_(FINISHED),
            jobs.finished_at < before,
        )
        .order_by(predictions.id)
        .limit(BATCH_SIZE)
        .with_for_update(skip_locked=True, of=predictions)
    ).all()
    tx.session.execute(delete(predictions).where(predictions.id.in_(ids)))
    return len(ids), ids[-1] if len(ids) == BATCH_SIZE else None


def _delete_jobs(tx: Transaction, before: datetime, after: str) -> Batch:
    """Delete finished jobs that nothing refers to, with their events and curves.

    A job can have many thousands of curve points. If they are more than one batch, this deletes a part of
    them, and the next batch continues with the same jobs.
    """
    jobs = tables.Job
    ids = tx.session.scalars(
        select(jobs.id)
        .where(
            jobs.id > after,
            jobs.id < first_id("job", before),
            jobs.state.in_(FINISHED),
            jobs.finished_at < before,
            *(~exists().where(reference == jobs.id) for reference in _JOB_REFERENCES),
        )
        .order_by(jobs.id)
        .limit(JOBS_AT_ONCE)
        .with_for_update(skip_locked=True)
    ).all()
    for job_id, number in (
        (tables.CurvePoint.job_id, tables.CurvePoint.step),
        (tables.JobEvent.job_id, tables.JobEvent.seq),
    ):
        keys = tx.session.execute(select(job_id, number).where(job_id.in_(ids)).limit(BATCH_SIZE)).all()
        tx.session.execute(
            delete(job_id.class_).where(tuple_(job_id, number).in_([tuple(key) for key in keys]))
        )
        if len(keys) == BATCH_SIZE:
            return 0, after
    tx.session.execute(delete(jobs).where(jobs.id.in_(ids)))
    return len(ids), ids[-1] if len(ids) == JOBS_AT_ONCE else None


_JOB_REFERENCES: tuple[InstrumentedAttribute[str] | InstrumentedAttribute[str | None], ...] = (
    tables.ModelVersion.training_job_id,
    tables.Evaluation.job_id,
    tables.BatchPrediction.job_id,
    tables.Experiment.job_id,
    tables.ExperimentCell.job_id,
)
"""Columns with ids of jobs that are kept."""


def _delete_idempotency_records(tx: Transaction, before: datetime, after: str) -> Batch:
    records = tables.IdempotencyRecord
    keys = tx.session.execute(
        select(records.caller, records.key)
        .where(records.created_at < before)
        .order_by(records.created_at)
        .limit(BATCH_SIZE)
        .with_for_update(skip_locked=True)
    ).all()
    tx.session.execute(
        delete(records).where(tuple_(records.caller, records.key).in_([tuple(key) for key in keys]))
    )
    return len(keys), after if len(keys) == BATCH_SIZE else None


def _delete_webhook_deliveries(tx: Transaction, before: datetime, after: str) -> Batch:
    """Delete finished deliveries, but none that shows that a recent decision was sent already."""
    before = min(before, tx.now - timedelta(hours=1))
    deliveries = tables.WebhookDelivery
    ids = tx.session.scalars(
        select(deliveries.id)
        .where(
            deliveries.id > after,
            deliveries.id < first_id("msg", before),
            deliveries.state != "pending",
            deliveries.finished_at < before,
        )
        .order_by(deliveries.id)
        .limit(BATCH_SIZE)
        .with_for_update(skip_locked=True)
    ).all()
    tx.session.execute(delete(deliveries).where(deliveries.id.in_(ids)))
    return len(ids), ids[-1] if len(ids) == BATCH_SIZE else None


def _delete_workers(tx: Transaction, before: datetime, after: str) -> Batch:
    """Delete dead workers, except those that still hold a lease: their jobs must be queued again."""
    workers = tables.Worker
    lease_owners = select(tables.Job.lease_owner).where(tables.Job.lease_owner.is_not(None))
    ids = tx.session.scalars(
        select(workers.id)
        .where(workers.id > after, workers.last_seen_at < before, workers.id.not_in(lease_owners))
        .order_by(workers.id)
        .limit(BATCH_SIZE)
        .with_for_update(skip_locked=True)
    ).all()
    tx.session.execute(delete(workers).where(workers.id.in_(ids)))
    return len(ids), ids[-1] if len(ids) == BATCH_SIZE else None


def _delete_console_sessions(tx: Transaction, _before: datetime, after: str) -> Batch:
    sessions = tables.ConsoleSession
    tokens = tx.session.scalars(
        select(sessions.token_sha256)
        .where(sessions.expires_at <= tx.now)
        .order_by(sessions.expires_at)
        .limit(BATCH_SIZE)
        .with_for_update(skip_locked=True)
    ).all()
    tx.session.execute(delete(sessions).where(sessions.token_sha256.in_(tokens)))
    return len(tokens), after if len(tokens) == BATCH_SIZE else None
