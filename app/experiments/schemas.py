"""Request and response schemas of experiments."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self, TypeAlias

from fastapi import Path
from pydantic import ConfigDict, Field, field_validator, model_validator
from typing_extensions import TypeAliasType

from app.api.errors import Problem
from app.api.schemas import JsonObject, NextCursor, RequestModel, ResponseModel, Timestamp, Title
from app.evaluations.schemas import LabelPair, LabelScore
from app.jobs.schemas import JobPriority, JobState, Progress
from app.registry.schemas import PartMetrics
from app.training.schemas import GivenSplit, KeepLabels, RandomSplit
from models.catalog import FeaturesRequest, LearnerConfig
from models.covering import Covering
from models.data.values.scalars import MAX_FOLD
from models.decisions import DecisionRule

ExperimentId: TypeAlias = Annotated[str, Path(description="Id of the experiment.")]

DEFAULT_MEASURES = (
    "f1_micro",
    "f1_macro",
    "hamming_loss",
    "subset_zero_one",
    "one_error",
    "coverage",
    "average_precision",
)


class FoldsSplit(RequestModel):
    """Cross-validation: every example is held out once, and each label is spread evenly over the folds.

    Equal documents stay in one fold.
    Messages that people reviewed because of the doubt or a mistake of a version (`selected_by`) are always
    for training.
    """

    kind: Literal["folds"]
    folds: int = Field(default=5, ge=2, le=50)
    """Number of folds."""


class AssignedSplit(RequestModel):
    """Cross-validation with the data set's own folds: every example of the data set has its field `fold`."""

    kind: Literal["assigned"]
    folds: list[Annotated[int, Field(ge=0, le=MAX_FOLD)]] | None = Field(default=None, min_length=1)
    """Numbers of the folds to hold out, one after another. The other folds are then for training. Defaults to
    all folds of the data set."""


ExperimentSplit = TypeAliasType(
    "ExperimentSplit",
    Annotated[
        GivenSplit | RandomSplit | FoldsSplit | AssignedSplit,
        Field(
            discriminator="kind",
            description="Which examples are held out, and how often, discriminated by `kind`.",
        ),
    ],
)


TestAlternative = TypeAliasType(
    "TestAlternative",
    Annotated[
        Literal["two_sided", "greater", "less"],
        Field(
            description="What a test confirms: the values of the first configuration differ from those of "
            "the second, or are greater, or are less."
        ),
    ],
)


MAX_CELL_STEPS = 10_000
"""Largest number of steps of a cell that are all measured. Later steps are thinned."""

MAX_EXPERIMENT_STEPS = 100_000
"""The same for all cells of an experiment together, so that its report fits in memory."""

CurveSteps = TypeAliasType(
    "CurveSteps",
    Annotated[
        Literal["thinned", "all"],
        Field(
            description="`thinned`: the distance between the measured steps of a learning curve grows by a "
            f"tenth. `all`: every step is measured, up to {MAX_CELL_STEPS:,} of a cell and "
            f"{MAX_EXPERIMENT_STEPS:,} of all cells; later steps are thinned."
        ),
    ],
)


class ExperimentConfiguration(RequestModel):
    """A combination of features, a learner, and a decision rule."""

    name: Title | None = None
    """Name in reports. Defaults to the algorithm and the parameters that differ between configurations."""
    features: FeaturesRequest | None = None
    """Feature extraction. The default is that of a training: what suits the learner and the kind of the data
    set, see `GET /v1/learners`. `auto` is chosen on the training part of each fold."""
    learner: LearnerConfig
    """Learner and its parameters."""
    decision: DecisionRule | None = None
    """Decision rule that turns scores into label sets. Defaults to `auto`, or to the learner's
    own rule if its scores are not comparable between documents."""


class ConfigurationGrid(RequestModel):
    """Lists of features, learners and decision rules; every combination of them is a configuration."""

    features: list[FeaturesRequest] | None = Field(default=None, min_length=1)
    """Feature extractions. The default is that of a training with each learner."""
    learner: list[LearnerConfig] = Field(min_length=1)
    """Learners and their parameters."""
    decision: list[DecisionRule] | None = Field(default=None, min_length=1)
    """Decision rules that turn scores into label sets. Defaults to `auto`, or to the
    learner's own rule if its scores are not comparable between documents."""


class ExperimentCreate(RequestModel):
    """An experiment to run: several configurations on the same splits of a data set."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "three ways to sort mail",
                    "dataset_id": "ds_01k5a2b3c4d5e6f7g8h9jkmnpq",
                    "split": {"kind": "folds", "folds": 5},
                    "configurations": [
                        {"learner": {"algorithm": "mp_boost", "rounds": 200}},
                        {"learner": {"algorithm": "svm"}, "decision": {"kind": "tuned_threshold"}},
                        {"name": "Bayes", "learner": {"algorithm": "naive_bayes"}},
                    ],
                    "measures": ["f1_micro", "f1_macro", "hamming_loss"],
                }
            ]
        }
    )

    name: Title | None = None
    """Title of the experiment."""
    dataset_id: str
    """Id of a data set in the state `ready`."""
    split: ExperimentSplit | None = None
    """How examples are held out. Defaults to the data set's own split, else to its own folds, else to five
    folds."""
    configurations: list[ExperimentConfiguration] | None = Field(default=None, min_length=1)
    """The configurations. Set either `configurations` or `grid`."""
    grid: ConfigurationGrid | None = None
    """The configurations, as all combinations of the lists. Set either `configurations` or `grid`."""
    keep_labels: KeepLabels = "trained"
    """Labels that each cell learns and measures. With `all`, they are the same in every fold."""
    measures: list[str] = Field(default=list(DEFAULT_MEASURES), min_length=1)
    """Names of the measures in the report. `covering_error` and `covering_loss` stand for the measures of all
    `coverings`; `covering_loss.NAME` is the measure of one of them."""
    coverings: dict[str, Covering] = Field(default={})
    """Label coverings by name (letters, digits, `_` and `-`). Each adds the measure `covering_error.NAME`
    for every configuration."""
    steps: CurveSteps = "thinned"
    """Steps of the learning curves."""
    alternative: TestAlternative = "two_sided"
    """Alternative of the significance tests. The first configuration of a pair comes first in the request."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the folds and of all other random choices."""
    priority: JobPriority = 0
    """Priority of every cell among the cells that wait for a worker."""

    @field_validator("coverings")
    @classmethod
    def _covering_names(cls, coverings: dict[str, Covering]) -> dict[str, Covering]:
        for name in coverings:
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
                raise ValueError(
                    f"{name!r} is not a valid name of a covering; use 1 to 64 letters, digits, _ and -, "
                    "beginning with a letter or digit"
                )
        return coverings

    @model_validator(mode="after")
    def _list_or_grid(self) -> Self:
        if (self.configurations is None) == (self.grid is None):
            raise ValueError("set either configurations or grid")
        return self


class CellCounts(ResponseModel):
    """Number of cells in each state."""

    total: int
    """Number of configurations times number of folds."""
    queued: int
    """Cells that wait for a worker or are not created yet."""
    running: int
    """Cells that a worker is running."""
    succeeded: int
    """Cells with a result."""
    failed: int
    """Cells that ended with an error. Other cells continue."""
    cancelled: int
    """Cells that were cancelled."""


class ExperimentCell(ResponseModel):
    """A cell: one configuration on one fold."""

    configuration: int
    """Index of the configuration in the request, from 0."""
    fold: int
    """The held-out fold: from 0, or its number in the data set if the split is `assigned`."""
    state: JobState
    """State of the cell."""
    progress: Progress | None = None
    """Progress of the cell; only set while it is running."""
    attempt: int
    """Number of times the cell was started. More than 1 if a worker was lost or stopped."""
    metrics: PartMetrics | None = None
    """Measures; set once the cell has succeeded."""
    error: Problem | None = None
    """Why the cell failed."""


class ExperimentError(ResponseModel):
    """A held-out document for which a configuration predicted wrong labels."""

    id: str
    """Id of the document in the data set."""
    fold: int
    """The fold in which it was held out."""
    n_wrong: int
    """Number of missed and wrongly predicted labels."""
    labels: list[str]
    """Its true labels; at most 100."""
    predicted: list[str]
    """Its predicted labels; at most 100."""
    scores: list[LabelScore]
    """Scores of these labels, in label order. A label without a training example in the fold has no score."""


class ExperimentErrorPage(ResponseModel):
    """A page of held-out documents with wrong labels, worst first."""

    items: list[ExperimentError]
    """The documents."""
    next_cursor: NextCursor = None


class ExperimentConfusion(ResponseModel):
    """Which labels a configuration confuses, over the held-out documents of all folds."""

    configuration: int
    """Index of the configuration in the request, from 0."""
    name: str | None = None
    """Name of the configuration."""
    folds: list[int]
    """The folds that are included: those whose cells have succeeded."""
    confusion: list[LabelPair] | None = None
    """Confusion matrix: how often each label was ranked first for the documents of each label. Set if every
    document has exactly one label. Has only pairs that occur, most frequent first, at most 10,000."""
    co_errors: list[LabelPair] | None = None
    """Errors of the same document: how often `label` was missed and `predicted` was wrongly predicted. Set if
    `confusion` is not. Most frequent first, at most 10,000."""


class Experiment(ResponseModel):
    """An experiment."""

    id: str
    """Id of the experiment; begins with `exp_`."""
    name: str | None = None
    """Title of the experiment."""
    dataset_id: str
    """Id of the data set."""
    request: JsonObject
    """The request with every default filled in, and a grid expanded."""
    state: JobState
    """State of the experiment. It succeeds when every cell has ended and at least one has succeeded."""
    priority: JobPriority
    """Priority of every cell among the cells that wait for a worker."""
    counts: CellCounts
    """How many of its cells are in each state."""
    created_at: Timestamp
    """When the experiment was created."""
    finished_at: Timestamp | None = None
    """When the last cell ended."""
    cancel_requested_at: Timestamp | None = None
    """When cancellation was requested."""
    error: Problem | None = None
    """Why the experiment failed."""
    cells: list[ExperimentCell] | None = None
    """The cells, ordered by configuration and fold; omitted in lists."""


class ExperimentPage(ResponseModel):
    """A page of experiments, newest first."""

    items: list[Experiment]
    """The experiments, without their cells."""
    next_cursor: NextCursor = None
