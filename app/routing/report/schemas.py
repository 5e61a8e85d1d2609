"""The report of a router, as the API returns it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from app.api.schemas import ResponseModel, Timestamp
from app.routing.schemas import Disposition

ReportBy = TypeAliasType(
    "ReportBy",
    Annotated[
        Literal["department", "week", "version"],
        Field(description="What the groups of a report are: departments, ISO weeks in UTC, or versions."),
    ],
)


class Share(ResponseModel):
    """A share with its 95% confidence interval."""

    count: int
    """Number of successes."""
    of: int
    """Number of trials."""
    share: float
    """`count` divided by `of`."""
    low: float
    """Lower bound of the confidence interval."""
    high: float
    """Upper bound of the confidence interval."""


class Estimate(ResponseModel):
    """An estimate with its 95% confidence interval."""

    value: float
    """The estimate."""
    low: float
    """Lower bound of the confidence interval."""
    high: float
    """Upper bound of the confidence interval."""


class DispositionShare(Share):
    """The messages with a disposition."""

    disposition: Disposition
    """The disposition."""


class Quality(ResponseModel):
    """The quality of the decisions with feedback.

    For a department, precision, recall and F1 are those of its label. For other groups, they are
    micro-averaged over all labels.
    """

    disposition: Disposition | None = None
    """The messages that are measured. Absent for all messages with feedback."""
    messages: int
    """Number of messages with this disposition."""
    with_feedback: int
    """Number of those with feedback. All values below are measured on these only."""
    set_accuracy: Share | None = None
    """Share of the messages whose label set is exactly right. Absent without feedback."""
    precision: Share | None = None
    """Share of the predicted labels that are right. Absent if no label is predicted."""
    recall: Share | None = None
    """Share of the correct labels that are predicted. Absent if no label is correct."""
    f1: Estimate | None = None
    """Harmonic mean of precision and recall. Absent if no label is predicted or correct."""


class CalibrationBin(ResponseModel):
    """Messages with feedback and about the same probability."""

    low: float
    """Lower bound of the probabilities."""
    high: float
    """Upper bound of the probabilities."""
    mean_probability: float
    """Mean of the predicted probabilities."""
    observed: Share
    """Share that was right. It is near `mean_probability` if the probabilities are true."""


class Calibration(ResponseModel):
    """Whether probabilities are true: predicted probabilities and how often they came true."""

    messages: int
    """Number of messages with a probability and feedback; for a department, of predictions of its label."""
    expected_calibration_error: float
    """Mean difference of predicted and observed probability, over the messages."""
    expected_by_chance: float
    """Expected error of true probabilities, which is above 0 because the observed shares vary by chance."""
    bins: list[CalibrationBin]
    """Bins of equal width that have messages."""


class DriftBin(ResponseModel):
    """A category of the values that are compared."""

    name: str
    """The label, or the range of the values."""
    count: int
    """Number of recent values."""
    share: float
    """Share of the recent values."""
    expected_share: float
    """Share of the reference."""


class DriftValue(ResponseModel):
    """How much recent values differ from the reference of the versions that decided."""

    population_stability_index: float
    """Population stability index: 0 for equal distributions. Below 0.1 is usually called stable, above 0.25 a
    large change."""
    chance: float
    """The index that 5% of samples of this size exceed although nothing has changed."""
    total_variation: float
    """Share of the values that would have to change to make both distributions equal, from 0 to 1."""
    values: int
    """Number of recent values."""
    bins: list[DriftBin] | None = None
    """The compared shares. Only in `total`."""


class UnknownWordsDrift(DriftValue):
    """Drift of the share of unknown words."""

    mean: float
    """Mean share of unknown words of a recent message."""
    expected_mean: float | None = None
    """Mean share of unknown words of a held-out training document."""


class Drift(ResponseModel):
    """Drift of predicted labels, probabilities and words against the training."""

    labels: DriftValue | None = None
    """Drift of the shares of the predicted labels. Labels of which fewer than 5 are expected count together.
    Absent without a reference."""
    set_probability: DriftValue | None = None
    """Drift of `set_probability`. Absent without a reference with probabilities."""
    unknown_words: UnknownWordsDrift | None = None
    """Drift of the share of unknown words. Absent without a reference."""


class ShadowAgreement(ResponseModel):
    """How often a shadow version predicts the departments of a version."""

    model: str | None = None
    """The model. Absent if no version decided."""
    version: int | None = None
    """The version that decided. Absent if none did."""
    shadow: int
    """The shadow version."""
    agreement: Share
    """Share of the messages for which both have the same label set."""


class ReportGroup(ResponseModel):
    """The decisions of a router in one group."""

    name: str
    """The department, the ISO week such as `2026-W48`, the model and version such as `helpdesk 3`, or
    `all`."""
    messages: int
    """Number of messages; for a department, of those for which it is predicted."""
    share: Share | None = None
    """Share of all messages. Only for departments."""
    expected_share: float | None = None
    """Share of the messages for which the versions would predict this department if they were like the
    documents of their training. Only for departments. Absent without a reference."""
    dispositions: list[DispositionShare]
    """The messages by disposition."""
    quality: list[Quality]
    """Quality on messages with feedback: all of them, then by disposition."""
    estimated_set_accuracy: Estimate | None = None
    """Estimated share of exactly right label sets among all messages, with and without feedback: the set
    accuracy of each disposition, weighted by its number of messages. Assumes that the messages with feedback
    were chosen at random within each disposition. Absent if a disposition has no feedback."""
    calibration: Calibration | None = None
    """For departments, of the probability of the label if it is predicted; for other groups, of
    `set_probability`. Absent without probabilities or feedback."""
    drift: Drift | None = None
    """Drift against the training. Absent for departments, which have `expected_share`."""
    shadows: list[ShadowAgreement]
    """Agreement with each shadow version."""


class RouterReport(ResponseModel):
    """The report of a router."""

    router: str
    """Name of the router."""
    by: ReportBy
    """What the groups are."""
    from_: Timestamp = Field(alias="from", description="Begin of the window.")
    to: Timestamp
    """End of the window, which does not belong to it."""
    created_at: Timestamp
    """Time of the report."""
    summary: str
    """How many of the messages with feedback were wrong, as a sentence."""
    total: ReportGroup
    """All messages of the window."""
    groups: list[ReportGroup]
    """The groups: departments by descending number of messages, weeks by time, versions by model and
    number."""
    omitted_groups: int
    """Number of departments with fewer messages that are left out."""
    feedback_limit: int | None = None
    """If precision, recall, F1 and the calibration of departments are measured on a part of the messages with
    feedback only: their number. These are the most recent ones. Absent if all are measured."""
    notes: list[str]
    """What to keep in mind when reading the numbers, in full sentences."""
