"""Request and response schemas of evaluations."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from fastapi import Path
from pydantic import AliasChoices, ConfigDict, Field
from typing_extensions import TypeAliasType

from app.api.errors import Problem
from app.api.schemas import JsonObject, NextCursor, RequestModel, ResponseModel, Timestamp
from app.jobs.schemas import JobPriority, JobState
from app.serving.schemas import LabelExplanation
from models.covering import Covering

EvaluationId: TypeAlias = Annotated[str, Path(description="Id of the evaluation.")]
EvaluatedPart = TypeAliasType(
    "EvaluatedPart",
    Annotated[
        Literal["all", "train", "validation", "test"],
        Field(description="Which examples of a data set are evaluated."),
    ],
)


class EvaluationCreate(RequestModel):
    """An evaluation to run: the examples to evaluate a version on."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"dataset_id": "ds_01k5a2b3c4d5e6f7g8h9jkmnpq"},
                {"dataset_id": "ds_01k5a2b3c4d5e6f7g8h9jkmnpq", "part": "test"},
            ]
        }
    )

    dataset_id: str
    """Id of a data set in the state `ready`, with the kind of examples that the version was trained on."""
    part: EvaluatedPart = "all"
    """Which examples to use: all, or one part of the data set's own split."""
    covering: Covering | None = None
    """A label covering to measure by: the measures then have `covering_error` and `covering_loss`. Defaults
    to the covering of the learner `adaboost_lc`; other learners have none."""
    priority: JobPriority = 0
    """Priority among the evaluations that wait for a worker."""


class LabelMeasures(ResponseModel):
    """Measures of one label."""

    label: str
    """Name of the label."""
    tp: int
    """True positives: examples that have the label and for which it is predicted."""
    fp: int
    """False positives: examples that do not have the label and for which it is predicted."""
    fn: int
    """False negatives: examples that have the label and for which it is not predicted."""
    tn: int
    """True negatives: all other examples."""
    precision: float
    """tp / (tp + fp), or 0 if the label is never predicted."""
    recall: float
    """tp / (tp + fn), or 0 if no example has the label."""
    f1: float
    """2 tp / (2 tp + fp + fn), or 0 if tp = fp = fn = 0. Macro averages leave out such a label."""


class LabelPair(ResponseModel):
    """How often a label was predicted in place of another."""

    label: str
    """Name of the true label."""
    predicted: str
    """Name of the predicted label."""
    count: int = Field(ge=0)
    """Number of examples."""


class ScoreHistogram(ResponseModel):
    """Histogram of a label's scores, in bins of equal width from `low` to `high`."""

    label: str
    """Name of the label."""
    low: float
    """The smallest score."""
    high: float
    """The largest score."""
    with_label: list[int]
    """For each bin, the number of examples that have the label."""
    without_label: list[int]
    """For each bin, the number of examples that do not have the label."""


class ReliabilityBin(ResponseModel):
    """Predictions of about the same probability: how probable they were, and how often they came true."""

    low: float
    """Lower bound of the probabilities."""
    high: float
    """Upper bound of the probabilities, which belongs to the bin."""
    count: int = Field(ge=0)
    """Number of predictions in the bin."""
    mean_probability: float | None = None
    """Mean of their probabilities; omitted if there are none."""
    observed_share: float | None = None
    """Share of them that came true; omitted if there are none. Close to `mean_probability` if the
    probabilities are true."""


class CoveragePoint(ResponseModel):
    """What happens if label sets are accepted without review from a certain probability on."""

    set_probability: float
    """Label sets with at least this probability are accepted. Use it as `review_below` of a router."""
    coverage: float
    """Share of the examples whose label set is accepted, so that they need no person."""
    precision: float
    """Share of the accepted label sets that are exactly right."""


class LabelScore(ResponseModel):
    """The score of a label for one document."""

    label: str
    """Name of the label."""
    score: float
    """The score, not rounded."""


class WorstDocument(ResponseModel):
    """A document for which the version predicted wrong labels."""

    id: str
    """Id of the document in the data set."""
    labels: list[str]
    """Its true labels."""
    predicted: list[str]
    """Its predicted labels."""
    scores: list[LabelScore]
    """Scores of the true and the predicted labels."""
    explanation: list[LabelExplanation]
    """Terms that decided for and against the missed labels, then the wrongly predicted labels; at most five
    labels."""
    text: str | None = None
    """The beginning of the text; set if `texts` was requested and the data set still exists."""


class PartEvaluation(ResponseModel):
    """Evaluation of a version on one part of a data set."""

    measures: dict[str, float]
    """Measures by name, as in the `metrics` of a version."""
    labels: list[LabelMeasures]
    """Measures of each label, in label order."""
    confusion: list[LabelPair] | None = None
    """Confusion matrix: how often each label was ranked first for the examples of each label. Set if every
    example has exactly one label. Has only pairs that occur, in label order."""
    co_errors: list[LabelPair] | None = None
    """Errors of the same example: how often `label` was missed and `predicted` was wrongly predicted. Set if
    `confusion` is not. Has the 200 most frequent pairs, most frequent first."""
    histograms: list[ScoreHistogram]
    """Histogram of scores of each label, in label order."""
    reliability: list[ReliabilityBin] | None = None
    """Reliability diagram of the probabilities of labels, over all pairs of an example and a label. Set if
    the version is calibrated."""
    label_set_reliability: Annotated[
        list[ReliabilityBin] | None,
        Field(validation_alias=AliasChoices("label_set_reliability", "set_reliability")),
    ] = None
    """Reliability diagram of the probabilities that a label set is right. Set if the version is
    calibrated."""
    coverage_curve: list[CoveragePoint] | None = None
    """Precision of the most probable label sets by their share, at most 100 points, the smallest share first.
    Set if the version is calibrated."""
    worst: list[WorstDocument]
    """The ten documents with the most wrong labels, worst first."""
    warnings: list[str]
    """Warnings about the reliability of the measures."""


class TrainingEvaluation(ResponseModel):
    """Evaluation of a version on its own training and test part."""

    model: str
    """Name of the model."""
    version: int
    """Number of the version."""
    dataset_id: str
    """Id of the data set that the version was trained on, even if it was deleted."""
    training_job_id: str
    """Id of the job that trained and evaluated the version. Its `/curve` has the measures by step."""
    created_at: Timestamp
    """When the version was evaluated."""
    train: PartEvaluation
    """Evaluation on the training examples."""
    test: PartEvaluation | None = None
    """Evaluation on the held-out examples."""


class Evaluation(ResponseModel):
    """An evaluation of a version on a data set."""

    id: str
    """Id of the evaluation; begins with `evl_`."""
    model: str
    """Name of the model."""
    version: int
    """Number of the version."""
    dataset_id: str
    """Id of the data set."""
    part: EvaluatedPart
    """Which examples of the data set are used."""
    covering: JsonObject | None = None
    """The label covering of the request. Absent if it has none."""
    state: JobState
    """State of the evaluation."""
    priority: JobPriority
    """Priority among the evaluations that wait for a worker."""
    created_at: Timestamp
    """When the evaluation was created."""
    finished_at: Timestamp | None = None
    """When the evaluation ended."""
    error: Problem | None = None
    """Why the evaluation failed."""
    result: PartEvaluation | None = None
    """Result of the evaluation; set once it has succeeded, omitted in lists."""


class EvaluationPage(ResponseModel):
    """A page of evaluations, newest first."""

    items: list[Evaluation]
    """The evaluations, without their results."""
    next_cursor: NextCursor = None
