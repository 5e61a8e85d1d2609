"""HTTP route of predictions."""

from __future__ import annotations

from app.http.base_route import Context, PredictScope, resource, responses
from app.http.schemas import ModelName
from app.serving import prediction
from app.serving.dependencies import Loaded
from app.serving.schemas import PredictRequest, PredictResponse

router = resource("models")


@router.post(
    "/models/{name}/predict",
    dependencies=[PredictScope],
    responses=responses(404),
    response_description="The predictions, in the order of the instances.",
)
def predict(ctx: Context, loaded: Loaded, name: ModelName, body: PredictRequest) -> PredictResponse:
    """Predict label sets and rankings of documents with a version of a model.

    Settings limit the number of instances (`COVEY_MAX_INSTANCES`), the length of a text
    (`COVEY_MAX_TEXT_CHARS`) and the number of labels in the response (`COVEY_MAX_PREDICTED_LABELS`).
    """
    return prediction.predict(ctx, loaded, name, body)
