"""Pages of batch predictions: the list, the form, and one of them."""

from __future__ import annotations

from functools import cache

from fastapi import Request, Response

from app.api.base_route import Context, PredictScope, ReadScope
from app.api.paging import MAX_LIMIT, Page, PageQuery
from app.batch_predictions import service
from app.batch_predictions.schemas import BatchPredictionCreate, BatchPredictionId
from app.console.rendering import page
from app.console.route import pages
from app.console.schema_form import SchemaForm
from app.console.training import MAX_DATASETS
from app.datasets import service as datasets
from app.jobs.queue import FINISHED
from app.registry import service as registry

router = pages("/batch-predictions")


@router.get("", dependencies=[ReadScope])
def batch_predictions(ctx: Context, request: Request, paging: PageQuery) -> Response:
    """Show the batch predictions, newest first."""
    return page(request, "batch_predictions/list.html", predictions=service.page(ctx.db, paging))


@router.get("/new", dependencies=[PredictScope])
def new(ctx: Context, request: Request) -> Response:
    """Show the form of a batch prediction."""
    return page(
        request,
        "batch_predictions/new.html",
        models=registry.page_models(ctx.db, Page(MAX_LIMIT, None)).items,
        datasets=[
            item for item in datasets.page(ctx.db, Page(MAX_DATASETS, None)).items if item.state == "ready"
        ],
        fields=_form().fields(["version", "top", "format"], {"version": "live"}),
    )


@router.get("/{batch_prediction_id}", dependencies=[ReadScope])
def batch_prediction(ctx: Context, request: Request, batch_prediction_id: BatchPredictionId) -> Response:
    """Show a batch prediction: its progress, and its result or the reason of its failure."""
    item = service.get(ctx.db, batch_prediction_id)
    return page(request, "batch_predictions/detail.html", prediction=item, is_final=item.state in FINISHED)


@cache
def _form() -> SchemaForm:
    return SchemaForm(BatchPredictionCreate.model_json_schema())
