"""Read an uploaded artifact, which may be forged, and check everything that a version stores or returns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from app.settings import Settings
from models import artifact
from models.artifact import Manifest
from models.errors import ArtifactError, ParameterError
from models.labels import LabelTree
from models.labels.tree import MAX_DEPTH
from models.pipeline import Pipeline

_MeasureName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_Measures = Annotated[
    dict[_MeasureName, Annotated[float, Field(allow_inf_nan=False)]], Field(max_length=1_000)
]


class _Metrics(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    train: _Measures
    test: _Measures | None = None


class Provenance(BaseModel):
    """What a training stores in an artifact in addition to the model. Other values are ignored.

    Attributes:
        metrics: measures by part.
        dataset_sha256: SHA-256 of the content that the version was trained on.
    """

    model_config = ConfigDict(extra="ignore", strict=True)

    metrics: _Metrics | None = None
    dataset_sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None


def read(path: Path, settings: Settings) -> tuple[Pipeline, Provenance]:
    """Load an artifact with all checks.

    Raises:
        ArtifactError: the file is not a model that Covey wrote, or it exceeds a limit of the service.
    """
    manifest = artifact.read_manifest(path)
    _check_limits(manifest, settings)
    try:
        provenance = Provenance.model_validate(manifest.extra)
    except ValidationError as error:
        first = error.errors()[0]
        pointer = "/".join(str(part) for part in ("extra", *first["loc"]))
        raise ArtifactError(f"the manifest is invalid at {pointer}: {first['msg']}") from error
    return artifact.load(path), provenance


def _check_limits(manifest: Manifest, settings: Settings) -> None:
    if len(manifest.labels) > settings.max_labels:
        raise ArtifactError(
            f"the model has {len(manifest.labels):,} labels; the limit is {settings.max_labels:,}"
        )
    if manifest.label_tree is None:
        return
    if len(manifest.label_tree) > settings.max_labels:
        raise ArtifactError(
            f"the label tree has {len(manifest.label_tree):,} entries; the limit is {settings.max_labels:,}"
        )
    try:
        LabelTree(manifest.label_tree).check_depth(MAX_DEPTH)
    except ParameterError as error:
        raise ArtifactError(str(error)) from error
