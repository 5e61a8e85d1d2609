"""HTTP route of predictions."""

from __future__ import annotations

from fastapi import Response

from app.api.base_route import PredictScope, json_body, resource, responses
from app.api.direct_routes import Direct, JsonResponse, direct_post
from app.api.request_head import refuse_encoding
from app.api.schemas import ModelName
from app.api.validation import LARGE_BYTES, BodyValidator, missing_body
from app.serving import prediction
from app.serving.schemas import PredictRequest, PredictResponse
from app.threads import PREDICTIONS

router = resource("models")

_BODY = BodyValidator(PredictRequest)


@direct_post(
    router,
    "/models/{name}/predict",
    dependencies=[PredictScope],
    response_model=PredictResponse,
    responses=responses(404),
    response_description="The predictions, in the order of the instances.",
    openapi_extra=json_body(PredictRequest),
)
async def predict(request: Direct, name: ModelName) -> Response:
    """Predict label sets and rankings of documents with a version of a model.

    Settings limit the number of instances (`COVEY_MAX_INSTANCES`) and the length of a text
    (`COVEY_MAX_TEXT_CHARS`). A response has at most 100,000 labels.
    """
    refuse_encoding(request.head)
    raw = await request.body()
    if not raw:
        raise missing_body()
    settings, n_bytes = request.context.settings, len(raw)
    if n_bytes > LARGE_BYTES:
        body = await PREDICTIONS.run(lambda: _BODY.read_now(raw, settings))
    else:
        body = _BODY.read_now(raw, settings)
    state = request.state
    return JsonResponse(
        await prediction.predict(state.catalog, state.loaded, name, body, settings, n_bytes=n_bytes)
    )
