"""Create batch predictions, and find their results."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import select

from app.api.idempotency import Idempotency
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
from app.db.session import Transaction
from app.errors import Conflict, Invalid
from app.ids import new_id
from app.jobs import queue
from app.jobs.views import JobResource
from app.limits import service as limits
from app.registry import service as versions
from app.registry.compatibility import check_kind
from app.registry.queries import resolve
from app.storage import MissingFileError

PREDICTIONS: JobResource[tables.BatchPrediction, BatchPrediction, BatchPredictionPage] = JobResource(
    "batch prediction",
    BatchPrediction,
    BatchPredictionPage,
    lambda row: {
        "id": row.id,
        "model": row.model,
        "version": row.version,
        "dataset_id": row.dataset_id,
        "top": row.request.get("top"),
        "format": row.request["format"],
        "created_at": row.created_at,
        "result": row.result,
    },
    id_=tables.BatchPrediction.id,
    job_id=tables.BatchPrediction.job_id,
    rows=select(tables.BatchPrediction),
)
get, page, cancel = PREDICTIONS.get, PREDICTIONS.page, PREDICTIONS.cancel


def create(ctx: AppContext, body: BatchPredictionCreate, idempotency: Idempotency) -> BatchPrediction:
    """Queue the predictions of a version for a data set.

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
            tx,
            "batch_prediction",
            {},
            dataset_id=dataset.id,
            model=body.model,
            priority=body.priority,
            key_id=idempotency.key_id,
        )
        limits.check_job_limit(tx, idempotency.key_id, ctx.settings.jobs_in_flight)
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
        return PREDICTIONS.to_response(row, job)

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
    hint = f"set top to at most {most:,}" if most else "use a smaller data set"
    message = (
        f"the rankings of {n_documents:,} documents with {n_ranked:,} labels each would have more than "
        f"{limit:,} labels; {hint}"
    )
    raise Invalid(message, errors=[("/top" if most else "/dataset_id", message)])


def result_path(
    ctx: AppContext, batch_prediction_id: str
) -> tuple[Path, BatchPrediction, BatchPredictionResult]:
    """Return the local path of the result of a batch prediction, the batch prediction, and its result.

    Raises:
        NotFound: the batch prediction does not exist, or has expired.
        Conflict: the batch prediction has not succeeded.
    """
    with ctx.db.read() as session:
        row, job = PREDICTIONS.get_or_404(session, batch_prediction_id)
        prediction = PREDICTIONS.to_response(row, job)
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
