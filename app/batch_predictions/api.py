"""HTTP routes of batch predictions."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import Response
from fastapi.responses import FileResponse

from app.api.base_route import Context, PredictScope, ReadScope, resource, response_headers, responses
from app.api.downloads import RangeHeader, download, download_responses
from app.api.idempotency import IdempotencyHeader
from app.api.paging import PageQuery
from app.batch_predictions import service
from app.batch_predictions.schemas import (
    BatchPrediction,
    BatchPredictionCreate,
    BatchPredictionId,
    BatchPredictionPage,
    ResultFormat,
)
from app.threads import STORAGE

router = resource("batch_predictions")

MEDIA_TYPES: Mapping[ResultFormat, str] = {
    "ndjson": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}


@router.post(
    "/batch-predictions",
    status_code=202,
    dependencies=[PredictScope],
    responses={**responses(404, 409), **response_headers(202, "Location")},
    response_description="The queued batch prediction.",
)
def create(
    ctx: Context, idempotency: IdempotencyHeader, body: BatchPredictionCreate, response: Response
) -> BatchPrediction:
    """Predict for all examples of a data set. A worker writes the predictions to a file."""
    prediction = service.create(ctx, body, idempotency)
    response.headers["Location"] = f"/v1/batch-predictions/{prediction.id}"
    return prediction


@router.get(
    "/batch-predictions",
    dependencies=[ReadScope],
    response_description="A page of batch predictions.",
)
def list(ctx: Context, page: PageQuery) -> BatchPredictionPage:  # noqa: A001 - the verb of the operation's id
    """List batch predictions, newest first."""
    return service.page(ctx.db, page)


@router.get(
    "/batch-predictions/{batch_prediction_id}",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="The batch prediction.",
)
def get(ctx: Context, batch_prediction_id: BatchPredictionId) -> BatchPrediction:
    """Get a batch prediction: its state and progress, and its result or error once it has ended."""
    return service.get(ctx.db, batch_prediction_id)


@router.post(
    "/batch-predictions/{batch_prediction_id}/cancel",
    status_code=202,
    dependencies=[PredictScope],
    responses=responses(404, 409),
    response_description="The batch prediction; its state changes when the worker stops.",
)
def cancel(ctx: Context, batch_prediction_id: BatchPredictionId) -> BatchPrediction:
    """Cancel a batch prediction. It then has no result.

    If it has ended, the request has no effect.
    """
    return service.cancel(ctx.db, batch_prediction_id)


@router.get(
    "/batch-predictions/{batch_prediction_id}/result",
    dependencies=[ReadScope],
    response_class=FileResponse,
    responses={**responses(404, 409, 416), **download_responses("result", *MEDIA_TYPES.values())},
)
async def download_result(
    ctx: Context, batch_prediction_id: BatchPredictionId, range_: RangeHeader = None
) -> FileResponse:
    """Download the result of a batch prediction, in the requested format.

    The predictions have the order of the examples. The `ETag` is the SHA-256 of the file. To resume an
    interrupted download, send a `Range`. The result is deleted with the batch prediction, after
    `COVEY_KEEP_BATCH_PREDICTIONS_DAYS`.
    """
    path, prediction, result = await STORAGE.run(service.result_path, ctx, batch_prediction_id)
    return download(
        path,
        sha256=result.sha256,
        size=result.size_bytes,
        media_type=MEDIA_TYPES[prediction.format],
        filename=f"{prediction.id}.{prediction.format}",
        range_=range_,
    )
