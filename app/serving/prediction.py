"""Predicts label sets and rankings of the documents in a request."""

from __future__ import annotations

from collections.abc import Sequence

from app.context import AppContext
from app.db import tables
from app.http.errors import from_learning
from app.serving.catalog import Catalog, ServedVersion
from app.serving.catalog_reading import resolve
from app.serving.costs import run_measured
from app.serving.instances import to_documents
from app.serving.loaded_models import ArtifactUnavailable, LoadedModels
from app.serving.loaded_version import LoadedVersion
from app.serving.schemas import LabelExplanation, PredictRequest, RankedLabel, Term
from app.serving.version_loading import load_version as find_loaded
from app.settings import Settings
from app.storage import MissingFileError
from models import pipeline as learning
from models.errors import CoveyError


async def predict(
    catalog: Catalog,
    loaded: LoadedModels,
    name: str,
    body: PredictRequest,
    settings: Settings,
    *,
    n_bytes: int,
) -> bytes:
    """Predict for a batch of instances with one version, and return a ``PredictResponse`` as JSON.

    A short prediction runs on the event loop, any other in a thread.

    Args:
        catalog: knows the version of each alias.
        loaded: the versions in memory.
        name: name of the model.
        body: the request.
        settings: the limits.
        n_bytes: size of the request.

    Raises:
        NotFound: there is no such model, version or alias.
        TooLarge: an instance exceeds a limit.
        Invalid: the version cannot predict for the instances, or does not support the options.
        NotReady: the version cannot be loaded now.
    """
    version, found = await find_loaded(catalog, loaded, name, body.version)
    cost = found.explanation_cost if body.explain or body.quick else found.ranking_cost
    return await run_measured(
        cost, len(body.instances), n_bytes, lambda: _predict(version, found, body, settings)
    )


def _predict(version: ServedVersion, found: LoadedVersion, body: PredictRequest, settings: Settings) -> bytes:
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
