"""Predict for tasks of Label Studio, and turn annotations into feedback.

A model predicts choices. A router decides on the text of a task as on a message, and records the decision.
The same message always has the same decision, so an annotation finds the decision of its task again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

from pydantic import ValidationError

from app.api.guards import Actor
from app.api.validation import LARGE_BYTES
from app.context import AppContext
from app.errors import Invalid, TooLarge
from app.protocols.label_studio.label_config import LabelConfig, read_label_config
from app.protocols.label_studio.schemas import (
    Annotation,
    AnnotationEvent,
    LabelStudioPredictRequest,
    LabelStudioPredictResponse,
    Task,
    TaskPrediction,
)
from app.protocols.label_studio.tasks import to_instance, to_message
from app.routing import decisions as recorded
from app.routing.decision_content import predicted_labels_of
from app.routing.message_router import MessageRouter
from app.routing.schemas import Feedback
from app.serving import prediction
from app.serving.instances import to_documents
from app.serving.loaded_models import LoadedModels
from app.serving.loaded_version import LoadedVersion
from app.serving.snapshot import version_references
from app.serving.state import Catalog, ServedVersion
from app.serving.version_loading import load_version
from app.settings import Settings
from app.threads import PREDICTIONS, REQUESTS
from models.pipeline import Pipeline, Ranking

AT_ONCE: Final = 32
"""Tasks that a request routes at the same time. Their decisions are committed together."""


async def find_router_version(catalog: Catalog, router: str) -> tuple[str, int | str]:
    """Return the model of a router, and its version or the first of its versions."""
    _, found = await catalog.find_router(router)
    return found.config["model"], version_references(found.config)[0]


async def load_for(
    catalog: Catalog, loaded: LoadedModels, model: str, reference: int | str
) -> tuple[ServedVersion, LoadedVersion]:
    """Load the version that predicts.

    Raises:
        Invalid: it was trained on numeric features.
        ServiceError: see ``load_version``.
    """
    version, found = await load_version(catalog, loaded, model, reference)
    if found.pipeline.kind_ == "features":
        message = (
            f"version {version.version} of {model} was trained on numeric features; Label Studio needs a "
            "version that was trained on text or e-mail"
        )
        raise Invalid(message)
    return version, found


async def read_config(text: str, loaded: LoadedVersion, pointer: str) -> LabelConfig:
    """Read a labeling configuration, a long one in a thread; see ``read_label_config``."""
    labels = loaded.pipeline.labels_
    if len(text) > LARGE_BYTES:
        return await PREDICTIONS.run(read_label_config, text, labels, pointer)
    return read_label_config(text, labels, pointer)


def version_name(model: str, version: int) -> str:
    """Return the name of a version in Label Studio."""
    return f"{model} {version}"


async def predict_with_model(
    catalog: Catalog,
    loaded: LoadedModels,
    model: str,
    body: LabelStudioPredictRequest,
    settings: Settings,
    *,
    n_bytes: int,
) -> LabelStudioPredictResponse:
    """Predict the choices of tasks with the version ``live`` of a model."""
    version, found = await load_for(catalog, loaded, model, "live")
    config = await read_config(body.label_config, found, "/label_config")
    reads_email = found.pipeline.kind_ == "email"
    instances = [
        to_instance(task, config, f"/tasks/{i}", reads_email=reads_email) for i, task in enumerate(body.tasks)
    ]

    def read(pipeline: Pipeline) -> prediction.Documents:
        return to_documents(pipeline, instances, settings)

    def write(version: ServedVersion, found: LoadedVersion, ranking: Ranking) -> LabelStudioPredictResponse:
        labels, name = found.pipeline.labels_, version_name(version.model, version.version)
        scores = None if ranking.set_probabilities is None else ranking.set_probabilities.tolist()
        return LabelStudioPredictResponse(
            results=[
                _prediction(
                    config,
                    _best_first([labels[number] for number in label_set], labels[best]),
                    None if scores is None else scores[i],
                    name,
                )
                for i, (label_set, (best,)) in enumerate(
                    zip(ranking.label_sets, ranking.order.tolist(), strict=True)
                )
            ],
            model_version=name,
        )

    return await prediction.rank(
        catalog,
        loaded,
        model,
        version.version,
        read,
        write,
        n_instances=len(instances),
        n_bytes=n_bytes,
        top=1,
    )


async def predict_with_router(
    catalog: Catalog,
    loaded: LoadedModels,
    message_router: MessageRouter,
    router: str,
    body: LabelStudioPredictRequest,
    settings: Settings,
) -> LabelStudioPredictResponse:
    """Route the texts of tasks, and return the departments as choices."""
    version, found = await load_for(catalog, loaded, *await find_router_version(catalog, router))
    config = await read_config(body.label_config, found, "/label_config")
    decisions = await _route(message_router, router, body.tasks, config, "/tasks", settings)
    return LabelStudioPredictResponse(
        results=[
            _prediction(
                config,
                predicted_labels_of(decision),
                decision.get("set_probability"),
                version_name(decision["model"], decision["version"]) if "version" in decision else None,
            )
            for decision in decisions
        ],
        model_version=version_name(version.model, version.version),
    )


async def record_feedback(
    ctx: AppContext,
    catalog: Catalog,
    loaded: LoadedModels,
    message_router: MessageRouter,
    router: str,
    event: AnnotationEvent,
    actor: Actor | None,
) -> list[str]:
    """Record the choices of annotations as feedback on the decisions about their tasks.

    A task that the router does not know yet is routed first.

    Returns:
        The ids of the decisions; none if the annotators have skipped the tasks or the choice.

    Raises:
        Invalid: an annotation belongs to no task or has a choice that no label can be, or a task has no text.
        TooLarge: an annotation has too many choices.
        ServiceError: see ``MessageRouter.route`` and ``app.routing.decisions.give_feedback``.
    """
    _, found = await load_for(catalog, loaded, *await find_router_version(catalog, router))
    config = await read_config(event.project.label_config, found, "/project/label_config")
    annotations = [
        annotation
        for annotation in (event.annotation if isinstance(event.annotation, list) else [event.annotation])
        if not annotation.was_cancelled and _has_choices(annotation, config)
    ]
    bodies = [_feedback(annotation, config, ctx.settings) for annotation in annotations]
    tasks = [_task_of(annotation, event) for annotation in annotations]
    decisions = await _route(message_router, router, tasks, config, "/task", ctx.settings)

    def record() -> None:
        for body, decision in zip(bodies, decisions, strict=True):
            recorded.give_feedback(ctx.db, decision["decision_id"], body, actor)

    await REQUESTS.run(record)
    return [decision["decision_id"] for decision in decisions]


async def _route(
    message_router: MessageRouter,
    router: str,
    tasks: Sequence[Task],
    config: LabelConfig,
    pointer: str,
    settings: Settings,
) -> list[dict[str, Any]]:
    messages = [
        to_message(task, config, f"{pointer}/{i}", settings.max_message_bytes) for i, task in enumerate(tasks)
    ]
    decisions: list[dict[str, Any]] = []
    for start in range(0, len(messages), AT_ONCE):
        routed = await asyncio.gather(
            *(
                message_router.route(
                    router, message.read, n_bytes=len(message.original.content), original=message.original
                )
                for message in messages[start : start + AT_ONCE]
            ),
            return_exceptions=True,  # an error must not leave the other tasks without anybody who waits
        )
        for decision in routed:
            if isinstance(decision, BaseException):
                raise decision
            decisions.append(json.loads(decision))
    return decisions


def _task_of(annotation: Annotation, event: AnnotationEvent) -> Task:
    if not isinstance(event.task, list):
        return event.task
    for task in event.task:
        if task.id is not None and task.id == annotation.task:
            return task
    message = f"contains no task with the id {annotation.task} of an annotation"
    raise Invalid(f"/task: {message}", errors=[("/task", message)])


def _has_choices(annotation: Annotation, config: LabelConfig) -> bool:
    """Return whether an annotation answers the question for the choices; a note alone does not."""
    return not annotation.result or any(result.from_name == config.from_name for result in annotation.result)


def _feedback(annotation: Annotation, config: LabelConfig, settings: Settings) -> Feedback:
    labels = [
        choice
        for result in annotation.result
        if result.from_name == config.from_name
        for choice in result.value.choices
    ]
    place = "/annotation/result"
    if len(labels) > settings.max_labels:
        message = f"has {len(labels):,} choices; the limit is {settings.max_labels:,}"
        raise TooLarge(f"{place}: {message}", errors=[(place, message)])
    try:
        # The choices are a closed list, so a choice that the model does not know is no typing error.
        return Feedback(labels=labels, allow_new_labels=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        message = f"choice {first['loc'][-1]}: {str(first['msg']).removeprefix('Value error, ')}"
        raise Invalid(f"{place}: {message}", errors=[(place, message)]) from error


def _best_first(labels: Sequence[str], best: str) -> list[str]:
    return sorted(labels, key=lambda label: label != best)


def _prediction(
    config: LabelConfig, labels: Sequence[str], score: float | None, model_version: str | None
) -> TaskPrediction:
    """Return the prediction of a task.

    Args:
        config: the labeling configuration.
        labels: the predicted labels, best first.
        score: probability that all of them are right, and no others; None if it is unknown.
        model_version: the version that has predicted.
    """
    choices = config.selectable(labels)
    if not config.several:
        choices = choices[:1]
    region = {
        "from_name": config.from_name,
        "to_name": config.to_name,
        "type": "choices",
        "value": {"choices": choices},
    }
    return TaskPrediction(
        result=[region] if choices else [],
        score=score if len(choices) == len(labels) else None,
        model_version=model_version,
    )
