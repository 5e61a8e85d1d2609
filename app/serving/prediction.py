"""Instances in, label sets and rankings out."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from app.context import AppContext
from app.db import tables
from app.http.errors import Invalid, NotFound, from_learning
from app.registry import service as registry
from app.serving.loaded_models import LoadedModels
from app.serving.schemas import (
    Instance,
    LabelExplanation,
    Prediction,
    PredictRequest,
    PredictResponse,
    RankedLabel,
    Term,
)
from models import pipeline as learning
from models.data.examples import FeatureRows
from models.errors import CoveyError
from models.mail import MailDocument, read_email
from models.mail.email import Email
from models.pipeline import Pipeline


def predict(ctx: AppContext, loaded: LoadedModels, name: str, body: PredictRequest) -> PredictResponse:
    """Predict for a batch of instances with one version."""
    version, pipeline = load_version(ctx, loaded, name, body.version)
    documents = documents_for(pipeline, body.instances)
    try:
        predictions = pipeline.predict(documents, top=body.top, explain=body.explain, quick=body.quick)
    except CoveyError as error:
        raise from_learning(error) from error
    return PredictResponse(
        model=name,
        version=version.version,
        predictions=[to_response(prediction, explain=body.explain) for prediction in predictions],
    )


def load_version(
    ctx: AppContext, loaded: LoadedModels, name: str, ref: int | str
) -> tuple[tables.ModelVersion, Pipeline]:
    """The version that a number or an alias names now, ready to predict.

    Raises:
        NotFound: no such model, version or alias.
    """
    with ctx.db.read() as session:
        version = registry.resolve(session, name, ref)
    try:
        return version, loaded.get(version)
    except FileNotFoundError as error:
        # Deleted between the look at the database and the look at the disk.
        raise NotFound(f"version {version.version} of {name} was deleted just now") from error


def documents_for(
    pipeline: Pipeline, instances: Sequence[Instance]
) -> list[str] | list[MailDocument] | FeatureRows:
    """The instances as documents of the kind that the model was trained on.

    Text is accepted by models trained on e-mail (it counts as a message's text), and e-mail by models
    trained on text (its parts count as one text).

    Raises:
        Invalid: an instance of another kind, by its pointer.
    """
    if pipeline.kind_ == "features":
        return _feature_rows(instances)
    if pipeline.kind_ == "email":
        return [_mail(instance, i) for i, instance in enumerate(instances)]
    return [
        instance.text if instance.text is not None else as_text(_mail(instance, i))
        for i, instance in enumerate(instances)
    ]


def as_text(mail: MailDocument) -> str:
    """A message for a model that was trained on plain text."""
    return "\n".join(text for text, weight in mail.learning_parts() if weight > 0)


def _mail(instance: Instance, i: int) -> MailDocument:
    if instance.text is not None:
        return read_email(Email(text=instance.text))
    if instance.email is not None:
        parts = instance.email
        return read_email(
            Email(subject=parts.subject, from_=parts.from_, to=parts.to, text=parts.text, html=parts.html)
        )
    if instance.raw_email is not None:
        try:
            return read_email(Email(raw=base64.b64decode(instance.raw_email, validate=True)))
        except (binascii.Error, ValueError) as error:
            message = "raw_email is not base64"
            raise Invalid(message, errors=[(f"/instances/{i}/raw_email", message)]) from error
    message = "this model was trained on text or e-mail; give text, email or raw_email"
    raise Invalid(message, errors=[(f"/instances/{i}/features", message)])


def _feature_rows(instances: Sequence[Instance]) -> FeatureRows:
    names: dict[str, int] = {}
    columns: list[int] = []
    values: list[float] = []
    ends = [0]
    for i, instance in enumerate(instances):
        if instance.features is None:
            message = "this model was trained on named numbers; give features"
            raise Invalid(message, errors=[(f"/instances/{i}", message)])
        for name, value in instance.features.items():
            columns.append(names.setdefault(name, len(names)))
            values.append(value)
        ends.append(len(columns))
    matrix = csr_array(
        (np.array(values, dtype=np.float64), np.array(columns, dtype=np.int64), ends),
        shape=(len(instances), len(names)),
    )
    return FeatureRows(list(names), matrix)


def to_response(prediction: learning.Prediction, *, explain: bool) -> Prediction:
    """A prediction as clients see it."""
    return Prediction(
        labels=prediction.labels,
        ranking=ranked_labels(prediction.ranking),
        explanation=label_explanations(prediction.explanation) if explain else None,
        dot_products=prediction.dot_products,
    )


def ranked_labels(ranking: Sequence[tuple[str, float]]) -> list[RankedLabel]:
    """A ranking with its ranks."""
    return [
        RankedLabel(label=label, score=score, rank=rank)
        for rank, (label, score) in enumerate(ranking, start=1)
    ]


def label_explanations(explanations: Sequence[learning.Explanation]) -> list[LabelExplanation]:
    """Explanations as clients see them."""
    return [
        LabelExplanation(
            label=explanation.label,
            terms=[Term(term=term, weight=weight) for term, weight in explanation.terms],
        )
        for explanation in explanations
    ]
