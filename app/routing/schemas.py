"""Request and response schemas of routers, messages and decisions.

``Decision`` is the one definition of a decision: its fields, their order in the JSON, and the OpenAPI schema.
To add a field, add it here, and pass its value in ``app/routing/decision_content.py``. To find decisions by a
field, add a column to ``app.db.tables.Decision``.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator
from typing_extensions import TypeAliasType

from app.api.schemas import (
    Count,
    MaxItems,
    Name,
    NextCursor,
    OneLine,
    RequestModel,
    ResponseModel,
    Timestamp,
    Title,
    VersionRef,
)
from app.datasets.schemas import EmailParts, Label
from app.serving.schemas import LabelExplanation, RankedLabel
from models.data.limits import IngestLimits
from models.data.record import RecordError, check_name

Destination: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1000), OneLine]
"""Destination of messages, such as an address or the name of a queue; Covey does not interpret it."""

Disposition = TypeAliasType(
    "Disposition",
    Annotated[
        Literal["routed", "review", "fallback"],
        Field(description="Whether a message was routed, needs a review, or went to the fallback."),
    ],
)

FeedbackState = TypeAliasType(
    "FeedbackState",
    Annotated[
        Literal["none", "agreed", "corrected"],
        Field(description="Whether a decision has feedback, and whether that has the predicted labels."),
    ],
)

KeepMessages = TypeAliasType(
    "KeepMessages",
    Annotated[
        Literal["none", "review", "all"],
        Field(
            description="Which messages a router keeps: none; those that people have to look at, which have "
            "the disposition `review` or `fallback` or belong to the random sample; or all."
        ),
    ],
)

DEFAULT_REVIEW_SAMPLE = 0.02
DEFAULT_KEEP_DAYS = 30.0
KeepDays: TypeAlias = Annotated[float, Field(gt=0, le=36_500)]


ThresholdSource = TypeAliasType(
    "ThresholdSource",
    Annotated[
        Literal["version", "fixed", "target_precision", "target_recall", "costs"],
        Field(description="What the threshold of a label follows from."),
    ],
)

TargetValue: TypeAlias = Annotated[float, Field(gt=0, le=1)]
Cost: TypeAlias = Annotated[float, Field(gt=0, le=1e9)]


class MistakeCosts(RequestModel):
    """The costs of mistakes. Only their ratio counts."""

    false_label: Cost = 1.0
    """Cost of a department that is selected for a message and is wrong."""
    missed_label: Cost = 1.0
    """Cost of a department of a message that is not selected."""


class LabelPolicy(RequestModel):
    """How the threshold of a label follows from held-out predictions. Set exactly one field."""

    target_precision: TargetValue | None = None
    """The label is predicted as often as possible, if its precision is surely at least this value, from 0 to
    1."""
    target_recall: TargetValue | None = None
    """The label is predicted as rarely as possible, with at least this recall, from 0 to 1."""
    costs: MistakeCosts | None = None
    """The label is predicted with the least total cost of mistakes."""

    @model_validator(mode="after")
    def _one_policy(self) -> Self:
        if sum(value is not None for value in (self.target_precision, self.target_recall, self.costs)) != 1:
            raise ValueError("set exactly one of target_precision, target_recall and costs")
        return self


StickyBy = TypeAliasType(
    "StickyBy",
    Annotated[
        Literal["message", "sender"],
        Field(description="What always gets the same version: a message, or all messages of a sender."),
    ],
)

MAX_VERSIONS: Final = 10
"""Maximum number of versions that decide for a router."""


class WeightedVersion(RequestModel):
    """A version that decides on a part of the messages."""

    version: VersionRef
    """The number or an alias of the version that decides."""
    weight: int = Field(ge=0, le=1_000_000)
    """The version decides on this part of the sum of all weights. With 0, it only replaces versions that
    cannot decide."""


class RouterPut(RequestModel):
    """The configuration of a router."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "helpdesk",
                    "version": "live",
                    "destinations": {"billing": "billing@example.org"},
                    "fallback": "frontdesk@example.org",
                    "review_below": 0.8,
                    "at_most": 3,
                },
            ]
        }
    )
    large_fields: ClassVar[tuple[str, ...]] = ("destinations", "thresholds", "label_policies")
    max_items: ClassVar[MaxItems] = {
        "destinations": lambda settings: settings.max_labels,
        "thresholds": lambda settings: settings.max_labels,
        "label_policies": lambda settings: settings.max_labels,
    }

    model: Name
    """Name of an existing model."""
    version: VersionRef | None = None
    """The number of a version, or an alias. A router with an alias uses the version that the alias currently
    names. `live` by default, if `versions` is empty."""
    versions: list[WeightedVersion] = Field(default_factory=list, max_length=MAX_VERSIONS)
    """Several versions instead of `version`, each for a part of the messages, for example 90 for `live` and
    10 for `candidate`. If a version cannot decide on its message, the others replace it."""
    sticky_by: StickyBy | None = None
    """What always gets the same version while `versions` does not change: by default a message (its
    Message-ID and body), or all messages of a sender."""
    destinations: dict[Label, Destination] = Field(default_factory=dict)
    """Destination of each label. Messages of a label without a destination go to the fallback."""
    fallback: Destination
    """Destination of messages without a predicted department, such as those without a word that the version
    knows."""
    review_below: float | None = Field(default=None, ge=0, le=1)
    """Minimum `set_probability` of a routed message, from 0 to 1. A message with a smaller probability that
    its departments are exactly the right ones gets the disposition `review`. Needs a calibrated version. By
    default no message is held back for its probability."""
    review_sample: float = Field(default=DEFAULT_REVIEW_SAMPLE, ge=0, le=1)
    """Share of all messages, from 0 to 1, that is drawn at random for a review (`sampled`), whatever the
    version predicts. Such messages are routed like all others, and wait in the review queue for their right
    labels. Only their feedback is a fair test of later versions."""
    at_most: Count | None = None
    """Maximum number of departments; the ones with the highest scores are selected. No limit by default."""
    thresholds: dict[Label, float] = Field(default_factory=dict)
    """Thresholds of labels that replace those of the version: a department is selected if the score of its
    label is above the threshold. Labels that are not listed keep their thresholds, which the version lists.
    Scores have another scale in each version, so prefer policies, or the number of a version to an alias."""
    target_precision: TargetValue | None = None
    """Policy for all labels: each is predicted as often as possible if its precision is surely at least this
    value, from 0 to 1, by the calibrated probabilities of held-out predictions. A label that does not reach
    it, or has too few examples, is never predicted; a warning names it. Set at most one of
    `target_precision`, `target_recall` and `costs`. Policies need a version that was trained with held-out
    folds (the decisions `auto`, `target` and `tuned_threshold`). With a policy, no label is predicted only
    because it is the best one."""
    target_recall: TargetValue | None = None
    """Policy for all labels: each is predicted as rarely as possible with at least this recall on held-out
    predictions, from 0 to 1. A label with too few examples keeps the threshold of the version."""
    costs: MistakeCosts | None = None
    """Policy for all labels: each is predicted with the least total cost of mistakes on held-out predictions.
    A label with too few examples keeps the threshold of the version."""
    label_policies: dict[Label, LabelPolicy] = Field(default_factory=dict)
    """Policies of single labels, which replace the policy for all labels."""
    shadow: VersionRef | None = None
    """The number or an alias of a second version of the model. Its decisions are recorded for comparison and
    do not affect the routing."""
    explain: bool = False
    """Whether every decision includes the terms that contribute most to the predicted labels."""
    keep_messages: KeepMessages = "none"
    """Messages that are kept, so that people can read them and corrections become training data: `none`;
    `review`, those with the disposition `review` or `fallback` and those of the random sample; or `all`."""
    keep_days: KeepDays = DEFAULT_KEEP_DAYS
    """Time in days after which a kept message is deleted."""

    @property
    def references(self) -> list[int | str]:
        """The numbers and aliases of the versions that decide."""
        if self.versions:
            return [item.version for item in self.versions]
        return [] if self.version is None else [self.version]

    @model_validator(mode="after")
    def _check_versions(self) -> Self:
        if not self.versions:
            if self.sticky_by is not None:
                raise ValueError("sticky_by needs versions; set versions, or omit it")
            self.version = "live" if self.version is None else self.version
        elif self.version is not None:
            raise ValueError("set version or versions, but not both")
        elif not any(item.weight for item in self.versions):
            raise ValueError("no version has a weight above 0")
        elif len({item.version for item in self.versions}) < len(self.versions):
            raise ValueError("versions contains the same version or alias twice")
        return self

    @model_validator(mode="after")
    def _one_policy(self) -> Self:
        if sum(value is not None for value in (self.target_precision, self.target_recall, self.costs)) > 1:
            raise ValueError("set at most one of target_precision, target_recall and costs")
        both = sorted(self.thresholds.keys() & self.label_policies.keys())
        if both:
            raise ValueError(f"{both[0]!r} is in thresholds and label_policies; remove it from one of them")
        return self


class Router(ResponseModel):
    """A router: decides the destinations of messages by the predictions of a model."""

    name: str
    """Name of the router."""
    model: str
    """Name of the model that decides."""
    version: VersionRef | None = None
    """The number of the version, or an alias. Absent if the router has `versions`."""
    versions: list[WeightedVersion] | None = None
    """The versions that decide, each for a part of the messages. Absent if the router has `version`."""
    sticky_by: StickyBy | None = None
    """What always gets the same version. Absent for the default, a message."""
    destinations: dict[str, str]
    """Destination of each label. Messages of a label without a destination go to the fallback."""
    fallback: str
    """Destination of messages without a predicted department, such as those without a word that the version
    knows."""
    review_below: float | None = None
    """Minimum `set_probability` of a routed message; a message with a smaller one gets the disposition
    `review`. Absent if no message is held back for its probability."""
    review_sample: float
    """Share of all messages that is drawn at random for a review."""
    at_most: int | None = None
    """Maximum number of departments; the ones with the highest scores are selected. Absent if there is no
    limit."""
    thresholds: dict[str, float] = Field(default_factory=dict)
    """Thresholds of labels that replace those of the version."""
    target_precision: float | None = None
    """Precision that each label surely reaches with its threshold. Absent if there is no such policy."""
    target_recall: float | None = None
    """Recall of each label on held-out predictions from which its threshold follows. Absent if there is no
    such policy."""
    costs: MistakeCosts | None = None
    """Costs of mistakes on held-out predictions from which thresholds follow. Absent if there is no such
    policy."""
    label_policies: dict[str, LabelPolicy] = Field(default_factory=dict)
    """Policies of single labels, which replace the policy for all labels."""
    shadow: VersionRef | None = None
    """The number or an alias of a second version that is recorded for comparison. Absent if there is none."""
    explain: bool
    """Whether every decision includes the terms that contribute most to the predicted labels."""
    keep_messages: KeepMessages
    """Messages that are kept."""
    keep_days: float
    """Time in days after which a kept message is deleted."""
    created_at: Timestamp
    """Time when the router was created."""
    updated_at: Timestamp
    """Time when the router was last replaced."""
    warnings: list[str] | None = None
    """What the thresholds do not achieve, for example labels that are never selected because they do not
    reach their precision, and destinations of labels that no version has. Only in the response to a request
    that creates or replaces the router; `GET …/thresholds` has the current ones of the thresholds."""


class LabelThreshold(ResponseModel):
    """The threshold with which a router uses a label of a version."""

    label: str
    """The label."""
    threshold: float | None = None
    """The label is predicted if its score is above. Absent if it is never predicted."""
    source: ThresholdSource
    """`version`: the threshold of the version, also if a policy finds too few examples of the label; `fixed`:
    `thresholds` of the router; otherwise the policy."""
    precision: float | None = None
    """Precision of the label with this threshold: the mean calibrated probability of the held-out examples
    for which it is predicted. Absent if there is none, or the threshold does not follow from a policy."""
    precision_low: float | None = None
    """Lower bound of the 95% confidence interval of the precision. Absent as the precision."""
    precision_high: float | None = None
    """Upper bound of the interval. Absent as the precision."""
    recall: float | None = None
    """Recall of the label on held-out predictions with this threshold. Absent if the threshold does not
    follow from a policy, or no held-out example has the label."""
    positives: int | None = None
    """Number of held-out examples with the label. Absent if the threshold does not follow from a policy."""


class VersionThresholds(ResponseModel):
    """The thresholds with which a router uses a version."""

    version: int
    """Number of the version."""
    labels: list[LabelThreshold]
    """The labels of the version, in label order."""
    unmet: str | None = None
    """Why the policies of the router have no effect, so that its messages get the disposition `review`.
    Absent if they have an effect, or the router has none."""
    warnings: list[str]
    """What the thresholds do not achieve, in full sentences: whether no department is ever selected, labels
    that are never selected because they do not reach their precision, and labels with too few examples."""


class EffectiveThresholds(ResponseModel):
    """The thresholds of a router."""

    router: str
    """Name of the router."""
    model: str
    """Name of its model."""
    versions: list[VersionThresholds]
    """The versions that decide."""


class RouterPage(ResponseModel):
    """A page of routers, by name."""

    items: list[Router]
    """Routers of this page."""
    next_cursor: NextCursor = None


class MessageParts(RequestModel):
    """A message as JSON. Set exactly one of email and raw_email."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "email": {
                        "subject": "Invoice 4711",
                        "from": "ann@example.com",
                        "text": "my invoice is wrong",
                    }
                },
            ]
        }
    )

    documents: ClassVar[frozenset[str]] = frozenset({"email"})

    email: EmailParts | None = None
    """The message as parts."""
    raw_email: str | None = None
    """The raw message (RFC 5322) in base64."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.email is None) == (self.raw_email is None):
            raise ValueError("set exactly one of email and raw_email")
        return self


class Department(ResponseModel):
    """A department that is selected for a message."""

    label: str
    """The label of the department."""
    destination: str
    """The destination of the department, or the fallback if the label has no destination."""
    score: float
    """Score of the label."""
    probability: float | None = None
    """Calibrated probability that the label applies. Absent if the version is not calibrated."""


class MessageSummary(ResponseModel):
    """A summary of the message."""

    message_id: str | None = None
    """The Message-ID without angle brackets. Absent if the message has none."""
    subject: str | None = None
    """The subject. Absent if the service does not keep text of messages (`COVEY_KEEP_DECISION_TEXT`)."""
    sender: str | None = None
    """The address of the author, in lower case. Absent if it is unknown, or if the service does not keep text
    of messages."""
    automated: bool
    """Whether a program sent the message, such as an automatic reply or a bounce. Do not reply
    automatically."""
    defects: list[str]
    """Defects of the message, such as parts that could not be decoded."""
    truncated: bool
    """Whether only a part of the message was read, because it exceeds a size limit."""
    unknown_words: float | None = None
    """Share of the words of the message that are no features of the version, from 0 to 1. It increases if the
    language of messages changes. Absent if the message has no words or is long, or if no version
    decided."""


class ShadowDecision(ResponseModel):
    """The prediction of the shadow version for the same message."""

    version: int
    """Number of the shadow version."""
    labels: list[str]
    """The predicted label set, in label order."""
    agrees: bool | None = None
    """Whether this is exactly the label set of the departments."""
    ranking: list[RankedLabel]
    """The labels with the highest scores, at most 10."""
    set_probability: float | None = None
    """Calibrated probability that `labels` is exactly the right label set. Absent if the shadow version is
    not calibrated."""


class Decision(ResponseModel):
    """The routing decision of one message."""

    decision_id: str
    """Id of the decision; starts with `dec_`."""
    router: str
    """Name of the router."""
    model: str
    """Name of the model of the router."""
    version: int | None = None
    """Number of the version that decided. Absent if the version of the router does not exist, so that the
    message went to the fallback."""
    disposition: Disposition
    """Whether the message is routed, needs a review, or goes to the fallback."""
    departments: list[Department]
    """The selected departments, best first. Empty for the fallback."""
    destinations: list[str]
    """Distinct destinations of the message, in order of the departments; the fallback if there is no
    department."""
    ranking: list[RankedLabel]
    """The 20 labels with the highest scores and every selected
    department, in descending order of the scores."""
    set_probability: float | None = None
    """Calibrated probability that the departments are exactly the right ones; without departments, that none
    is right. Absent if the version is not calibrated."""
    review_reason: str | None = None
    """Why the message needs a review. Absent unless the disposition is `review`."""
    explanation: list[LabelExplanation] | None = None
    """An explanation of each predicted label in `ranking`. Absent if it was not requested, no label is
    predicted, or the learner cannot explain its scores."""
    fallback_reason: str | None = None
    """Why the version could not decide, so that the message went to the fallback: it has failed, or it knows
    no word of the message. Absent if it decided."""
    message: MessageSummary
    """Summary of the routed message."""
    sampled: bool = False
    """Whether the message belongs to the random sample (`review_sample`), for which a person submits the
    right labels. This does not change where the message goes."""
    message_kept: bool | None = None
    """Whether the message is kept. Absent if the router does not keep such messages."""
    not_kept_reason: str | None = None
    """Why the message is not kept, although the router keeps such messages. Absent otherwise."""
    texts: dict[str, str] | None = None
    """The texts by field to which the `occurrences` of `explanation` refer. Only in the response to a message
    that was posted with `explain=true`. They are not stored."""


class Person(ResponseModel):
    """A user or the holder of an API key."""

    id: str
    """Id of the user or of the API key."""
    name: str
    """Name of the user or of the API key, at that time."""


class Review(ResponseModel):
    """What the reviewers of one queue need to know of a message."""

    reserved_by: Person | None = None
    """The person who has the message open. Absent if it is free."""
    reserved_until: Timestamp | None = None
    """When the reservation ends. Absent if the message is free."""
    assigned_to: str | None = None
    """Name of the person who should review the message. Absent if it is for all."""
    note: str | None = None
    """A note for other reviewers. Absent if there is none."""
    note_by: Person | None = None
    """Who wrote the note. Absent if there is none, and for anonymous requests."""


class ReviewPut(RequestModel):
    """Whose message it is, and a note. What is absent is removed."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"assigned_to": "Ann", "note": "Is this still ours?"}]}
    )

    assigned_to: Title | None = None
    """Name of the person who should review the message."""
    note: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None
    """A note for other reviewers."""


class RecordedDecision(Decision):
    """A recorded decision with its feedback."""

    created_at: Timestamp
    """Time of the decision."""
    shadow: ShadowDecision | None = None
    """The prediction of the shadow version. Absent if the router has no shadow, or it has not predicted
    yet."""
    feedback: list[str] | None = None
    """The correct labels from the feedback, sorted. Absent if there is no feedback."""
    feedback_at: Timestamp | None = None
    """Time of the feedback. Absent if there is no feedback."""
    feedback_by: Person | None = None
    """Who gave the feedback. Absent if there is no feedback, and for anonymous requests."""
    review: Review | None = None
    """Who has the message open or should review it, and a note. Absent if there is nothing."""
    kept_until: Timestamp | None = None
    """Time after which the kept message is deleted. Absent if the message is not kept."""


class DecisionPage(ResponseModel):
    """A page of decisions."""

    items: list[RecordedDecision]
    """Decisions of this page. If decisions are large, or few of them meet all conditions, a page has fewer
    than `limit`, or even none: follow `next_cursor`."""
    next_cursor: NextCursor = None


def _check_label(label: str) -> str:
    try:
        check_name(label, "the label", "", IngestLimits.name_length)
    except RecordError as error:
        raise ValueError(error.reason) from error
    return label


class Feedback(RequestModel):
    """The correct labels of a message."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"labels": ["billing"]},
            ]
        }
    )
    large_fields: ClassVar[tuple[str, ...]] = ("labels",)
    max_items: ClassVar[MaxItems] = {"labels": lambda settings: settings.max_labels}

    labels: list[Annotated[Label, AfterValidator(_check_label)]]
    """The correct labels. An empty list states that no department is correct."""
    allow_new_labels: bool = False
    """Whether a label can be one that no version and no data set of the model has. By default such a label
    is an error, because it is probably misspelt."""
