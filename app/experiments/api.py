"""HTTP routes of experiments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import Query, Request, Response

from app.api.base_route import Context, ReadScope, TrainScope, resource, response_headers, responses
from app.api.idempotency import IdempotencyHeader
from app.api.paging import ListFilter, NameFilter, PageQuery
from app.experiments import errors, service
from app.experiments.report import service as reports
from app.experiments.report.schemas import ExperimentReport, ReportFormat
from app.experiments.schemas import (
    Experiment,
    ExperimentConfusion,
    ExperimentCreate,
    ExperimentErrorPage,
    ExperimentId,
    ExperimentPage,
)
from app.jobs.schemas import JobState
from app.pages.report import choose_format, text_response
from app.threads import STORAGE

router = resource("experiments")

MEDIA_TYPES: Mapping[ReportFormat, str] = {
    "json": "application/json",
    "markdown": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
}


@router.post(
    "/experiments",
    status_code=202,
    dependencies=[TrainScope],
    responses={**responses(404, 409), **response_headers(202, "Location")},
    response_description="The queued experiment.",
)
def create(
    ctx: Context, idempotency: IdempotencyHeader, body: ExperimentCreate, response: Response
) -> Experiment:
    """Compare several configurations on the same splits of a data set.

    Incompatible options are rejected immediately.
    """
    experiment = service.create(ctx, body, idempotency)
    response.headers["Location"] = f"/v1/experiments/{experiment.id}"
    return experiment


@router.get(
    "/experiments",
    dependencies=[ReadScope],
    response_description="A page of experiments.",
)
def list(  # noqa: A001 - the verb of the operation's id
    ctx: Context,
    page: PageQuery,
    name: NameFilter = "",
    state: Annotated[JobState | None, Query(description="Only items in this state.")] = None,
) -> ExperimentPage:
    """List experiments, newest first."""
    return service.page(ctx.db, page, ListFilter(name, state))


@router.get(
    "/experiments/{experiment_id}",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="The experiment with its cells.",
)
def get(ctx: Context, experiment_id: ExperimentId) -> Experiment:
    """Get an experiment and the state of each cell."""
    return service.get(ctx.db, experiment_id)


@router.post(
    "/experiments/{experiment_id}/cancel",
    status_code=202,
    dependencies=[TrainScope],
    responses=responses(404, 409),
    response_description="The experiment; its state changes when the running cells stop.",
)
def cancel(ctx: Context, experiment_id: ExperimentId) -> Experiment:
    """Cancel an experiment. Finished cells keep their results; running cells stop after the current step."""
    return service.cancel(ctx, experiment_id)


ConfigurationQuery = Annotated[
    int, Query(ge=0, le=2**31 - 1, description="Index of the configuration in the request, from 0.")
]


@router.get(
    "/experiments/{experiment_id}/errors",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="A page of documents with wrong labels.",
)
async def list_errors(
    ctx: Context, experiment_id: ExperimentId, configuration: ConfigurationQuery, page: PageQuery
) -> ExperimentErrorPage:
    """List the held-out documents for which a configuration predicted wrong labels, over all folds.

    The documents with the most wrong labels come first. Each fold has its 1,000 worst, and at most 10,000
    are kept over all folds.
    """
    return await STORAGE.run(errors.page, ctx, experiment_id, configuration, page)


@router.get(
    "/experiments/{experiment_id}/confusion",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="The pairs of confused labels.",
)
async def get_confusion(
    ctx: Context, experiment_id: ExperimentId, configuration: ConfigurationQuery
) -> ExperimentConfusion:
    """Get the confusion matrix of a configuration over the held-out documents of all folds.

    If documents have several labels, the response has the pairs of a missed and a wrongly predicted label.
    """
    return await STORAGE.run(errors.confusion, ctx, experiment_id, configuration)


@router.get(
    "/experiments/{experiment_id}/report",
    dependencies=[ReadScope],
    response_model=ExperimentReport,
    responses={
        **responses(404, 406),
        200: {
            "content": {
                media: {"schema": {"type": "string"}} for form, media in MEDIA_TYPES.items() if form != "json"
            }
        },
    },
    response_description="The report.",
)
async def get_report(
    ctx: Context,
    request: Request,
    response: Response,
    experiment_id: ExperimentId,
    format: Annotated[  # noqa: A002 - the parameter's name
        ReportFormat | None,
        Query(description="Format of the report; by default, the format that `Accept` prefers."),
    ] = None,
) -> ExperimentReport | Response:
    """Get the results of an experiment: means over folds, learning curves, significance tests.

    The report is JSON, Markdown, CSV, or one self-contained HTML page with charts.
    """
    form = choose_format(request, response, MEDIA_TYPES, format)
    if form == "json":
        return await STORAGE.run(reports.get, ctx, experiment_id)
    text = await STORAGE.run(reports.get_as, ctx, experiment_id, form)
    return text_response(text, MEDIA_TYPES[form])
