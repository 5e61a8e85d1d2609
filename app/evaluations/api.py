"""Evaluations over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from app.errors import Forbidden
from app.evaluations import service
from app.evaluations.schemas import (
    Evaluation,
    EvaluationCreate,
    EvaluationId,
    EvaluationPage,
    TrainingEvaluation,
)
from app.http import Env, ReadScope, TrainScope, headed, resource, responses
from app.idempotency import OnceHeader
from app.keys.guard import has_scope
from app.paging import PageQuery
from app.schemas import ModelName
from app.versions.api import Number

router = resource("evaluations")

Texts = Annotated[
    bool, Query(description="Show the beginnings of the worst documents' texts; takes the scope `train`.")
]


@router.get(
    "/models/{name}/versions/{version}/evaluation", dependencies=[ReadScope], responses=responses(404)
)
def get_of_training(
    env: Env, request: Request, name: ModelName, version: Number, texts: Texts = False
) -> TrainingEvaluation:
    """Read what a version is worth on the parts of its own training: by label, by score, by document."""
    return service.of_training(env, name, version, texts=_allowed(request, texts))


@router.post(
    "/models/{name}/versions/{version}/evaluations",
    status_code=202,
    dependencies=[TrainScope],
    responses={**responses(404, 409), **headed(202, "Location")},
)
def create(
    env: Env, once: OnceHeader, name: ModelName, version: Number, body: EvaluationCreate, response: Response
) -> Evaluation:
    """Measure a version on another data set, in a worker."""
    made = service.create(env, name, version, body, once)
    response.headers["Location"] = f"/v1/models/{name}/versions/{version}/evaluations/{made.id}"
    return made


@router.get(
    "/models/{name}/versions/{version}/evaluations", dependencies=[ReadScope], responses=responses(404)
)
def list(env: Env, name: ModelName, version: Number, page: PageQuery) -> EvaluationPage:  # noqa: A001 - the verb of the operation's id
    """List the evaluations of a version that were asked for, the newest first."""
    return service.page(env.db, name, version, page)


@router.get(
    "/models/{name}/versions/{version}/evaluations/{evaluation_id}",
    dependencies=[ReadScope],
    responses=responses(404),
)
def get(
    env: Env,
    request: Request,
    name: ModelName,
    version: Number,
    evaluation_id: EvaluationId,
    texts: Texts = False,
) -> Evaluation:
    """Read an evaluation: its state, and in the end what was measured."""
    return service.get(env, name, version, evaluation_id, texts=_allowed(request, texts))


def _allowed(request: Request, texts: bool) -> bool:
    if texts and not has_scope(request, "train"):
        raise Forbidden("texts of documents take the scope train")
    return texts
