"""HTTP routes of health and metrics. They require no API key and are not part of the versioned API."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, disable_created_metrics, generate_latest

from app.api.base_route import Context, StrictJSONRoute, responses
from app.api.schemas import ResponseModel
from app.health.metrics import metrics_registry
from app.health.service import require_ready

disable_created_metrics()  # type: ignore[no-untyped-call]

router = APIRouter(
    tags=["health"],
    route_class=StrictJSONRoute,
    generate_unique_id_function=lambda route: f"health_{route.name}",
    responses=responses(403, 422),
)


class Live(ResponseModel):
    """The process responds."""

    status: Literal["live"]
    """Always `live`."""


class Ready(ResponseModel):
    """The service is ready."""

    status: Literal["ready"]
    """Always `ready`."""
    workers: int
    """Number of workers that have sent a heartbeat in the last 15 seconds."""
    queue_seconds: float
    """Waiting time of the oldest job that is due, in seconds; 0 if no job waits."""
    warnings: list[str] | None = None
    """Problems that another process of the service has too. The broker is unavailable, so no job starts; or
    all messages of a router go to the fallback, because its version is lost, or no label reaches its target.
    Absent if there are none."""


@router.get("/health/live", response_description="The process responds.")
def live() -> Live:
    """Check that the process responds."""
    return Live(status="live")


@router.get("/health/ready", responses=responses(503), response_description="The service is ready.")
def ready(ctx: Context, request: Request) -> Ready:
    """Check that the service is ready.

    The service is ready if this process does not shut down, database and storage are available, a worker
    runs, and no job waits too long although a worker has capacity.
    """
    state = require_ready(ctx, draining=request.app.state.draining)
    warnings = [*request.app.state.routed_versions.problems()]
    if state.broker_seconds:
        warnings.append(f"the broker has been unavailable for {state.broker_seconds:.0f} s: no job starts")
    return Ready(
        status="ready", workers=state.workers, queue_seconds=state.queue_seconds, warnings=warnings or None
    )


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "The metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    },
)
def metrics(ctx: Context) -> Response:
    """Get counters and gauges in the Prometheus text format."""
    return Response(generate_latest(metrics_registry(ctx)), media_type=CONTENT_TYPE_LATEST)
