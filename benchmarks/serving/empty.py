"""The yardstick: an endpoint that validates the body of a prediction, and does nothing else.

Run it with ``uvicorn benchmarks.serving.empty:app``.
"""

from __future__ import annotations

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict


class Instance(BaseModel):
    """A document."""

    model_config = ConfigDict(extra="forbid")

    text: str


class EmptyRequest(BaseModel):
    """The body of a prediction."""

    model_config = ConfigDict(extra="forbid")

    instances: list[Instance]
    top: int | None = None


class EmptyResponse(BaseModel):
    """A small object."""

    version: int
    labels: list[str]


app = FastAPI()


@app.post("/predict")
async def predict(body: EmptyRequest) -> EmptyResponse:
    """Return a constant."""
    return EmptyResponse(version=len(body.instances), labels=["earn"])
