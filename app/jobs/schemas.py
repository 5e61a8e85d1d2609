"""Schemas that every kind of job shares: state, progress, events and curve."""

from __future__ import annotations

from typing import Literal, TypeAlias

from app.http.schemas import JsonObject, NextCursor, ResponseModel, Timestamp

JobState: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled"]


class Progress(ResponseModel):
    """How far a job is."""

    phase: str
    """What it is doing, such as `features`, `training`, `evaluating`."""
    completed: int
    """Units done in this phase."""
    total: int | None = None
    """Units that there are to do, where that is known."""
    unit: str
    """What is counted, such as `rounds`."""


class JobEvent(ResponseModel):
    """Something that happened to a job."""

    seq: int
    """Its place among the job's events, from 1; also the id in the event stream."""
    at: Timestamp
    """When it happened."""
    type: str
    """What happened, such as `queued`, `started`, `succeeded`."""
    detail: JsonObject
    """More about it; depends on the type."""


class JobEventPage(ResponseModel):
    """A page of events, in their order."""

    items: list[JobEvent]
    """The page."""
    next_cursor: NextCursor = None


class CurvePoint(ResponseModel):
    """The measures of one step of a training."""

    step: int
    """The round, epoch or pass, from 1."""
    measures: dict[str, float]
    """Measure to value after this step."""


class CurvePage(ResponseModel):
    """A page of a training's curve, by rising step."""

    items: list[CurvePoint]
    """The page."""
    next_cursor: NextCursor = None
