"""Create and replace routers, and compute their thresholds, with versions in memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from sqlalchemy.orm import Session

from app.db.session import Database
from app.errors import NotFound
from app.registry.queries import resolve
from app.routing import policies, service
from app.routing.schemas import EffectiveThresholds, LabelThreshold, Router, RouterPut, VersionThresholds
from app.serving.loaded_models import LoadedModels, VersionReference
from app.serving.preloading import load_before_use
from models.base.training import abbreviated
from models.decisions.curves import ChosenThreshold
from models.pipeline import Pipeline


def put(
    db: Database, loaded: LoadedModels, name: str, body: RouterPut, if_match: str | None = None
) -> Router:
    """Load the versions of a router, then create or replace the router, with warnings.

    The shadow version is loaded when the router has changed. No message waits for it.

    Raises:
        PreconditionFailed: ``if_match`` is not the current ``ETag`` of the router.
        Invalid: the model, version or shadow does not exist, or cannot read e-mail.
        ArtifactUnavailable: the file of the version is missing or damaged.
        NotReady: the version is not in memory, and the storage is slow.
        StorageUnavailableError: the version is not in memory, and the storage is unavailable.
    """
    pipelines: dict[int | str, Pipeline] = {}
    for reference in body.references:
        with suppress(NotFound):  # the transaction looks again, and its error names the field
            found = load_before_use(db, loaded, _finder(body.model, reference))
            pipelines[reference] = found.pipeline
    router = service.put(db, name, body, if_match)
    warnings = [
        f"{'alias' if isinstance(reference, str) else 'version'} {reference} of {body.model}: {warning}"
        for reference, pipeline in pipelines.items()
        for warning in policies.threshold_warnings(pipeline, body)
    ]
    known = {label for pipeline in pipelines.values() for label in pipeline.labels_}
    if pipelines and (unknown := sorted(body.destinations.keys() - known)):
        warnings.append(f"destinations of labels that no version of the router has: {abbreviated(unknown)}")
    return router.model_copy(update={"warnings": warnings})


def thresholds(db: Database, loaded: LoadedModels, name: str) -> EffectiveThresholds:
    """Return the thresholds with which a router uses the labels of its versions.

    Raises:
        NotFound: there is no such router, or its version does not exist.
        ArtifactUnavailable: the file of the version is missing or damaged.
        NotReady: the version is not in memory, and the storage is slow.
        StorageUnavailableError: the version is not in memory, and the storage is unavailable.
    """
    with db.read() as session:
        config = RouterPut.model_validate(service.get_or_404(session, name).config)
        numbers = [resolve(session, config.model, ref).version for ref in config.references]
    versions = [
        _thresholds_of(load_before_use(db, loaded, _finder(config.model, number)).pipeline, number, config)
        for number in dict.fromkeys(numbers)
    ]
    return EffectiveThresholds(router=name, model=config.model, versions=versions)


def _finder(model: str, reference: int | str) -> Callable[[Session], VersionReference]:
    return lambda session: resolve(session, model, reference)


def _thresholds_of(pipeline: Pipeline, number: int, config: RouterPut) -> VersionThresholds:
    labels = [
        LabelThreshold(
            label=item.label,
            threshold=item.threshold,
            source=item.source,
            **_precision(item.choice),
            recall=None if item.choice is None else item.choice.recall,
            positives=None if item.choice is None else item.choice.positives,
        )
        for item in policies.effective_thresholds(pipeline, config)
    ]
    unmet = policies.NO_CURVES if policies.has_policies(config) and pipeline.curves_ is None else None
    warnings = policies.threshold_warnings(pipeline, config)
    return VersionThresholds(version=number, labels=labels, unmet=unmet, warnings=warnings)


def _precision(choice: ChosenThreshold | None) -> dict[str, float | None]:
    if choice is None or choice.precision_interval is None:
        return {}
    low, high = choice.precision_interval
    return {"precision": choice.precision, "precision_low": low, "precision_high": high}
