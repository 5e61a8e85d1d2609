"""MLServer around a scorer: a text in, the ranking out, in the V2 inference protocol."""

from __future__ import annotations

from pathlib import Path

from mlserver import MLModel
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput

from benchmarks.serving.peers.one_vs_rest import OneVsRest
from benchmarks.serving.peers.scorer import Scorer


class PlainScorer(MLModel):  # type: ignore[misc]
    """The plain scorer."""

    async def load(self) -> bool:
        """Load the weights."""
        self._scorer = Scorer(Path(self.settings.parameters.uri))
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Rank the labels of one text."""
        return _response(self.name, *self._scorer.rank(payload.inputs[0].data[0]))


class SklearnPipeline(MLModel):  # type: ignore[misc]
    """scikit-learn's one-vs-rest pipeline."""

    async def load(self) -> bool:
        """Train the pipeline."""
        self._scorer = OneVsRest(Path(self.settings.parameters.uri))
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Rank the labels of one text."""
        return _response(self.name, *self._scorer.rank(payload.inputs[0].data[0]))


def _response(model: str, labels: list[str], scores: list[float]) -> InferenceResponse:
    return InferenceResponse(
        model_name=model,
        outputs=[
            ResponseOutput(name="labels", shape=[len(labels)], datatype="BYTES", data=labels),
            ResponseOutput(name="scores", shape=[len(scores)], datatype="FP64", data=scores),
        ],
    )
