"""What a client may say and will hear about evaluations."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from fastapi import Path
from pydantic import ConfigDict, Field

from app.http.errors import Problem
from app.http.schemas import NextCursor, RequestModel, ResponseModel, Timestamp
from app.jobs.schemas import JobState
from app.serving.schemas import LabelExplanation

EvaluationId: TypeAlias = Annotated[str, Path(description="The evaluation's id.")]
EvaluatedPart: TypeAlias = Literal["all", "train", "test"]


class EvaluationCreate(RequestModel):
    """Examples to measure a version on."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"dataset_id": "ds_01k5a2b3c4d5e6f7g8h9jkmnpq"},
                {"dataset_id": "ds_01k5a2b3c4d5e6f7g8h9jkmnpq", "part": "test"},
            ]
        }
    )

    dataset_id: str
    """A data set that is ready, of the kind that the version was trained on."""
    part: EvaluatedPart = "all"
    """Which of its examples: all, or those of one part of its own split."""


class LabelMeasures(ResponseModel):
    """How one label fared."""

    label: str
    """Its name."""
    tp: int
    """Examples that have it and got it."""
    fp: int
    """Examples that got it without having it."""
    fn: int
    """Examples that have it and did not get it."""
    tn: int
    """The others."""
    precision: float
    """tp / (tp + fp), 0 where it was never given."""
    recall: float
    """tp / (tp + fn), 0 where no example has it."""
    f1: float
    """2 tp / (2 tp + fp + fn), 1 where tp = fp = fn = 0."""


class LabelPair(ResponseModel):
    """How often one label was taken for another."""

    label: str
    """The label that examples have."""
    predicted: str
    """The label that they got."""
    count: int = Field(ge=0)
    """How many examples."""


class ScoreHistogram(ResponseModel):
    """How a label's scores are spread, in bins of equal width from `low` to `high`."""

    label: str
    """Its name."""
    low: float
    """The smallest score."""
    high: float
    """The largest score."""
    with_label: list[int]
    """For each bin the examples that have the label."""
    without_label: list[int]
    """For each bin the examples that do not."""


class LabelScore(ResponseModel):
    """The score of a label for one document."""

    label: str
    """Its name."""
    score: float
    """Its score, not rounded."""


class WorstDocument(ResponseModel):
    """A document that the version got wrong."""

    id: str
    """Its id in the data set."""
    labels: list[str]
    """The labels that it has."""
    predicted: list[str]
    """The labels that it got."""
    scores: list[LabelScore]
    """The scores of both."""
    explanation: list[LabelExplanation]
    """What spoke for and against labels that it missed, then those that it wrongly got; five at most."""
    text: str | None = None
    """The beginning of its text, where it was asked for and the data set is still there."""


class PartEvaluation(ResponseModel):
    """Everything measured on one part."""

    measures: dict[str, float]
    """Measure to value, as in a version's `metrics`."""
    labels: list[LabelMeasures]
    """One row a label, in label order."""
    confusion: list[LabelPair] | None = None
    """For examples of exactly one label each: how often each label was ranked first for each; the pairs that
    occur, in label order."""
    co_errors: list[LabelPair] | None = None
    """For other examples: how often `label` was missed and `predicted` wrongly given; the 200 most frequent
    pairs, the most frequent first."""
    histograms: list[ScoreHistogram]
    """One a label, in label order."""
    worst: list[WorstDocument]
    """The ten documents with the most wrong labels, the worst first."""
    warnings: list[str]
    """What a person should know before trusting the numbers."""


class TrainingEvaluation(ResponseModel):
    """What a version is worth on the parts of its own training."""

    model: str
    """The model's name."""
    version: int
    """The version's number."""
    dataset_id: str
    """What it was trained on, whether it is still there or not."""
    training_job_id: str
    """The job that trained and measured it; its `/curve` has the measures by round, epoch or pass."""
    created_at: Timestamp
    """When it was measured."""
    train: PartEvaluation
    """On the examples learned from."""
    test: PartEvaluation | None = None
    """On the examples held out."""


class Evaluation(ResponseModel):
    """A version measured on a data set."""

    id: str
    """Opaque, `evl_…`."""
    model: str
    """The model's name."""
    version: int
    """The version's number."""
    dataset_id: str
    """What it is measured on."""
    part: EvaluatedPart
    """Which of its examples."""
    state: JobState
    """How far it is."""
    created_at: Timestamp
    """When it was asked for."""
    finished_at: Timestamp | None = None
    """When it ended."""
    error: Problem | None = None
    """Why it failed."""
    result: PartEvaluation | None = None
    """What was measured; left out of lists."""


class EvaluationPage(ResponseModel):
    """A page of evaluations, the newest first."""

    items: list[Evaluation]
    """The evaluations, without their results."""
    next_cursor: NextCursor = None
