"""What a client may say and will hear about training jobs."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field

from app.errors import Problem
from app.schemas import Answer, JsonObject, Name, NextCursor, Request, Timestamp
from models.catalog import FeaturesUnion, LearnerUnion
from models.decisions import DecisionUnion


class GivenSplit(Request):
    """The examples' own split."""

    kind: Literal["given"]


class RandomSplit(Request):
    """A random part is held out."""

    kind: Literal["random"]
    test_fraction: float = Field(gt=0, lt=1)
    """The part that is held out, of 1."""


class NoSplit(Request):
    """Everything is for training; nothing is measured on held-out examples."""

    kind: Literal["none"]


SplitUnion: TypeAlias = Annotated[GivenSplit | RandomSplit | NoSplit, Field(discriminator="kind")]


PromotionRule: TypeAlias = Literal["if_first", "always", "never"]


class IfBetter(Request):
    """Promote when a measure on the test part is better than that of the version now live."""

    metric: str = Field(examples=["f1_micro"])
    """A measure of the test part, as in a version's `metrics`."""


class PromoteIfBetter(Request):
    """Promote only a better version."""

    if_better: IfBetter
    """Better in what."""


class TrainingJobCreate(Request):
    """A training to do."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "helpdesk",
                    "dataset_id": "ds_01k5a2b3c4d5e6f7g8h9jkmnpq",
                    "features": {
                        "kind": "text",
                        "weighting": "binary",
                        "analyzer": {
                            "lowercase": True,
                            "drop_numbers": True,
                            "stop_words": "english",
                            "stemmer": "porter",
                        },
                        "selection": {"kind": "information_gain", "policy": "round_robin", "per_label": 48},
                    },
                    "learner": {"algorithm": "mp_boost", "rounds": 200},
                    "decision": {"kind": "sign"},
                },
                {
                    "model": "helpdesk",
                    "dataset_id": "ds_01k5a2b3c4d5e6f7g8h9jkmnpq",
                    "learner": {"algorithm": "svm"},
                    "promote": {"if_better": {"metric": "f1_micro"}},
                },
            ]
        }
    )

    model: Name
    """The model that gets a new version; made when there is none of this name."""
    dataset_id: str
    """A data set that is ready."""
    split: SplitUnion | None = None
    """By default the examples' own split where they have one, else none."""
    features: FeaturesUnion | None = None
    """By default text features for text and e-mail, numeric ones for features."""
    learner: LearnerUnion
    """What learns, and its parameters; `GET /v1/learners` lists them."""
    decision: DecisionUnion | None = None
    """How scores become label sets; by default the learner's own way."""
    promote: PromotionRule | PromoteIfBetter = "if_first"
    """When the alias `live` moves to the new version."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """The same seed gives the same model, bit for bit."""


JobState: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled"]


class Progress(Answer):
    """How far a job is."""

    phase: str
    """What it is doing, such as `features`, `training`, `evaluating`."""
    completed: int
    """Units done in this phase."""
    total: int | None = None
    """Units that there are to do, where that is known."""
    unit: str
    """What is counted, such as `rounds`."""


class PartMetrics(Answer):
    """Measures of the training part, and of the test part where there is one."""

    train: dict[str, float]
    """Measure to value, on the examples learned from."""
    test: dict[str, float] | None = None
    """Measure to value, on the examples held out."""


class TrainingResult(Answer):
    """What a training made."""

    model: str
    """The model that got a new version."""
    version: int
    """The version's number."""
    metrics: PartMetrics
    """How good it is."""


class TrainingJob(Answer):
    """A training job."""

    id: str
    """Begins with `job_`."""
    model: str
    """The model that gets a new version."""
    dataset_id: str | None = None
    """Left out once the data set is deleted."""
    request: JsonObject
    """The request with every default filled in."""
    state: JobState
    """The last three are final."""
    progress: Progress | None = None
    """How far it is, once it has started."""
    attempt: int
    """How often it was started; more than once only where a worker was lost."""
    created_at: Timestamp
    """When it was asked for."""
    started_at: Timestamp | None = None
    """When its last attempt began."""
    finished_at: Timestamp | None = None
    """When it ended."""
    cancel_requested_at: Timestamp | None = None
    """When it was asked to stop."""
    error: Problem | None = None
    """Why it failed."""
    result: TrainingResult | None = None
    """What it made, once it has succeeded."""


class TrainingJobPage(Answer):
    """A page of training jobs."""

    items: list[TrainingJob]
    """The page."""
    next_cursor: NextCursor = None


class JobEvent(Answer):
    """Something that happened to a job."""

    seq: int
    """Its place among the job's events, from 1; also the id in the event stream."""
    at: Timestamp
    """When it happened."""
    type: str
    """What happened, such as `queued`, `started`, `succeeded`."""
    detail: JsonObject
    """More about it; depends on the type."""


class JobEventPage(Answer):
    """A page of events, in their order."""

    items: list[JobEvent]
    """The page."""
    next_cursor: NextCursor = None


class CurvePoint(Answer):
    """The measures of one step of a training."""

    step: int
    """The round, epoch or pass, from 1."""
    measures: dict[str, float]
    """Measure to value after this step."""


class CurvePage(Answer):
    """A page of a training's curve, by rising step."""

    items: list[CurvePoint]
    """The page."""
    next_cursor: NextCursor = None
