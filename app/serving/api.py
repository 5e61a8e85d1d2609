"""HTTP route of predictions."""

from __future__ import annotations

from app.http.base_route import Context, PredictScope, resource, responses
from app.http.schemas import ModelName
from app.serving import prediction
from app.serving.dependencies import Loaded
from app.serving.schemas import PredictRequest, PredictResponse

router = resource("models")


@router.post("/models/{name}/predict", dependencies=[PredictScope], responses=responses(404))
def predict(ctx: Context, loaded: Loaded, name: ModelName, body: PredictRequest) -> PredictResponse:
    """Predict label sets and rankings for up to some hundred documents with one version."""
    return prediction.predict(ctx, loaded, name, body)
