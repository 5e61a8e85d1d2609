"""Predicts label sets and rankings of the documents in a request."""

from __future__ import annotations

from collections.abc import Sequence

from app.context import AppContext
from app.db import tables
from app.http.errors import from_learning
from app.serving.catalog_reading import resolve
from app.serving.instances import to_documents
from app.serving.loaded_models import ArtifactUnavailable, LoadedModels, VersionReference
from app.serving.loaded_version import LoadedVersion
from app.serving.schemas import LabelExplanation, PredictRequest, RankedLabel, Term
from app.settings import Settings
from app.storage import MissingFileError
from models import pipeline as learning
from models.errors import CoveyError


def predict(ctx: AppContext, loaded: LoadedModels, name: str, body: PredictRequest) -> bytes:
    """Predict for a batch of instances with one version, and return a ``PredictResponse`` as JSON.

    Raises:
        NotFound: there is no such model, version or alias.
        TooLarge: an instance exceeds a limit.
        Invalid: the version cannot predict for the instances, or does not support the options.
    """
    version, found = load_version(ctx, loaded, name, body.version)
    return predict_with(found, version, body, ctx.settings)


def predict_with(
    found: LoadedVersion, version: VersionReference, body: PredictRequest, settings: Settings
) -> bytes:
    """Predict with a version in memory; see ``predict``."""
    pipeline, encoder = found.pipeline, found.encoder
    documents = to_documents(pipeline, body.instances, settings)
    max_labels = settings.max_predicted_labels
    try:
        if body.explain or body.quick:
            predictions = encoder.explained_predictions(
                pipeline.predict(
                    documents, top=body.top, explain=body.explain, quick=body.quick, max_labels=max_labels
                ),
                explain=body.explain,
            )
        else:
            predictions = encoder.predictions(pipeline.rank(documents, top=body.top, max_labels=max_labels))
    except CoveyError as error:
        raise from_learning(error) from error
    # The name of a model needs no escapes.
    return b'{"model":"%b","version":%d,"predictions":%b}' % (
        version.model.encode(),
        version.version,
        predictions,
    )


def load_version(
    ctx: AppContext, loaded: LoadedModels, name: str, ref: int | str
) -> tuple[tables.ModelVersion, LoadedVersion]:
    """Return the version with a number or alias, as row and in memory.

    Raises:
        NotFound: there is no such model, version or alias.
        ArtifactUnavailable: the file of the version is missing or damaged.
        NotReady: the version is not in memory, and the storage is slow.
        StorageUnavailableError: the version is not in memory, and the storage is unavailable.
    """
    missing: str | None = None
    while True:
        with ctx.db.read() as session:
            version = resolve(session, name, ref)
        try:
            return version, loaded.get(version)
        except MissingFileError as error:
            # Another request may have deleted the version after this one had read its row. Then the row is
            # gone, or the alias names another version.
            if missing == version.artifact_key:
                raise ArtifactUnavailable(version, "is missing") from error
            missing = version.artifact_key


def ranked_labels(ranking: Sequence[tuple[str, float]]) -> list[RankedLabel]:
    """Convert a ranking to the response; ranks start at 1."""
    return [
        RankedLabel(label=label, score=score, rank=rank)
        for rank, (label, score) in enumerate(ranking, start=1)
    ]


def label_explanations(explanations: Sequence[learning.Explanation]) -> list[LabelExplanation]:
    """Convert explanations to the response."""
    return [
        LabelExplanation(
            label=explanation.label,
            terms=[Term(term=term, weight=weight) for term, weight in explanation.terms],
        )
        for explanation in explanations
    ]
