"""What a client may say and will hear about models, versions, aliases and predictions."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field

from app.http.schemas import JsonObject, Name, NextCursor, RequestModel, ResponseModel, Timestamp

VersionNumber: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]
VersionRef: TypeAlias = VersionNumber | Name
"""A version's number, or an alias."""


PromotionRule: TypeAlias = Literal["if_first", "always", "never"]


class IfBetter(RequestModel):
    """Promote when a measure on the test part is better than that of the version now live."""

    metric: str = Field(examples=["f1_micro"])
    """A measure of the test part, as in a version's `metrics`."""


class PromoteIfBetter(RequestModel):
    """Promote only a better version."""

    if_better: IfBetter
    """Better in what."""


class PartMetrics(ResponseModel):
    """Measures of the training part, and of the test part where there is one."""

    train: dict[str, float]
    """Measure to value, on the examples learned from."""
    test: dict[str, float] | None = None
    """Measure to value, on the examples held out."""


class Model(ResponseModel):
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


class ModelPage(ResponseModel):
    """A page of models, by name."""

    items: list[Model]
    """The page."""
    next_cursor: NextCursor = None


class Artifact(ResponseModel):
    """The file that a version is."""

    sha256: str
    """Digest of the file, hexadecimal."""
    size_bytes: int
    """Size of the file."""


class ModelVersion(ResponseModel):
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


class ModelVersionPage(ResponseModel):
    """A page of versions, the newest first."""

    items: list[ModelVersion]
    """The page."""
    next_cursor: NextCursor = None


class AliasPut(RequestModel):
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


class Alias(ResponseModel):
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
