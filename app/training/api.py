"""Training jobs over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Request, Response
from fastapi.responses import StreamingResponse

from app.http.base_route import Context, ReadScope, TrainScope, resource, response_headers, responses
from app.http.idempotency import IdempotencyHeader
from app.http.paging import PageQuery
from app.http.schemas import JobId
from app.jobs.schemas import CurvePage, JobEventPage
from app.training import service, stream
from app.training.schemas import TrainingJob, TrainingJobCreate, TrainingJobPage

router = resource("training_jobs")


@router.post(
    "/training-jobs",
    status_code=202,
    dependencies=[TrainScope],
    responses={**responses(404, 409), **response_headers(202, "Location")},
)
def create(
    ctx: Context, idempotency: IdempotencyHeader, body: TrainingJobCreate, response: Response
) -> TrainingJob:
    """Train a new version of a model in a worker. What cannot go together is refused at once."""
    made = service.create(ctx, body, idempotency)
    response.headers["Location"] = f"/v1/training-jobs/{made.id}"
    return made


@router.get("/training-jobs", dependencies=[ReadScope])
def list(ctx: Context, page: PageQuery) -> TrainingJobPage:  # noqa: A001 - the verb of the operation's id
    """List training jobs, the newest first."""
    return service.page(ctx.db, page)


@router.get("/training-jobs/{job_id}", dependencies=[ReadScope], responses=responses(404))
def get(ctx: Context, job_id: JobId) -> TrainingJob:
    """Read a training job: its state, progress, and in the end its result or error."""
    return service.get(ctx.db, job_id)


@router.post(
    "/training-jobs/{job_id}/cancel", status_code=202, dependencies=[TrainScope], responses=responses(404)
)
def cancel(ctx: Context, job_id: JobId) -> TrainingJob:
    """Ask a job to stop. A queued one never starts; a running one stops at its next round."""
    return service.cancel(ctx.db, job_id)


@router.get(
    "/training-jobs/{job_id}/events",
    dependencies=[ReadScope],
    responses={
        **responses(404),
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
    },
    response_model=JobEventPage,
)
def list_events(
    ctx: Context,
    request: Request,
    job_id: JobId,
    page: PageQuery,
    last_event_id: Annotated[
        str | None, Header(description="The last event received, to go on after it.", max_length=18)
    ] = None,
) -> JobEventPage | StreamingResponse:
    """List what happened to a job; with `Accept: text/event-stream` as a stream that ends with the job."""
    if "text/event-stream" in request.headers.get("accept", ""):
        service.get(ctx.db, job_id)
        return StreamingResponse(
            stream.events(
                ctx.db, job_id, stream.position(last_event_id), until=lambda: request.app.state.draining
            ),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
    return service.events(ctx.db, job_id, page)


@router.get("/training-jobs/{job_id}/curve", dependencies=[ReadScope], responses=responses(404))
def list_curve(ctx: Context, job_id: JobId, page: PageQuery) -> CurvePage:
    """List the measures of a training by round, epoch or pass."""
    return service.curve(ctx.db, job_id, page)
