"""HTTP routes of evaluations."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query, Request, Response

from app.api.base_route import Context, ReadScope, TrainScope, resource, response_headers, responses
from app.api.guards import has_scope
from app.api.idempotency import IdempotencyHeader
from app.api.paging import PageQuery
from app.api.schemas import ModelName
from app.errors import Forbidden
from app.evaluations import service
from app.evaluations.schemas import (
    Evaluation,
    EvaluationCreate,
    EvaluationId,
    EvaluationPage,
    TrainingEvaluation,
)
from app.registry.api import Number
from app.threads import REQUESTS, STORAGE

router = resource("evaluations")

Texts = Annotated[
    bool,
    Query(description="Include the beginning of each worst document's text; requires the scope `train`."),
]


@router.get(
    "/models/{name}/versions/{version}/evaluation",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="The evaluation.",
)
async def get_of_training(
    ctx: Context, request: Request, name: ModelName, version: Number, texts: Texts = False
) -> TrainingEvaluation:
    """Get the evaluation of a version on its own training and test part: by label, by score, by document."""
    texts = _check_scope(request, texts)
    pool = STORAGE if texts else REQUESTS
    return await pool.run(partial(service.get_of_training, ctx, name, version, texts=texts))


@router.post(
    "/models/{name}/versions/{version}/evaluations",
    status_code=202,
    dependencies=[TrainScope],
    responses={**responses(404, 409), **response_headers(202, "Location")},
    response_description="The queued evaluation.",
)
def create(
    ctx: Context,
    idempotency: IdempotencyHeader,
    name: ModelName,
    version: Number,
    body: EvaluationCreate,
    response: Response,
) -> Evaluation:
    """Evaluate a version on a data set."""
    evaluation = service.create(ctx, name, version, body, idempotency)
    response.headers["Location"] = f"/v1/models/{name}/versions/{version}/evaluations/{evaluation.id}"
    return evaluation


@router.get(
    "/models/{name}/versions/{version}/evaluations",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="A page of evaluations.",
)
def list(ctx: Context, name: ModelName, version: Number, page: PageQuery) -> EvaluationPage:  # noqa: A001 - the verb of the operation's id
    """List the evaluations of a version on data sets, newest first."""
    return service.page(ctx.db, name, version, page)


@router.get(
    "/models/{name}/versions/{version}/evaluations/{evaluation_id}",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="The evaluation.",
)
async def get(
    ctx: Context,
    request: Request,
    name: ModelName,
    version: Number,
    evaluation_id: EvaluationId,
    texts: Texts = False,
) -> Evaluation:
    """Get an evaluation: its state, and its result or error once it has ended."""
    texts = _check_scope(request, texts)
    pool = STORAGE if texts else REQUESTS
    return await pool.run(partial(service.get, ctx, name, version, evaluation_id, texts=texts))


def _check_scope(request: Request, texts: bool) -> bool:
    """Return ``texts``.

    Raises:
        Forbidden: the caller requests texts without the scope ``train``.
    """
    if texts and not has_scope(request, "train"):
        raise Forbidden("texts of documents require the scope train")
    return texts
