"""HTTP routes of training jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Query, Request, Response

from app.api.base_route import Context, ReadScope, TrainScope, resource, response_headers, responses
from app.api.idempotency import IdempotencyHeader, caller
from app.api.paging import ListFilter, NameFilter, PageQuery
from app.api.schemas import JobId
from app.jobs.schemas import CurvePage, JobEventPage, JobState
from app.training import service
from app.training.event_streams import EventStreams, parse_event_id
from app.training.schemas import TrainingJob, TrainingJobCreate, TrainingJobPage

router = resource("training_jobs")


@router.post(
    "/training-jobs",
    status_code=202,
    dependencies=[TrainScope],
    responses={**responses(404, 409), **response_headers(202, "Location")},
    response_description="The queued training job.",
)
def create(
    ctx: Context, idempotency: IdempotencyHeader, body: TrainingJobCreate, response: Response
) -> TrainingJob:
    """Train a new version of a model. Incompatible options are rejected immediately."""
    job = service.create(ctx, body, idempotency)
    response.headers["Location"] = f"/v1/training-jobs/{job.id}"
    return job


@router.get(
    "/training-jobs",
    dependencies=[ReadScope],
    response_description="A page of training jobs.",
)
def list(  # noqa: A001 - the verb of the operation's id
    ctx: Context,
    page: PageQuery,
    name: NameFilter = "",
    state: Annotated[JobState | None, Query(description="Only items in this state.")] = None,
) -> TrainingJobPage:
    """List training jobs, newest first."""
    return service.page(ctx.db, page, ListFilter(name, state))


@router.get(
    "/training-jobs/{job_id}",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="The training job.",
)
def get(ctx: Context, job_id: JobId) -> TrainingJob:
    """Get a training job: its state and progress, and its result or error once it has ended."""
    return service.get(ctx.db, job_id)


@router.post(
    "/training-jobs/{job_id}/cancel",
    status_code=202,
    dependencies=[TrainScope],
    responses=responses(404, 409),
    response_description="The training job; its state changes when the worker stops.",
)
def cancel(ctx: Context, job_id: JobId) -> TrainingJob:
    """Cancel a training job. A queued job never starts; a running job stops after the current step."""
    return service.cancel(ctx.db, job_id)


@router.get(
    "/training-jobs/{job_id}/events",
    dependencies=[ReadScope],
    responses={
        **responses(404),
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
    },
    response_model=JobEventPage,
    response_description="A page of events, or a stream of events.",
)
def list_events(
    ctx: Context,
    request: Request,
    job_id: JobId,
    page: PageQuery,
    last_event_id: Annotated[
        str | None,
        Header(description="Id of the last event received; the stream continues after it.", max_length=18),
    ] = None,
) -> JobEventPage | Response:
    """List the events of a training job, oldest first.

    With `Accept: text/event-stream`, the response is a stream of server-sent events that ends with the job.
    If the header also contains `application/json`, the response is a page. With the `Last-Event-ID` of the
    last event of a job that has ended, the response is 204, so that an `EventSource` does not connect again.
    """
    accept = request.headers.get("accept", "")
    # Generated clients list every media type of the document, and read a page.
    if "text/event-stream" in accept and "application/json" not in accept:
        service.get(ctx.db, job_id)
        streams: EventStreams = request.app.state.event_streams
        return streams.open(caller(request), job_id, after=parse_event_id(last_event_id))
    return service.events(ctx.db, job_id, page)


@router.get(
    "/training-jobs/{job_id}/curve",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="A page of the learning curve.",
)
def list_curve(ctx: Context, job_id: JobId, page: PageQuery) -> CurvePage:
    """List the measures of a training by step: round, epoch or pass."""
    return service.curve(ctx.db, job_id, page)
