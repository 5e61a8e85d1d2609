"""Evaluations over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from app.evaluations import service
from app.evaluations.schemas import (
    Evaluation,
    EvaluationCreate,
    EvaluationId,
    EvaluationPage,
    TrainingEvaluation,
)
from app.http.base_route import Context, ReadScope, TrainScope, resource, response_headers, responses
from app.http.errors import Forbidden
from app.http.guards import has_scope
from app.http.idempotency import IdempotencyHeader
from app.http.paging import PageQuery
from app.http.schemas import ModelName
from app.registry.api import Number

router = resource("evaluations")

Texts = Annotated[
    bool, Query(description="Show the beginnings of the worst documents' texts; takes the scope `train`.")
]


@router.get(
    "/models/{name}/versions/{version}/evaluation", dependencies=[ReadScope], responses=responses(404)
)
def get_of_training(
    ctx: Context, request: Request, name: ModelName, version: Number, texts: Texts = False
) -> TrainingEvaluation:
    """Read what a version is worth on the parts of its own training: by label, by score, by document."""
    return service.of_training(ctx, name, version, texts=_allowed(request, texts))


@router.post(
    "/models/{name}/versions/{version}/evaluations",
    status_code=202,
    dependencies=[TrainScope],
    responses={**responses(404, 409), **response_headers(202, "Location")},
)
def create(
    ctx: Context,
    idempotency: IdempotencyHeader,
    name: ModelName,
    version: Number,
    body: EvaluationCreate,
    response: Response,
) -> Evaluation:
    """Measure a version on another data set, in a worker."""
    made = service.create(ctx, name, version, body, idempotency)
    response.headers["Location"] = f"/v1/models/{name}/versions/{version}/evaluations/{made.id}"
    return made


@router.get(
    "/models/{name}/versions/{version}/evaluations", dependencies=[ReadScope], responses=responses(404)
)
def list(ctx: Context, name: ModelName, version: Number, page: PageQuery) -> EvaluationPage:  # noqa: A001 - the verb of the operation's id
    """List the evaluations of a version that were asked for, the newest first."""
    return service.page(ctx.db, name, version, page)


@router.get(
    "/models/{name}/versions/{version}/evaluations/{evaluation_id}",
    dependencies=[ReadScope],
    responses=responses(404),
)
def get(
    ctx: Context,
    request: Request,
    name: ModelName,
    version: Number,
    evaluation_id: EvaluationId,
    texts: Texts = False,
) -> Evaluation:
    """Read an evaluation: its state, and in the end what was measured."""
    return service.get(ctx, name, version, evaluation_id, texts=_allowed(request, texts))


def _allowed(request: Request, texts: bool) -> bool:
    if texts and not has_scope(request, "train"):
        raise Forbidden("texts of documents take the scope train")
    return texts
