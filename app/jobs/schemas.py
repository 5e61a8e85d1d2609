"""Response schemas that all kinds of jobs share: state, progress, events, and learning curves."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from app.api.schemas import JsonObject, NextCursor, ResponseModel, Timestamp
from app.jobs.queue import MAX_PRIORITY, MIN_PRIORITY

JobState = TypeAliasType(
    "JobState",
    Annotated[
        Literal["queued", "running", "succeeded", "failed", "cancelled"],
        Field(description="`queued`, then `running`, then `succeeded`, `failed` or `cancelled`."),
    ],
)

JobPriority = TypeAliasType(
    "JobPriority",
    Annotated[
        int,
        Field(
            ge=MIN_PRIORITY,
            le=MAX_PRIORITY,
            description=(
                "Workers start jobs of a higher priority first, among jobs of the same class: ingestions, "
                "then evaluations and batch predictions, then trainings and planning of experiments, then "
                "cells of experiments. With equal priority, the API key with the fewest running jobs goes "
                "first, then the oldest job."
            ),
        ),
    ],
)


class Progress(ResponseModel):
    """Progress of a job."""

    phase: str
    """Current phase, such as `features`, `training`, `evaluating`."""
    completed: int
    """Number of units completed in this phase."""
    total: int | None = None
    """Total number of units in this phase, if known."""
    unit: str
    """What is counted, such as `rounds`."""
    fraction: float | None = Field(default=None, ge=0, le=1)
    """Estimated share of the whole job that is done. It never decreases. Absent if the job has one phase."""


class JobEvent(ResponseModel):
    """An event in the life of a job."""

    seq: int
    """Number of the event among the job's events, from 1. Also the event id in the event stream."""
    at: Timestamp
    """When the event happened."""
    type: str
    """Type of the event, such as `queued`, `started`, `succeeded`."""
    detail: JsonObject
    """Details, which depend on the type."""


class JobEventPage(ResponseModel):
    """A page of events, oldest first."""

    items: list[JobEvent]
    """The events."""
    next_cursor: NextCursor = None


class CurvePoint(ResponseModel):
    """The measures after one step of a training."""

    step: int
    """The round, epoch or pass, from 1."""
    measures: dict[str, float]
    """Measures after this step, by name."""


class CurvePage(ResponseModel):
    """A page of a learning curve, by ascending step."""

    items: list[CurvePoint]
    """The points of the curve."""
    next_cursor: NextCursor = None
