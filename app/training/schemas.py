"""What a client may say and will hear about training jobs."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field

from app.http.errors import Problem
from app.http.schemas import JsonObject, Name, NextCursor, RequestModel, ResponseModel, Timestamp
from app.jobs.schemas import JobState, Progress
from app.registry.schemas import PartMetrics, PromoteIfBetter, PromotionRule
from models.catalog import FeaturesUnion, LearnerUnion
from models.decisions import DecisionUnion


class GivenSplit(RequestModel):
    """The examples' own split."""

    kind: Literal["given"]


class RandomSplit(RequestModel):
    """A random part is held out."""

    kind: Literal["random"]
    test_fraction: float = Field(gt=0, lt=1)
    """The part that is held out, of 1."""


class NoSplit(RequestModel):
    """Everything is for training; nothing is measured on held-out examples."""

    kind: Literal["none"]


SplitUnion: TypeAlias = Annotated[GivenSplit | RandomSplit | NoSplit, Field(discriminator="kind")]


class TrainingJobCreate(RequestModel):
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


class TrainingResult(ResponseModel):
    """What a training made."""

    model: str
    """The model that got a new version."""
    version: int
    """The version's number."""
    metrics: PartMetrics
    """How good it is."""


class TrainingJob(ResponseModel):
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


class TrainingJobPage(ResponseModel):
    """A page of training jobs."""

    items: list[TrainingJob]
    """The page."""
    next_cursor: NextCursor = None
