"""HTTP routes of the Open Inference Protocol, version 2.

They are not in the OpenAPI document, because the protocol has a document and clients of its own. Their errors
have the format of the protocol, see ``app.api.protocol_errors``.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from app.api.base_route import Context, PredictScope
from app.api.direct_routes import Direct, JsonResponse
from app.api.request_head import refuse_encoding
from app.api.schemas import ModelName
from app.api.validation import LARGE_BYTES
from app.health.service import require_ready
from app.protocols.open_inference import service
from app.protocols.open_inference.schemas import (
    ModelMetadata,
    ModelReady,
    ServerLive,
    ServerMetadata,
    ServerReady,
)
from app.protocols.open_inference.tensors import HEADER_LENGTH, read_request
from app.serving.version_loading import load_version
from app.threads import PREDICTIONS, REQUESTS
from app.version import __version__

router = APIRouter(
    prefix="/v2",
    include_in_schema=False,
    generate_unique_id_function=lambda route: f"open_inference_{route.name}",
)

EXTENSIONS = ["binary_tensor_data"]


def _version(request: Request) -> int | str:
    """Return the number or the alias in the path; without it, the alias that is served by default."""
    version: str = request.path_params.get("version", "live")
    return int(version) if version.isdecimal() and version.isascii() and len(version) < 10 else version


Version = Annotated[int | str, Depends(_version)]


@router.get("")
def describe_server() -> ServerMetadata:
    """Describe the service."""
    return ServerMetadata(name="covey", version=__version__, extensions=EXTENSIONS)


@router.get("/health/live")
def live() -> ServerLive:
    """Check that the process responds."""
    return ServerLive(live=True)


@router.get("/health/ready")
def ready(ctx: Context, request: Request) -> ServerReady:
    """Check that the service is ready, as ``/health/ready`` does."""
    require_ready(ctx, draining=request.app.state.draining)
    return ServerReady(live=True, ready=True)


@router.get(
    "/models/{name}/versions/{version}", dependencies=[PredictScope], response_model_exclude_none=True
)
@router.get("/models/{name}", dependencies=[PredictScope], response_model_exclude_none=True)
async def describe_model(ctx: Context, request: Direct, name: ModelName, version: Version) -> ModelMetadata:
    """Describe a version of a model."""
    state = request.state
    served, found = await load_version(state.catalog, state.loaded, name, version)
    return await REQUESTS.run(service.describe, ctx.db, served, found)


@router.get("/models/{name}/versions/{version}/ready", dependencies=[PredictScope])
@router.get("/models/{name}/ready", dependencies=[PredictScope])
async def model_ready(request: Direct, name: ModelName, version: Version) -> ModelReady:
    """Check that a version can predict; load it, if it is not in memory."""
    state = request.state
    await load_version(state.catalog, state.loaded, name, version)
    return ModelReady(name=name, ready=True)


@router.post("/models/{name}/versions/{version}/infer", dependencies=[PredictScope])
@router.post("/models/{name}/infer", dependencies=[PredictScope])
async def infer(request: Direct, name: ModelName, version: Version) -> Response:
    """Predict label sets and rankings of documents with a version of a model."""
    refuse_encoding(request.head)
    body = await request.body()
    header_length = request.head.get(HEADER_LENGTH.lower().encode())
    if len(body) > LARGE_BYTES:
        inference, tensors = await PREDICTIONS.run(lambda: read_request(body, header_length))
    else:
        inference, tensors = read_request(body, header_length)
    state = request.state
    response = await service.infer(
        state.catalog,
        state.loaded,
        name,
        version,
        inference,
        tensors,
        request.context.settings,
        n_bytes=len(body),
    )
    if response.json_length is None:
        return JsonResponse(response.body)
    return Response(
        response.body,
        headers={HEADER_LENGTH: str(response.json_length)},
        media_type="application/octet-stream",
    )
