"""Health and metrics over HTTP; open, and outside the versioned API."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from app.health.metrics import service_registry
from app.health.service import readiness
from app.http.base_route import Context, StrictJSONRoute, responses
from app.http.errors import NotReady
from app.http.schemas import ResponseModel

router = APIRouter(
    tags=["health"],
    route_class=StrictJSONRoute,
    generate_unique_id_function=lambda route: f"health_{route.name}",
)


class Live(ResponseModel):
    """The process answers."""

    status: Literal["live"]
    """It answers."""


class Ready(ResponseModel):
    """The service can work."""

    status: Literal["ready"]
    """It can work."""
    workers: int
    """Workers that were heard of lately."""
    queue_seconds: float
    """How long the oldest waiting job has waited."""


@router.get("/health/live")
def live() -> Live:
    """Tell that the process answers."""
    return Live(status="live")


@router.get("/health/ready", responses=responses(503))
def ready(ctx: Context, request: Request) -> Ready:
    """Tell whether this process goes on, database and storage answer and jobs get done."""
    if request.app.state.draining:
        raise NotReady("this process is being stopped", headers={"Retry-After": "5"})
    found = readiness(ctx)
    if not found.ready:
        raise NotReady("; ".join(found.reasons), headers={"Retry-After": "5"})
    return Ready(status="ready", workers=found.workers, queue_seconds=found.queue_seconds)


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "Prometheus text.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    },
)
def metrics(ctx: Context) -> Response:
    """Read counters and gauges in the Prometheus text format."""
    return Response(generate_latest(service_registry(ctx)), media_type=CONTENT_TYPE_LATEST)
