"""Creates, returns, lists and cancels batch predictions, and finds their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from app.api.idempotency import Idempotency
from app.api.paging import Page, newest_first
from app.batch_predictions.schemas import (
    MAX_RANKED_LABELS,
    BatchPrediction,
    BatchPredictionCreate,
    BatchPredictionPage,
    BatchPredictionResult,
)
from app.context import AppContext
from app.datasets import service as datasets
from app.db import tables
from app.db.session import Database, Transaction
from app.errors import Conflict, Invalid, NotFound
from app.ids import new_id
from app.jobs import queue
from app.limits import service as limits
from app.registry import service as versions
from app.registry.compatibility import check_kind
from app.serving.catalog_reading import resolve
from app.storage import MissingFileError


def create(ctx: AppContext, body: BatchPredictionCreate, idempotency: Idempotency) -> BatchPrediction:
    """Queues the predictions of a version for a data set.

    Raises:
        NotFound: the version or the data set does not exist.
        Conflict: the data set is not ready.
        Invalid: the data set has another kind of examples than the version, or the rankings are too long.
    """
    if (first := idempotency.first_response(ctx.db, BatchPrediction)) is not None:
        return first
    dataset = datasets.get_ready(ctx, body.dataset_id, pointer="/dataset_id")

    def work(tx: Transaction) -> BatchPrediction:
        datasets.lock_ready(tx, dataset.id, pointer="/dataset_id")
        versions.lock_model(tx, body.model, shared=True)
        version = resolve(tx.session, body.model, body.version)
        check_kind(version, dataset, pointer="/dataset_id")
        _check_ranked_labels(body, version, dataset, MAX_RANKED_LABELS)
        job = queue.enqueue(
            tx, "batch_prediction", {}, dataset_id=dataset.id, model=body.model, priority=body.priority
        )
        limits.assign_to_key(tx, job, idempotency.key_id, ctx.settings.jobs_in_flight)
        row = tables.BatchPrediction(
            id=new_id("bp"),
            model=body.model,
            version=version.version,
            dataset_id=dataset.id,
            request=body.model_dump(mode="json", exclude_none=True),
            job_id=job.id,
            created_at=tx.now,
        )
        tx.session.add(row)
        tx.session.flush()
        return to_response(row, job)

    return idempotency.run(ctx.db, BatchPrediction, work)


def _check_ranked_labels(
    body: BatchPredictionCreate, version: tables.ModelVersion, dataset: tables.Dataset, limit: int
) -> None:
    n_documents = int((dataset.report or {})["n_examples"])
    n_labels = len(version.description["labels"])
    n_ranked = n_labels if body.top is None else min(body.top, n_labels)
    if n_documents * n_ranked <= limit:
        return
    most = limit // n_documents
    remedy = f"set top to at most {most:,}" if most else "use a smaller data set"
    message = (
        f"the rankings of {n_documents:,} documents with {n_ranked:,} labels each would have more than "
        f"{limit:,} labels; {remedy}"
    )
    raise Invalid(message, errors=[("/top" if most else "/dataset_id", message)])


def get(db: Database, batch_prediction_id: str) -> BatchPrediction:
    """Return a batch prediction.

    Raises:
        NotFound: the batch prediction does not exist.
    """
    with db.read() as session:
        return _get_or_404(session, batch_prediction_id)


def page(db: Database, page: Page) -> BatchPredictionPage:
    """Return a page of batch predictions, newest first."""
    with db.read() as session:
        rows, cursor = newest_first(session, select(tables.BatchPrediction), tables.BatchPrediction.id, page)
        job = tables.Job
        jobs = {
            row.id: row
            for row in session.execute(
                select(
                    *(job.id, job.state, job.priority, job.progress, job.attempt, job.started_at),
                    *(job.finished_at, job.cancel_requested_at, job.error),
                ).where(job.id.in_([row.job_id for row in rows]))
            )
        }
        return BatchPredictionPage(
            items=[to_response(row, jobs[row.job_id]) for row in rows], next_cursor=cursor
        )


def cancel(db: Database, batch_prediction_id: str) -> BatchPrediction:
    """Request the cancellation of a batch prediction; has no effect on one that has ended.

    Raises:
        NotFound: the batch prediction does not exist.
    """
    with db.write() as tx:
        row = _row_or_404(tx.session, batch_prediction_id)
        job = queue.lock(tx, row.job_id)
        assert job is not None, "the job of a batch prediction is not deleted"  # noqa: S101
        queue.request_cancel(tx, job)
        return to_response(row, job)


def result_path(
    ctx: AppContext, batch_prediction_id: str
) -> tuple[Path, BatchPrediction, BatchPredictionResult]:
    """Return the local path of the result of a batch prediction, the batch prediction, and its result.

    Raises:
        NotFound: the batch prediction does not exist, or has expired.
        Conflict: the batch prediction has not succeeded.
    """
    with ctx.db.read() as session:
        row = _row_or_404(session, batch_prediction_id)
        prediction = _get_or_404(session, batch_prediction_id)
    if row.result_key is None or prediction.result is None:
        raise _no_result(prediction)
    try:
        return ctx.storage.local(row.result_key), prediction, prediction.result
    except MissingFileError:
        get(ctx.db, batch_prediction_id)  # retention may have deleted both after the row was read
        raise


def _no_result(prediction: BatchPrediction) -> Conflict:
    if prediction.state in queue.UNFINISHED:
        return Conflict(
            f"batch prediction {prediction.id} is {prediction.state}; wait until it has succeeded",
            code="result_not_ready",
        )
    ended = "was cancelled" if prediction.state == "cancelled" else "failed; see its error"
    return Conflict(
        f"batch prediction {prediction.id} {ended}; it has no result, so create another one",
        code="no_result",
    )


def _row_or_404(session: Session, batch_prediction_id: str) -> tables.BatchPrediction:
    row = session.get(tables.BatchPrediction, batch_prediction_id)
    if row is None:
        raise NotFound(f"there is no batch prediction {batch_prediction_id}")
    return row


def _get_or_404(session: Session, batch_prediction_id: str) -> BatchPrediction:
    row = _row_or_404(session, batch_prediction_id)
    return to_response(row, session.get_one(tables.Job, row.job_id))


def to_response(row: tables.BatchPrediction, job: tables.Job | Row[Any]) -> BatchPrediction:
    """Convert a row to the response schema."""
    return BatchPrediction.model_validate(
        {
            "id": row.id,
            "model": row.model,
            "version": row.version,
            "dataset_id": row.dataset_id,
            "top": row.request.get("top"),
            "format": row.request["format"],
            "state": job.state,
            "priority": job.priority,
            "progress": job.progress,
            "attempt": job.attempt,
            "created_at": row.created_at,
            "started_at": job.started_at,
            "finished_at": job.finished_at,
            "cancel_requested_at": job.cancel_requested_at,
            "error": job.error,
            "result": row.result,
        }
    )
