"""HTTP routes of the machine learning backend of Label Studio, for each model and each router.

Label Studio adds ``/health``, ``/setup``, ``/predict``, ``/webhook`` and ``/versions`` to the URL of a
backend. It can authenticate with a name and a password; the password is an API key. The routes are not in the
OpenAPI document, because Label Studio defines them and is their only client.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias, TypeVar

from fastapi import APIRouter, Depends, Request

from app.api.direct_routes import Direct, DirectRequest
from app.api.guards import authorize, caller_of
from app.api.json_body import parse
from app.api.request_head import RequestHead, check_media_type, head_of, refuse_encoding
from app.api.schemas import ModelName
from app.api.validation import LARGE_BYTES, MAX_VALUES, BodyValidator, missing_body
from app.errors import Invalid
from app.protocols.label_studio import service
from app.protocols.label_studio.schemas import (
    AnnotationEvent,
    Health,
    LabelStudioPredictRequest,
    LabelStudioPredictResponse,
    SetupRequest,
    SetupResponse,
    Versions,
    WebhookReceipt,
)
from app.threads import PREDICTIONS

_SETUP: Final = BodyValidator(SetupRequest)
_PREDICT: Final = BodyValidator(LabelStudioPredictRequest)
_EVENT: Final = BodyValidator(AnnotationEvent)

_DOCUMENTS: Final = frozenset({"tasks", "task", "project", "label_config", "schema", "annotation"})
"""Fields that contain texts of other people, which can contain control characters."""

_ANNOTATED: Final = frozenset({"ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED"})
"""The events that contain annotations with their tasks."""


async def _authorize(request: Request) -> None:
    head = head_of(request)
    await authorize(request.scope, head.bearer or basic_password(head), ("predict",))


router = APIRouter(
    prefix="/label-studio",
    dependencies=[Depends(_authorize)],
    include_in_schema=False,
    generate_unique_id_function=lambda route: f"label_studio_{route.name}",
)

Body = TypeVar("Body")

Target: TypeAlias = Literal["models", "routers"]
"""Whether a model or a router predicts."""


def basic_password(head: RequestHead) -> str | None:
    """Return the password of ``Authorization: Basic``; None if there is none.

    >>> from starlette.types import Scope
    >>> scope: Scope = {"query_string": b"", "headers": [(b"authorization", b"Basic Y292ZXk6Y292X2E=")]}
    >>> basic_password(RequestHead(scope))
    'cov_a'
    """
    scheme, _, credentials = (head.get(b"authorization") or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(credentials.strip(), validate=True).decode().partition(":")[2] or None
    except (binascii.Error, ValueError):
        return None


@router.get("/{target}/{name}/health")
async def health(request: Direct, target: Target, name: ModelName) -> Health:
    """Check that the model or the router exists, and that the API key can use it."""
    await _version_of(request, target, name)
    return Health()


@router.post("/{target}/{name}/setup")
async def setup(request: Direct, target: Target, name: ModelName) -> SetupResponse:
    """Check that the labeling configuration of a project fits, and return the version that predicts."""
    body: SetupRequest = await _read(request, _SETUP.validate)
    state = request.state
    version, found = await service.load_for(
        state.catalog, state.loaded, *await _version_of(request, target, name)
    )
    await service.read_config(body.label_config, found, "/schema")
    return SetupResponse(model_version=service.version_name(version.model, version.version))


@router.get("/{target}/{name}/versions")
async def versions(request: Direct, target: Target, name: ModelName) -> Versions:
    """Return the version that predicts. Users select versions with aliases, not in Label Studio."""
    model, reference = await _version_of(request, target, name)
    version = await request.state.catalog.resolve(model, reference)
    return Versions(versions=[service.version_name(version.model, version.version)])


@router.post("/{target}/{name}/predict", response_model_exclude_none=True)
async def predict(request: Direct, target: Target, name: ModelName) -> LabelStudioPredictResponse:
    """Predict the choices of tasks."""
    settings = request.context.settings
    body: LabelStudioPredictRequest = await _read(
        request, lambda given: _PREDICT.validate_large(given, settings)
    )
    state = request.state
    if target == "models":
        n_bytes = request.head.content_length
        return await service.predict_with_model(
            state.catalog, state.loaded, name, body, settings, n_bytes=n_bytes
        )
    return await service.predict_with_router(
        state.catalog, state.loaded, state.message_router, name, body, settings
    )


@router.post("/{target}/{name}/webhook", response_model_exclude_none=True)
async def webhook(request: Direct, target: Target, name: ModelName) -> WebhookReceipt:
    """Record the annotations of an event as feedback on the decisions of a router.

    Label Studio sends all its events here, and most of them are of no use.
    """
    event = await _read(request, _annotation_event)
    if event is None:
        return WebhookReceipt(status="ignored", reason="the event contains no annotation")
    if target == "models":
        await _version_of(request, target, name)
        reason = "a model has no decisions that feedback belongs to; connect a router to collect feedback"
        return WebhookReceipt(status="ignored", reason=reason)
    state = request.state
    ids = await service.record_feedback(
        request.context,
        state.catalog,
        state.loaded,
        state.message_router,
        name,
        event,
        caller_of(request.scope),
    )
    if not ids:
        return WebhookReceipt(status="ignored", reason="the annotators have skipped the tasks or the choice")
    return WebhookReceipt(status="recorded", decision_ids=ids)


def _annotation_event(given: Any) -> AnnotationEvent | None:
    """Return the event; None if it contains no annotations.

    Raises:
        Invalid: it asks for something that the backend does not do.
    """
    action = given.get("action") if isinstance(given, dict) else None
    if not isinstance(action, str):
        message = "must be the name of an event"
        raise Invalid(f"/action: {message}", errors=[("/action", message)])
    if action == "START_TRAINING":
        message = (
            "Label Studio cannot start a training; create a data set from the feedback of the router, and "
            "train a version with POST /v1/training-jobs"
        )
        raise Invalid(f"/action: {message}", errors=[("/action", message)])
    if action not in _ANNOTATED:
        return None
    event: AnnotationEvent = _EVENT.validate(given)
    return event


async def _version_of(request: DirectRequest, target: str, name: str) -> tuple[str, int | str]:
    """Return the model of a target, and the number or alias of the version that predicts.

    Raises:
        NotFound: there is no such router, model or version.
    """
    catalog = request.state.catalog
    if target == "routers":
        return await service.find_router_version(catalog, name)
    await catalog.resolve(name, "live")
    return name, "live"


async def _read(request: DirectRequest, validate: Callable[[Any], Body]) -> Body:
    """Read a JSON body; a large one in a thread."""
    refuse_encoding(request.head)
    check_media_type(request.head, {"application/json"})
    body = await request.body()
    if not body:
        raise missing_body()

    max_entries = max(MAX_VALUES, request.context.settings.max_labels)

    def read() -> Body:
        given = parse(
            body, replace_surrogates=True, documents=_DOCUMENTS, parts=None, max_entries=max_entries
        )
        return validate(given)

    return await PREDICTIONS.run(read) if len(body) > LARGE_BYTES else read()
