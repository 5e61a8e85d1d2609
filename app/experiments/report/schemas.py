"""Response schemas of an experiment's report."""

from __future__ import annotations

from typing import Literal, TypeAlias

from app.api.schemas import JsonObject, ResponseModel, Timestamp
from app.experiments.schemas import TestAlternative
from app.jobs.schemas import JobState
from models.measures.directions import Direction

ReportFormat: TypeAlias = Literal["json", "markdown", "csv", "html"]


class ReportMeasure(ResponseModel):
    """A measure that the report has a column for."""

    name: str
    """The name of the measure."""
    better: Direction
    """Whether a higher or a lower value is better."""


class Summary(ResponseModel):
    """A value of a configuration, summarized over its folds."""

    mean: float
    """Mean of the folds' values."""
    deviation: float | None = None
    """Sample standard deviation of the folds' values; omitted if there is only one value."""
    values: list[float]
    """The value of each fold, in the order of `folds`."""
    best: bool
    """Whether no other complete configuration has a better mean; only set for measures in `test`."""


class FailedCell(ResponseModel):
    """A cell that ended without a result."""

    fold: int
    """The held-out fold, from 0."""
    state: JobState
    """`failed` or `cancelled`."""
    detail: str
    """Why the cell has no result."""


class ReportRow(ResponseModel):
    """The results of one configuration."""

    configuration: int
    """Index of the configuration in the request, from 0."""
    name: str
    """Name of the configuration."""
    features: JsonObject
    """Feature extraction and its parameters."""
    learner: JsonObject
    """Learner and its parameters."""
    decision: JsonObject
    """Decision rule and its parameters."""
    complete: bool
    """Whether all folds succeeded. Compare only the means of complete configurations."""
    folds: list[int]
    """The folds that succeeded."""
    failures: list[FailedCell]
    """The cells that failed or were cancelled."""
    test: dict[str, Summary]
    """Measures of held-out examples, by name."""
    train: dict[str, Summary]
    """Measures of training examples, by name."""
    fit_seconds: Summary | None = None
    """Training time in seconds, without feature extraction and evaluation."""
    score_seconds: Summary | None = None
    """Time in seconds to score the held-out examples."""


class ReportCurve(ResponseModel):
    """A measure by training step, averaged over the folds that have succeeded."""

    configuration: int
    """Index of the configuration in the request, from 0."""
    measure: str
    """The name of the measure."""
    unit: str
    """Unit of the steps: `rounds`, `examples`, …"""
    steps: list[int]
    """The steps, in ascending order."""
    within_folds: list[float]
    """Mean on training examples, for each step."""
    out_of_folds: list[float]
    """Mean on held-out examples, for each step."""


class ReportTest(ResponseModel):
    """A paired test of the hypothesis that two configurations do not differ."""

    test: Literal["wald", "wilcoxon"]
    """The paired Wald test or the Wilcoxon signed-rank test."""
    alternative: TestAlternative = "two_sided"
    """What a small p-value confirms about the values of the first configuration."""
    pairs: int
    """Number of pairs tested; the Wilcoxon test leaves out pairs without a difference."""
    statistic: float | None = None
    """The test statistic; omitted if it is infinite because all pairs differ by the same amount."""
    p_value: float
    """Probability of a difference at least this extreme if the configurations do not differ."""
    p_corrected: float
    """The p-value after Holm's correction for all comparisons by the same measure and test."""


class Comparison(ResponseModel):
    """A comparison of two configurations by one measure."""

    measure: str
    """The name of the measure."""
    first: int
    """Index of the first configuration."""
    second: int
    """Index of the second configuration."""
    over: Literal["examples", "folds"]
    """What is paired: held-out examples, or folds if the measure has no value for a single example."""
    difference: float
    """Mean of the first configuration minus mean of the second."""
    tests: list[ReportTest]
    """The tests. Pairs of folds are too few for the Wald test; fewer than three folds have no test."""


class ExperimentReport(ResponseModel):
    """The results of an experiment so far."""

    id: str
    """Id of the experiment."""
    name: str | None = None
    """Title of the experiment."""
    state: JobState
    """State of the experiment. The report is final once the experiment has ended."""
    dataset_id: str
    """Id of the data set."""
    dataset_name: str | None = None
    """Name of the data set; omitted if the data set was deleted."""
    dataset_sha256: str | None = None
    """SHA-256 digest of the data set's content, hexadecimal."""
    split: JsonObject
    """How examples are held out."""
    folds: int
    """Number of folds."""
    seed: int
    """Seed of the folds and of all other random choices."""
    created_at: Timestamp
    """When the experiment was created."""
    finished_at: Timestamp | None = None
    """When the experiment ended."""
    measures: list[ReportMeasure]
    """The measures, in the order of the columns."""
    rows: list[ReportRow]
    """The configurations, in the order of the request."""
    curves: list[ReportCurve]
    """Measures by training step, for learners that are measured at every step."""
    comparisons: list[Comparison]
    """Every pair of configurations by every measure, over the folds that both completed. Empty for more than
    20 configurations."""
