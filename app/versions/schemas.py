"""What a client may say and will hear about models, versions, aliases and predictions."""

from __future__ import annotations

from typing import Annotated, Self, TypeAlias

from pydantic import Field, model_validator

from app.datasets.schemas import EmailParts
from app.schemas import Answer, JsonObject, Name, Request, Timestamp
from app.training.schemas import PartMetrics

VersionNumber: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]
VersionRef: TypeAlias = VersionNumber | Name
"""A version's number, or an alias."""


class Model(Answer):
    """A name with versions."""

    name: str
    created_at: Timestamp
    versions: int
    """How many versions there are."""
    last_version: int
    """The highest number given so far; numbers are never used twice."""
    aliases: dict[str, int]
    """Alias to version; `live` is what is served by default."""


class ModelPage(Answer):
    """A page of models, by name."""

    items: list[Model]
    next_cursor: str | None = None


class Artifact(Answer):
    """The file that a version is."""

    sha256: str
    size_bytes: int


class ModelVersion(Answer):
    """A trained model, immutable."""

    model: str
    version: int
    aliases: list[str]
    labels: list[str]
    """The labels it can predict, in label order."""
    closed_under_ancestors: bool
    """Whether every label set that it predicts is closed under ancestors of the label tree."""
    learner: JsonObject
    features: JsonObject
    decision: JsonObject
    metrics: PartMetrics | None = None
    facts: JsonObject
    """What the training has to say of itself: distinct pivots, operations, precision of weights."""
    warnings: list[str]
    dataset_id: str | None = None
    dataset_sha256: str | None = None
    training_job_id: str | None = None
    seed: int
    artifact: Artifact
    created_at: Timestamp
    software: dict[str, str]
    timings: dict[str, float]


class ModelVersionPage(Answer):
    """A page of versions, the newest first."""

    items: list[ModelVersion]
    next_cursor: str | None = None


class AliasPut(Request):
    """Which version an alias names from now on."""

    version: VersionNumber


class Alias(Answer):
    """A name for one version."""

    model: str
    alias: str
    version: int
    revision: int
    """Counts up with every change; also the `ETag`."""
    updated_at: Timestamp


class Instance(Request):
    """One document to predict for; exactly one of text, features, email and raw_email."""

    text: str | None = None
    features: dict[str, float] | None = None
    email: EmailParts | None = None
    raw_email: str | None = None
    """A raw message, base64."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("give exactly one of text, features, email and raw_email")
        return self


class PredictRequest(Request):
    """Documents to predict label sets and rankings for."""

    instances: list[Instance] = Field(min_length=1)
    version: VersionRef = "live"
    """A number or an alias."""
    top: int | None = Field(default=None, ge=1)
    """Length of the rankings; every label by default."""
    explain: bool = False
    """Name the terms that decided for each predicted label."""


class RankedLabel(Answer):
    """A label in a ranking."""

    label: str
    score: float
    rank: int


class Term(Answer):
    """A term of a document and what it adds to a label's score."""

    term: str
    weight: float


class LabelExplanation(Answer):
    """Why a label was predicted."""

    label: str
    terms: list[Term]


class Prediction(Answer):
    """What is predicted for one instance."""

    labels: list[str]
    """The predicted label set, in label order."""
    ranking: list[RankedLabel]
    """Labels by falling score; ties go to the label that sorts first."""
    explanation: list[LabelExplanation] | None = None


class PredictAnswer(Answer):
    """Predictions, and the version that made them."""

    model: str
    version: int
    predictions: list[Prediction]
