"""Predict label sets and rankings of the documents in a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from app.api.structs import to_json
from app.errors import from_library_error
from app.serving import responses
from app.serving.explanations import explained_texts
from app.serving.instances import find_unknown_features, to_documents
from app.serving.latency_estimate import run_measured
from app.serving.loaded_models import LoadedModels
from app.serving.loaded_version import LoadedVersion
from app.serving.schemas import PredictRequest
from app.serving.state import Catalog, ServedVersion
from app.serving.version_loading import load_version
from app.settings import Settings
from models.data.examples import FeatureRows
from models.decisions import LabelSetRule
from models.errors import CoveyError
from models.mail import MailDocument
from models.pipeline import Pipeline, Prediction, Ranking

Result = TypeVar("Result")

Documents: TypeAlias = list[str] | list[MailDocument] | FeatureRows
"""Documents of the kind that a pipeline was trained on."""

MAX_PREDICTED_LABELS = 100_000
"""Maximum number of labels in all rankings, label sets and explanations of one response, together with the
terms in its explanations."""


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
    version, found = await load_version(catalog, loaded, name, body.version)
    cost = found.explanation_cost if body.explain else found.ranking_cost
    return await run_measured(
        cost, len(body.instances), n_bytes, lambda: _predict(version, found, body, settings)
    )


async def rank(
    catalog: Catalog,
    loaded: LoadedModels,
    name: str,
    reference: int | str,
    read: Callable[[Pipeline], Documents],
    write: Callable[[ServedVersion, LoadedVersion, Ranking], Result],
    *,
    n_instances: int,
    n_bytes: int,
    top: int | None = None,
) -> Result:
    """Predict as ``predict`` does, for the documents and in the format of another protocol.

    Args:
        catalog: knows the version of each alias.
        loaded: the versions in memory.
        name: name of the model.
        reference: the number or an alias of the version.
        read: returns the documents for a pipeline. It runs in the thread of the prediction, as ``write``.
        write: converts the predictions.
        n_instances: number of the documents.
        n_bytes: size of the request.
        top: length of the rankings; None ranks every label.

    Raises:
        ServiceError: see ``predict``, and what ``read`` and ``write`` raise.
    """
    version, found = await load_version(catalog, loaded, name, reference)

    def compute() -> Result:
        pipeline = found.pipeline
        documents = read(pipeline)
        try:
            ranking = _rank(pipeline, documents, top, pipeline.rule_)
        except CoveyError as error:
            raise from_library_error(error) from error
        return write(version, found, ranking)

    return await run_measured(found.ranking_cost, n_instances, n_bytes, compute)


def _rank(pipeline: Pipeline, documents: Documents, top: int | None, rule: LabelSetRule) -> Ranking:
    return pipeline.rank(documents, top=top, max_labels=MAX_PREDICTED_LABELS, rule=rule)


def _predict(version: ServedVersion, found: LoadedVersion, body: PredictRequest, settings: Settings) -> bytes:
    pipeline = found.pipeline
    documents = to_documents(pipeline, body.instances, settings)
    try:
        rule = pipeline.rule_with(body.thresholds)
        if body.explain:
            explained = pipeline.predictions(
                documents,
                top=body.top,
                explain=True,
                max_labels=MAX_PREDICTED_LABELS,
                rule=rule,
            )
            texts = _unknown_texts(pipeline, body, documents, explained)
            predictions = responses.explained_predictions(explained, texts)
        else:
            ranking = _rank(pipeline, documents, body.top, rule)
            predictions = responses.predictions(pipeline.labels_, ranking)
    except CoveyError as error:
        raise from_library_error(error) from error
    response = responses.new_predict_response(
        model=version.model, version=version.version, predictions=predictions
    )
    if isinstance(documents, FeatureRows) and (unknown := find_unknown_features(pipeline, documents.names)):
        response.unknown_features = responses.new_unknown_features(count=unknown.count, names=unknown.names)
    return to_json(response)


def _unknown_texts(
    pipeline: Pipeline,
    body: PredictRequest,
    documents: Sequence[str | MailDocument] | FeatureRows,
    predictions: Sequence[Prediction],
) -> list[dict[str, str]]:
    """Return the texts that the explanations of each instance refer to, if the client does not have them."""
    if isinstance(documents, FeatureRows):
        return [{}] * len(predictions)
    return [
        {}
        if isinstance(document, str) and instance.text is not None
        else explained_texts(pipeline, document, prediction.explanation)
        for instance, document, prediction in zip(body.instances, documents, predictions, strict=True)
    ]
