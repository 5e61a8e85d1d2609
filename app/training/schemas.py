"""What a client may say and will hear about training jobs."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from app.errors import Problem
from app.schemas import Answer, JsonObject, Name, Request, Timestamp
from models.catalog import FeaturesUnion, LearnerUnion
from models.decisions import DecisionUnion


class GivenSplit(Request):
    """The examples' own split."""

    kind: Literal["given"]


class RandomSplit(Request):
    """A random part is held out."""

    kind: Literal["random"]
    test_fraction: float = Field(gt=0, lt=1)


class NoSplit(Request):
    """Everything is for training; nothing is measured on held-out examples."""

    kind: Literal["none"]


SplitUnion: TypeAlias = Annotated[GivenSplit | RandomSplit | NoSplit, Field(discriminator="kind")]


class IfBetter(Request):
    """Promote when a measure on the test part is better than that of the version now live."""

    metric: str = Field(examples=["f1_micro"])


class PromoteIfBetter(Request):
    """Promote only a better version."""

    if_better: IfBetter


class TrainingJobCreate(Request):
    """A training to do."""

    model: Name
    """The model that gets a new version; made when there is none of this name."""
    dataset_id: str
    split: SplitUnion | None = None
    """By default the examples' own split where they have one, else none."""
    features: FeaturesUnion | None = None
    """By default text features for text and e-mail, numeric ones for features."""
    learner: LearnerUnion
    decision: DecisionUnion | None = None
    """How scores become label sets; by default the learner's own way."""
    promote: Literal["if_first", "always", "never"] | PromoteIfBetter = "if_first"
    """When the alias `live` moves to the new version."""
    seed: int = Field(default=0, ge=0, lt=2**32)


JobState: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled"]


class Progress(Answer):
    """How far a job is."""

    phase: str
    completed: int
    total: int | None = None
    unit: str


class PartMetrics(Answer):
    """Measures of the training part, and of the test part where there is one."""

    train: dict[str, float]
    test: dict[str, float] | None = None


class TrainingResult(Answer):
    """What a training made."""

    model: str
    version: int
    metrics: PartMetrics


class TrainingJob(Answer):
    """A training job."""

    id: str
    model: str
    dataset_id: str | None = None
    """Left out once the data set is deleted."""
    request: JsonObject
    """The request with every default filled in."""
    state: JobState
    progress: Progress | None = None
    attempt: int
    created_at: Timestamp
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None
    cancel_requested_at: Timestamp | None = None
    error: Problem | None = None
    result: TrainingResult | None = None


class TrainingJobPage(Answer):
    """A page of training jobs."""

    items: list[TrainingJob]
    next_cursor: str | None = None


class JobEvent(Answer):
    """Something that happened to a job."""

    seq: int
    at: Timestamp
    type: str
    detail: JsonObject


class JobEventPage(Answer):
    """A page of events, in their order."""

    items: list[JobEvent]
    next_cursor: str | None = None


class CurvePoint(Answer):
    """The measures of one step of a training."""

    step: int
    measures: dict[str, float]


class CurvePage(Answer):
    """A page of a training's curve, by rising step."""

    items: list[CurvePoint]
    next_cursor: str | None = None
