"""What a client may say and will hear about models, versions, aliases and predictions."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from app.datasets.schemas import EmailParts
from app.schemas import Answer, Count, JsonObject, Longest, Name, NextCursor, Request, Timestamp
from app.training.schemas import PartMetrics

VersionNumber: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]
VersionRef: TypeAlias = VersionNumber | Name
"""A version's number, or an alias."""


class Model(Answer):
    """A name with versions."""

    name: str
    """Its name."""
    created_at: Timestamp
    """When its first version was made."""
    versions: int
    """How many versions there are."""
    last_version: int
    """The highest number given so far; numbers are never used twice."""
    aliases: dict[str, int]
    """Alias to version; `live` is what is served by default."""


class ModelPage(Answer):
    """A page of models, by name."""

    items: list[Model]
    """The page."""
    next_cursor: NextCursor = None


class Artifact(Answer):
    """The file that a version is."""

    sha256: str
    """Digest of the file, hexadecimal."""
    size_bytes: int
    """Size of the file."""


class ModelVersion(Answer):
    """A trained model, immutable."""

    model: str
    """The model's name."""
    version: int
    """Its number, from 1."""
    aliases: list[str]
    """The aliases that name it now."""
    labels: list[str]
    """The labels it can predict, in label order."""
    closed_under_ancestors: bool
    """Whether every label set that it predicts is closed under ancestors of the label tree."""
    learner: JsonObject
    """The learner and all its parameters, defaults filled in."""
    features: JsonObject
    """The features and all their parameters, defaults filled in."""
    decision: JsonObject
    """How scores become label sets, defaults filled in."""
    metrics: PartMetrics | None = None
    """How good it was when it was trained."""
    facts: JsonObject
    """What the training has to say of itself: distinct pivots, operations, precision of weights."""
    warnings: list[str]
    """What a person should know of it, in sentences."""
    dataset_id: str | None = None
    """What it was trained from; left out once that is deleted, and for an imported version."""
    dataset_sha256: str | None = None
    """Digest of the content that it was trained from."""
    training_job_id: str | None = None
    """The job that made it; left out for an imported version."""
    seed: int
    """The seed of the training."""
    artifact: Artifact
    """The file that can be downloaded and imported elsewhere."""
    created_at: Timestamp
    """When it was made or imported."""
    software: dict[str, str]
    """The programs it was made with, and their versions."""
    timings: dict[str, float]
    """Phase of the training to seconds."""


class ModelVersionPage(Answer):
    """A page of versions, the newest first."""

    items: list[ModelVersion]
    """The page."""
    next_cursor: NextCursor = None


class AliasPut(Request):
    """Which version an alias names from now on."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"version": 3},
            ]
        }
    )

    version: VersionNumber
    """The number of a version that exists."""


class Alias(Answer):
    """A name for one version."""

    model: str
    """The model's name."""
    alias: str
    """The alias's name."""
    version: int
    """The version that it names."""
    revision: int
    """Counts up with every change; also the `ETag`."""
    updated_at: Timestamp
    """When it last changed."""


class Instance(Request):
    """One document to predict for; exactly one of text, features, email and raw_email."""

    text: str | None = None
    """A plain text."""
    features: dict[str, float] | None = None
    """Named numbers; those left out are zero, names that the model does not know are passed over."""
    email: EmailParts | None = None
    """An e-mail in parts."""
    raw_email: str | None = None
    """A raw message, base64."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("give exactly one of text, features, email and raw_email")
        return self


class PredictRequest(Request):
    """Documents to predict label sets and rankings for."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "instances": [{"text": "my invoice is wrong"}],
                    "version": "live",
                    "top": 5,
                    "explain": True,
                },
            ]
        }
    )

    longest: ClassVar[Longest] = {"instances": lambda settings: settings.max_instances}

    instances: list[Instance] = Field(min_length=1)
    """The documents; answered in this order."""
    version: VersionRef = "live"
    """A number or an alias."""
    top: Count | None = None
    """Length of the rankings; every label by default."""
    explain: bool = False
    """Name the terms that decided for each predicted label."""
    quick: bool = False
    """For `mlpp`: find the `top` labels, which must be given, by quick voting. They are those that full
    voting ranks first, for fewer inner products; the label set is that of these labels alone."""


class RankedLabel(Answer):
    """A label in a ranking."""

    label: str
    """The label."""
    score: float
    """Comparable between labels; the decision rule says what it takes to be predicted."""
    rank: int
    """1 for the highest score."""


class Term(Answer):
    """A term of a document and what it adds to a label's score."""

    term: str
    """The term, as the analyzer made it."""
    weight: float
    """What it adds to the score; negative where it speaks against the label."""


class LabelExplanation(Answer):
    """Why a label was predicted."""

    label: str
    """The label."""
    terms: list[Term]
    """The terms that decided, the weightiest first."""


class Prediction(Answer):
    """What is predicted for one instance."""

    labels: list[str]
    """The predicted label set, in label order."""
    ranking: list[RankedLabel]
    """Labels by falling score; ties go to the label that sorts first."""
    explanation: list[LabelExplanation] | None = None
    """Why, for each predicted label; where it was asked for."""
    dot_products: int | None = None
    """How many inner products quick voting took; left out elsewhere."""


class PredictAnswer(Answer):
    """Predictions, and the version that made them."""

    model: str
    """The model's name."""
    version: int
    """The version that predicted."""
    predictions: list[Prediction]
    """One for each instance, in their order."""
