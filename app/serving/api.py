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

    The maximum number of instances in a request is a setting, `COVEY_MAX_INSTANCES`.
    """
    return prediction.predict(ctx, loaded, name, body)
