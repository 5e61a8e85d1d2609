"""What a client may say and will hear about routers, messages and decisions."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from app.datasets.schemas import EmailParts, Label
from app.http.schemas import (
    Count,
    MaxItems,
    Name,
    NextCursor,
    RequestModel,
    ResponseModel,
    Timestamp,
    WithoutNul,
)
from app.registry.schemas import VersionRef
from app.serving.schemas import LabelExplanation, RankedLabel

Destination: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1000), WithoutNul]
"""Where a department's messages go: an address, a queue's name, whatever the caller understands."""

Disposition: TypeAlias = Literal["routed", "review", "fallback"]


class RouterPut(RequestModel):
    """How messages are routed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "helpdesk",
                    "version": "live",
                    "destinations": {"billing": "billing@example.org"},
                    "fallback": "frontdesk@example.org",
                    "review_below": 0.2,
                    "at_most": 3,
                },
            ]
        }
    )
    longest: ClassVar[MaxItems] = {"destinations": lambda settings: settings.max_labels}

    model: Name
    """A model that exists."""
    version: VersionRef = "live"
    """A number or an alias; an alias follows every promotion."""
    destinations: dict[Label, Destination] = Field(default_factory=dict)
    """Label to destination; a label without one goes to the fallback."""
    fallback: Destination
    """Where messages go for which no department is found, and those that cannot be read."""
    review_below: float | None = Field(default=None, ge=0)
    """A message is put up for review when the score of a chosen department exceeds its threshold by less."""
    at_most: Count | None = None
    """At most so many departments, the best ones."""
    shadow: VersionRef | None = None
    """A second version that decides too, for comparison only."""
    explain: bool = False
    """Name the terms that decided, in every decision."""


class Router(ResponseModel):
    """How messages are routed under a name."""

    name: str
    """Its name."""
    model: str
    """The model that decides."""
    version: int | str
    """The version's number, or an alias that is followed."""
    destinations: dict[str, str]
    """Label to destination; a label without one goes to the fallback."""
    fallback: str
    """Where messages go for which no department is found, and those that cannot be read."""
    review_below: float | None = None
    """A message is put up for review when the score of a chosen department exceeds its threshold by less."""
    at_most: int | None = None
    """At most so many departments, the best ones."""
    shadow: int | str | None = None
    """A second version that decides too, for comparison only."""
    explain: bool
    """Whether every decision names the terms that decided."""
    created_at: Timestamp
    """When it was created."""
    updated_at: Timestamp
    """When it was last replaced."""


class RouterPage(ResponseModel):
    """A page of routers, by name."""

    items: list[Router]
    """The page."""
    next_cursor: NextCursor = None


class MessageJson(RequestModel):
    """A message as JSON; exactly one of email and raw_email."""

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

    email: EmailParts | None = None
    """The message in parts."""
    raw_email: str | None = None
    """A raw message, base64."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.email is None) == (self.raw_email is None):
            raise ValueError("give exactly one of email and raw_email")
        return self


class Department(ResponseModel):
    """A department that a message goes to."""

    label: str
    """The label that stands for the department."""
    destination: str
    """Where its messages go."""
    score: float
    """The label's score."""


class MessageSummary(ResponseModel):
    """What was read of the message."""

    message_id: str | None = None
    """Its Message-ID, without the angle brackets."""
    subject: str | None = None
    """Its subject, unless the service keeps none."""
    automated: bool
    """Written by a program: an auto-reply, a bounce, a list. Do not answer it automatically."""
    defects: list[str]
    """What could not be read as it stood."""
    truncated: bool
    """Only a part of the message was read, because of its size."""


class ShadowDecision(ResponseModel):
    """What the shadow version would have decided."""

    version: int
    """The version's number."""
    labels: list[str]
    """The label set that it predicts."""
    ranking: list[RankedLabel]
    """The labels with the highest scores."""


class Decision(ResponseModel):
    """Where a message goes, and why."""

    decision_id: str
    """Begins with `dec_`."""
    router: str
    """The router that the message was posted to."""
    model: str
    """The model that decided."""
    version: int
    """The version that decided."""
    disposition: Disposition
    """What to do with the message."""
    departments: list[Department]
    """Best first. Empty for the fallback."""
    destinations: list[str]
    """The distinct places to send the message to; the fallback's where no department was found."""
    ranking: list[RankedLabel]
    """Every label by falling score."""
    explanation: list[LabelExplanation] | None = None
    """Why, for each predicted label; where it was asked for."""
    message: MessageSummary
    """The message, as far as it was read."""


class RecordedDecision(Decision):
    """A decision as it is kept."""

    created_at: Timestamp
    """When it was decided."""
    shadow: ShadowDecision | None = None
    """What the shadow version would have decided."""
    feedback: list[str] | None = None
    """The labels that would have been right, as told afterwards."""
    feedback_at: Timestamp | None = None
    """When that was told."""


class DecisionPage(ResponseModel):
    """A page of decisions, the newest first."""

    items: list[RecordedDecision]
    """The page."""
    next_cursor: NextCursor = None


class Feedback(RequestModel):
    """What would have been right."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"labels": ["billing"]},
            ]
        }
    )
    longest: ClassVar[MaxItems] = {"labels": lambda settings: settings.max_labels}

    labels: list[Label]
    """The labels that would have been right; none at all is allowed."""
