"""What a client may say and will hear about routers, messages and decisions."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from app.datasets.schemas import EmailParts, Label
from app.schemas import Answer, Name, Request, Timestamp
from app.versions.schemas import LabelExplanation, RankedLabel, VersionRef

Destination: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
"""Where a department's messages go: an address, a queue's name, whatever the caller understands."""

Disposition: TypeAlias = Literal["routed", "review", "fallback"]


class RouterPut(Request):
    """How messages are routed."""

    model: Name
    version: VersionRef = "live"
    """A number or an alias; an alias follows every promotion."""
    destinations: dict[Label, Destination] = Field(default_factory=dict)
    """Label to destination; a label without one goes to the fallback."""
    fallback: Destination
    """Where messages go for which no department is found, and those that cannot be read."""
    review_below: float | None = Field(default=None, ge=0)
    """A message is put up for review when the score of a chosen department exceeds its threshold by less."""
    at_most: int | None = Field(default=None, ge=1)
    """At most so many departments, the best ones."""
    shadow: VersionRef | None = None
    """A second version that decides too, for comparison only."""
    explain: bool = False
    """Name the terms that decided, in every decision."""


class Router(Answer):
    """How messages are routed under a name."""

    name: str
    model: str
    version: int | str
    destinations: dict[str, str]
    fallback: str
    review_below: float | None = None
    at_most: int | None = None
    shadow: int | str | None = None
    explain: bool
    created_at: Timestamp
    updated_at: Timestamp


class RouterPage(Answer):
    """A page of routers, by name."""

    items: list[Router]
    next_cursor: str | None = None


class MessageJson(Request):
    """A message as JSON; exactly one of email and raw_email."""

    email: EmailParts | None = None
    raw_email: str | None = None
    """A raw message, base64."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.email is None) == (self.raw_email is None):
            raise ValueError("give exactly one of email and raw_email")
        return self


class Department(Answer):
    """A department that a message goes to."""

    label: str
    destination: str
    score: float


class MessageSummary(Answer):
    """What was read of the message."""

    message_id: str | None = None
    subject: str | None = None
    automated: bool
    """Written by a program: an auto-reply, a bounce, a list. Do not answer it automatically."""
    defects: list[str]
    """What could not be read as it stood."""
    truncated: bool
    """Only a part of the message was read, because of its size."""


class ShadowDecision(Answer):
    """What the shadow version would have decided."""

    version: int
    labels: list[str]
    ranking: list[RankedLabel]


class Decision(Answer):
    """Where a message goes, and why."""

    decision_id: str
    router: str
    model: str
    version: int
    disposition: Disposition
    departments: list[Department]
    """Best first. Empty for the fallback."""
    destinations: list[str]
    """The distinct places to send the message to; the fallback's where no department was found."""
    ranking: list[RankedLabel]
    explanation: list[LabelExplanation] | None = None
    message: MessageSummary


class RecordedDecision(Decision):
    """A decision as it is kept."""

    created_at: Timestamp
    shadow: ShadowDecision | None = None
    feedback: list[str] | None = None
    """The labels that would have been right, as told afterwards."""
    feedback_at: Timestamp | None = None


class DecisionPage(Answer):
    """A page of decisions, the newest first."""

    items: list[RecordedDecision]
    next_cursor: str | None = None


class Feedback(Request):
    """What would have been right."""

    labels: list[Label]
