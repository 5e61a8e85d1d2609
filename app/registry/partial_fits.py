"""Make a version from another one and a batch of examples, in the API process.

Partial fits of a process run one after the other in a thread of their own (``app.threads``), so that any
number of them leaves predictions and other requests their threads.
"""

from __future__ import annotations

import time

import numpy as np

from app.api.idempotency import Idempotency
from app.context import AppContext
from app.db.session import Transaction
from app.errors import Invalid, from_library_error
from app.ids import new_id
from app.registry import service
from app.registry.partial_fit_schemas import PartialFit
from app.registry.publishing import NewVersion
from app.registry.queries import get_version_or_404
from app.registry.schemas import ModelVersion
from app.serving.instances import to_documents
from app.serving.loaded_models import LoadedModels
from app.serving.preloading import load_before_use
from models import artifact, catalog
from models.base.incremental import IncrementalLearner
from models.errors import ArtifactError, CoveyError, ParameterError
from models.pipeline import Pipeline
from models.pipeline.partial_fit import partial_fit


def create(
    ctx: AppContext,
    loaded: LoadedModels,
    name: str,
    number: int,
    body: PartialFit,
    idempotency: Idempotency,
) -> ModelVersion:
    """Publish a version that has also learned from the examples of a request.

    Raises:
        NotFound: there is no such model or version.
        Invalid: the learner cannot learn further, or an example does not suit the version.
        TooLarge: an example exceeds a limit.
        Conflict: the idempotency key was used with another body.
        ArtifactUnavailable: the file of the version is missing or damaged.
        NotReady: the version is not in memory, and the storage is slow.
        StorageUnavailableError: the storage is unavailable.
    """
    if (first := idempotency.first_response(ctx.db, ModelVersion)) is not None:
        return first
    parent = load_before_use(
        ctx.db, loaded, lambda session: get_version_or_404(session, name, number)
    ).pipeline
    _check(parent, number, body)
    start = time.perf_counter()
    pipeline = _learn(ctx, parent, body)
    seconds = time.perf_counter() - start
    lineage = {"parent_version": number, "examples": len(body.examples)}
    with ctx.storage.temporary_file(".covey") as path:
        try:
            artifact.save(pipeline, path, extra={"lineage": lineage})
            artifact.load(path)
        except ArtifactError as error:
            raise from_library_error(error) from error
        stored = ctx.storage.put(f"artifacts/{new_id('req')}.covey", path)
    new = NewVersion(
        model=name,
        pipeline=pipeline,
        artifact=stored,
        metrics={},
        warnings=list(pipeline.summary_.warnings),
        dataset_id=None,
        dataset_sha256=None,
        training_job_id=None,
        timings={"training_seconds": seconds},
        key_id=idempotency.key_id,
        reason="partial_fit",
        lineage=lineage,
    )

    def check_parent(tx: Transaction) -> None:
        service.lock_model(tx, name)  # publishing would create a model that was deleted in between
        get_version_or_404(tx.session, name, number)

    return service.publish_once(ctx, new, body.promote, idempotency, check_parent)


def _check(parent: Pipeline, number: int, body: PartialFit) -> None:
    """Check what does not depend on the documents."""
    learner = parent.learner_
    if not isinstance(learner, IncrementalLearner):
        message = (
            f"version {number} is of the learner {learner.algorithm}, which cannot continue a training; the "
            f"learners that can are {', '.join(catalog.INCREMENTAL_LEARNERS)}"
        )
        raise Invalid(message, errors=[("/path/version", message)])
    known = {*parent.labels_}
    errors = [
        (f"/examples/{i}/labels/{j}", f"version {number} has no label {label!r}")
        for i, example in enumerate(body.examples)
        for j, label in enumerate(example.labels)
        if label not in known
    ]
    if errors:
        message = f"{errors[0][1]}; a partial fit cannot add labels: train a new version with the label"
        raise Invalid(message, errors=errors)
    weighted = next((i for i, example in enumerate(body.examples) if example.weight is not None), None)
    if weighted is not None:
        try:
            catalog.check_weights(learner)
        except ParameterError as error:
            message = f"{learner.algorithm} does not accept weights; remove them"
            raise Invalid(message, errors=[(f"/examples/{weighted}/weight", message)]) from error


def _learn(ctx: AppContext, parent: Pipeline, body: PartialFit) -> Pipeline:
    documents = to_documents(parent, body.examples, ctx.settings, field="examples")
    weights = None
    if any(example.weight is not None for example in body.examples):
        weights = np.array([1.0 if example.weight is None else example.weight for example in body.examples])
    try:
        return partial_fit(parent, documents, [example.labels for example in body.examples], weights=weights)
    except CoveyError as error:
        raise from_library_error(error) from error
