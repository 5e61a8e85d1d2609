"""What a client may say and will hear about experiments."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self, TypeAlias

from fastapi import Path
from pydantic import ConfigDict, Field, field_validator, model_validator

from app.errors import Problem
from app.schemas import Answer, JsonObject, NextCursor, Request, Timestamp, Title
from app.training.schemas import GivenSplit, JobState, PartMetrics, Progress, RandomSplit
from models.boosting.covering import Covering
from models.catalog import FeaturesUnion, LearnerUnion
from models.decisions import DecisionUnion
from models.measures.directions import Direction

ExperimentId: TypeAlias = Annotated[str, Path(description="The experiment's id.")]

DEFAULT_MEASURES = (
    "f1_micro",
    "f1_macro",
    "hamming_loss",
    "subset_zero_one",
    "one_error",
    "coverage",
    "average_precision",
)


class FoldsSplit(Request):
    """Every example is held out once: cross-validation, each label shared out evenly over the folds."""

    kind: Literal["folds"]
    folds: int = Field(default=5, ge=2, le=50)
    """How many folds."""


ExperimentSplit: TypeAlias = Annotated[GivenSplit | RandomSplit | FoldsSplit, Field(discriminator="kind")]


class Configuration(Request):
    """What is tried: features, a learner, and a decision."""

    name: Title | None = None
    """What reports call it; by default its algorithm, and what sets it apart from the others."""
    features: FeaturesUnion | None = None
    """By default text features for text and e-mail, numeric ones for features."""
    learner: LearnerUnion
    """What learns, and its parameters."""
    decision: DecisionUnion | None = None
    """How scores become label sets; by default the learner's own way."""


class ConfigurationGrid(Request):
    """Every combination of these."""

    features: list[FeaturesUnion] | None = Field(default=None, min_length=1)
    """By default text features for text and e-mail, numeric ones for features."""
    learner: list[LearnerUnion] = Field(min_length=1)
    """What learns, and its parameters."""
    decision: list[DecisionUnion] | None = Field(default=None, min_length=1)
    """How scores become label sets; by default each learner's own way."""


class ExperimentCreate(Request):
    """An experiment to do: configurations tried on the same splits, and measured alike."""

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
    """What it is about."""
    dataset_id: str
    """A data set that is ready."""
    split: ExperimentSplit | None = None
    """By default the examples' own split where they have one, else five folds."""
    configurations: list[Configuration] | None = Field(default=None, min_length=1)
    """What is tried; this or `grid`."""
    grid: ConfigurationGrid | None = None
    """What is tried, as all combinations; this or `configurations`."""
    measures: list[str] = Field(default=list(DEFAULT_MEASURES), min_length=1)
    """The columns of the report; the first one is also drawn by round."""
    coverings: dict[str, Covering] = Field(default={})
    """Label coverings by name (letters, digits, `_` and `-`); each adds the measure `covering_error.NAME` for
    every configuration."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Of the folds and of everything else that is left to chance."""

    @field_validator("coverings")
    @classmethod
    def _names(cls, coverings: dict[str, Covering]) -> dict[str, Covering]:
        for name in coverings:
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
                raise ValueError(f"a covering cannot be called {name!r}; use letters, digits, _ and -")
        return coverings

    @model_validator(mode="after")
    def _list_or_grid(self) -> Self:
        if (self.configurations is None) == (self.grid is None):
            raise ValueError("give either configurations or grid")
        return self


class CellCounts(Answer):
    """How many cells are in which state."""

    total: int
    """Configurations times folds."""
    queued: int
    """Waiting for a worker, or not made yet."""
    running: int
    """Being worked on."""
    succeeded: int
    """Done and measured."""
    failed: int
    """Ended with an error; the others go on."""
    cancelled: int
    """Stopped."""


class ExperimentCell(Answer):
    """One configuration on one fold."""

    configuration: int
    """Its place in the request's configurations, from 0."""
    fold: int
    """The fold that is held out, from 0."""
    state: JobState
    """How far it is."""
    progress: Progress | None = None
    """What it is doing."""
    attempt: int
    """How often it was started; more than once where a worker died."""
    metrics: PartMetrics | None = None
    """What was measured."""
    error: Problem | None = None
    """Why it failed."""


class Experiment(Answer):
    """An experiment."""

    id: str
    """Opaque, `exp_…`."""
    name: str | None = None
    """What it is about."""
    dataset_id: str
    """What everything is tried on."""
    request: JsonObject
    """The request with every default filled in, and a grid written out."""
    state: JobState
    """How far it is; it has succeeded when every cell has ended and one at least has succeeded."""
    counts: CellCounts
    """How far its cells are."""
    created_at: Timestamp
    """When it was asked for."""
    finished_at: Timestamp | None = None
    """When its last cell ended."""
    cancel_requested_at: Timestamp | None = None
    """When it was asked to stop."""
    error: Problem | None = None
    """Why nothing came of it."""
    cells: list[ExperimentCell] | None = None
    """Every cell, by configuration and fold; left out of lists."""


class ExperimentPage(Answer):
    """A page of experiments, the newest first."""

    items: list[Experiment]
    """The experiments, without their cells."""
    next_cursor: NextCursor = None


class ReportMeasure(Answer):
    """A column of the report."""

    name: str
    """The measure."""
    better: Direction
    """Which way is better."""


class Summary(Answer):
    """A measure of a configuration over its folds."""

    mean: float
    """Mean of the folds' values."""
    deviation: float | None = None
    """Their sample standard deviation; left out for a single one."""
    values: list[float]
    """The values, by fold."""
    best: bool
    """Whether no other complete configuration has a better mean."""


class FailedCell(Answer):
    """A cell that came to nothing."""

    fold: int
    """The fold that was held out."""
    state: JobState
    """`failed` or `cancelled`."""
    detail: str
    """Why."""


class ReportRow(Answer):
    """A configuration in the report."""

    configuration: int
    """Its place in the request's configurations, from 0."""
    name: str
    """What it is called."""
    features: JsonObject
    """Its features."""
    learner: JsonObject
    """Its learner."""
    decision: JsonObject
    """Its decision."""
    complete: bool
    """Whether all its folds succeeded; only then its means can be compared with others."""
    folds: list[int]
    """The folds that succeeded."""
    failures: list[FailedCell]
    """The cells that came to nothing."""
    test: dict[str, Summary]
    """Measure to summary, on held-out examples."""
    train: dict[str, Summary]
    """Measure to summary, on the examples learned from."""
    fit_seconds: Summary | None = None
    """What training took, features and measuring apart."""
    score_seconds: Summary | None = None
    """What scoring the held-out part took."""


class ReportCurve(Answer):
    """A measure by step, as the mean over the folds that came so far."""

    configuration: int
    """The configuration."""
    measure: str
    """The measure."""
    unit: str
    """What a step is: `rounds`, `examples`, …"""
    steps: list[int]
    """The steps."""
    within_folds: list[float]
    """On the examples learned from."""
    out_of_folds: list[float]
    """On the examples held out."""


class ReportTest(Answer):
    """A two-sided paired test of no difference."""

    test: Literal["wald", "wilcoxon"]
    """The paired Wald test, or the Wilcoxon signed-rank test."""
    pairs: int
    """Pairs looked at; for Wilcoxon those that differ."""
    statistic: float | None = None
    """Its statistic; left out where it is infinite, all pairs differing by the same."""
    p_value: float
    """How probable such a difference is by chance alone."""
    p_corrected: float
    """The same, corrected by Holm for all comparisons by this measure and test."""


class Comparison(Answer):
    """Two configurations compared by a measure."""

    measure: str
    """The measure."""
    first: int
    """A configuration."""
    second: int
    """Another configuration."""
    over: Literal["examples", "folds"]
    """What is paired: held-out examples, or folds for measures that no single example has."""
    difference: float
    """Mean of the first less mean of the second."""
    tests: list[ReportTest]
    """The tests; only Wilcoxon over folds, of which there are too few for the other."""


class ExperimentReport(Answer):
    """What an experiment has found so far."""

    id: str
    """The experiment."""
    name: str | None = None
    """What it is about."""
    state: JobState
    """How far it is; the report is final once it has ended."""
    dataset_id: str
    """What everything was tried on."""
    dataset_name: str | None = None
    """Its name, while it is there."""
    dataset_sha256: str | None = None
    """Digest of its content."""
    split: JsonObject
    """How examples were held out."""
    folds: int
    """How often."""
    seed: int
    """Of the folds and of everything else that is left to chance."""
    created_at: Timestamp
    """When it was asked for."""
    finished_at: Timestamp | None = None
    """When it ended."""
    measures: list[ReportMeasure]
    """The columns."""
    rows: list[ReportRow]
    """The configurations, in their order."""
    curves: list[ReportCurve]
    """Measures by step, of learners that have scores at every step."""
    comparisons: list[Comparison]
    """Every pair of configurations by every measure, over the folds that both have."""
