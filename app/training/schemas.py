"""Request and response schemas of training jobs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from typing_extensions import TypeAliasType

from app.api.errors import Problem
from app.api.schemas import JsonObject, Name, NextCursor, RequestModel, ResponseModel, Timestamp
from app.jobs.schemas import JobPriority, JobState, Progress
from app.registry.schemas import PartMetrics, PromoteIfBetter, PromotionOutcome, PromotionRule
from models.catalog import FeaturesRequest, LearnerConfig, default_parameters
from models.covering import Covering
from models.decisions import DecisionRule


class GivenSplit(RequestModel):
    """The data set's own split.

    The version is trained on `train` and evaluated on `test`. If there are `validation` examples, early
    stopping and decisions on held-out examples (`auto`, `target`, `tuned_threshold`) use them.
    """

    kind: Literal["given"]


class RandomSplit(RequestModel):
    """Random examples are held out.

    Labels are spread evenly over the parts, rare labels first, and every label keeps an example for training.
    Equal documents stay in one part.
    Messages that people reviewed because of the doubt or a mistake of a version (`selected_by`) are always
    for training.
    """

    kind: Literal["random"]
    test_fraction: float = Field(gt=0, lt=1)
    """Fraction of the examples that can be held out, which is held out to evaluate the version."""
    validation_fraction: float = Field(default=0, ge=0, lt=1)
    """Fraction of the examples that is held out for early stopping and for decisions on held-out examples
    (`auto`, `target`, `tuned_threshold`). With 0, both hold out training examples themselves."""

    @model_validator(mode="after")
    def _leaves_training_examples(self) -> Self:
        if self.test_fraction + self.validation_fraction >= 1:
            raise ValueError("test_fraction and validation_fraction must add up to less than 1")
        return self


class NoSplit(RequestModel):
    """All examples are for training. No examples are held out, so there are no test measures."""

    kind: Literal["none"]


TrainingSplit = TypeAliasType(
    "TrainingSplit",
    Annotated[
        GivenSplit | RandomSplit | NoSplit,
        Field(
            discriminator="kind",
            description="Which examples are held out of the training, discriminated by `kind`.",
        ),
    ],
)


KeepLabels = TypeAliasType(
    "KeepLabels",
    Annotated[
        Literal["trained", "all"],
        Field(
            description="Which labels a version has: those with a training example, or all labels of the "
            "data set."
        ),
    ],
)


class TrainingJobCreate(RequestModel):
    """A training to run."""

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
                    "promote": {"if_better": {"metric": "f1_micro"}},
                },
            ]
        }
    )

    model: Name
    """Name of the model that gets a new version. The model is created if it does not exist."""
    dataset_id: str
    """Id of a data set in the state `ready`."""
    split: TrainingSplit | None = None
    """How examples are held out. Defaults to the data set's own split, or to `none` if it has none."""
    features: FeaturesRequest | None = None
    """Feature extraction. Defaults to what suits the learner and the kind of the data set, see
    `GET /v1/learners`."""
    learner: LearnerConfig = Field(default_factory=default_parameters)
    """Learner and its parameters. `GET /v1/learners` lists all learners. Defaults to `svm`."""
    decision: DecisionRule | None = None
    """Decision rule that turns scores into label sets. Defaults to `auto`, or to the learner's
    own rule if its scores are not comparable between documents."""
    keep_labels: KeepLabels = "trained"
    """Labels of the version. With `all`, measures average over the labels without a training example, too."""
    covering: Covering | None = None
    """A label covering by which the version is measured: its metrics then have `covering_error` and
    `covering_loss`. Defaults to the covering of the learner `adaboost_lc`; other learners have none."""
    promote: PromotionRule | PromoteIfBetter = "if_first"
    """When to move the alias `live` to the new version."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of all random choices. The same request with the same seed gives an identical model."""
    priority: JobPriority = 0
    """Priority among the trainings that wait for a worker."""


class TrainingResult(ResponseModel):
    """The result of a training."""

    model: str
    """Name of the model."""
    version: int
    """Number of the new version."""
    metrics: PartMetrics
    """Measures of the new version."""
    promotion: PromotionOutcome | None = None
    """Whether the version was promoted, and why."""


class TrainingJob(ResponseModel):
    """A training job."""

    id: str
    """Id of the job; begins with `job_`."""
    model: str
    """Name of the model that gets a new version."""
    dataset_id: str | None = None
    """Id of the data set; omitted after the data set is deleted."""
    request: JsonObject
    """The request with every default filled in."""
    state: JobState
    """State of the job. `succeeded`, `failed` and `cancelled` are final."""
    priority: JobPriority
    """Priority among the trainings that wait for a worker."""
    progress: Progress | None = None
    """Progress of the job; set once it has started."""
    attempt: int
    """Number of times the job was started. More than 1 if a worker was lost or stopped."""
    created_at: Timestamp
    """When the job was created."""
    started_at: Timestamp | None = None
    """When the job was first started."""
    finished_at: Timestamp | None = None
    """When the job ended."""
    cancel_requested_at: Timestamp | None = None
    """When cancellation was requested."""
    error: Problem | None = None
    """Why the job failed."""
    result: TrainingResult | None = None
    """Result of the job; set once it has succeeded."""


class TrainingJobPage(ResponseModel):
    """A page of training jobs, newest first."""

    items: list[TrainingJob]
    """The training jobs."""
    next_cursor: NextCursor = None
