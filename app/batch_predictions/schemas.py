"""Request and response schemas of batch predictions."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from fastapi import Path
from pydantic import ConfigDict, Field
from typing_extensions import TypeAliasType

from app.api.errors import Problem
from app.api.schemas import Count, Name, NextCursor, RequestModel, ResponseModel, Timestamp, VersionRef
from app.jobs.schemas import JobPriority, JobState, Progress
from app.serving.schemas import UnknownFeatures

MAX_RANKED_LABELS = 200_000_000
"""Maximum number of labels in all rankings of a batch prediction (documents times ``top``, or times the
labels of the version), and in all its label sets. A ranked label takes about 50 bytes as NDJSON."""

BatchPredictionId: TypeAlias = Annotated[str, Path(description="Id of the batch prediction.")]
ResultFormat = TypeAliasType(
    "ResultFormat",
    Annotated[
        Literal["ndjson", "parquet"],
        Field(description="Format of a result: `ndjson` (one JSON object per line) or `parquet`."),
    ],
)


class BatchPredictionCreate(RequestModel):
    """Predictions to compute: the version that predicts, and the data set with the documents."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "helpdesk",
                    "version": "live",
                    "dataset_id": "ds_01k5a2b3c4d5e6f7g8h9jkmnpq",
                    "top": 5,
                    "format": "ndjson",
                },
                {
                    "model": "helpdesk",
                    "version": 3,
                    "dataset_id": "ds_01k5a2b3c4d5e6f7g8h9jkmnpq",
                    "format": "parquet",
                },
            ]
        }
    )

    model: Name
    """Name of the model."""
    version: VersionRef = "live"
    """The number or an alias of the version that predicts. An alias is resolved when the batch prediction is
    created."""
    dataset_id: str
    """Id of a data set in the state `ready`, whose documents fit the version. Its labels, if it has any, do
    not matter."""
    top: Count | None = None
    """Maximum number of labels in each ranking. By default every label is ranked. Required if the rankings of
    all documents would otherwise have more than 200 million labels."""
    format: ResultFormat = "ndjson"
    """Format of the result."""
    priority: JobPriority = 0
    """Priority among the batch predictions and evaluations that wait for a worker."""


class BatchPredictionResult(ResponseModel):
    """The file of a batch prediction."""

    documents: int
    """Number of documents, which is the number of lines or rows."""
    failed_documents: int
    """Number of documents that have an error in place of a prediction."""
    sha256: str
    """SHA-256 digest of the file, hexadecimal."""
    size_bytes: int
    """Size of the file."""
    unknown_features: UnknownFeatures | None = None
    """Features of the data set that the version does not know. Absent if it knows all of them."""


class BatchPrediction(ResponseModel):
    """The predictions of a version for all examples of a data set."""

    id: str
    """Id of the batch prediction; begins with `bp_`."""
    model: str
    """Name of the model."""
    version: int
    """Number of the version that predicts."""
    dataset_id: str
    """Id of the data set, even if it was deleted."""
    top: int | None = None
    """Maximum number of labels in each ranking; omitted if every label is ranked."""
    format: ResultFormat
    """Format of the result."""
    state: JobState
    """State of the batch prediction. `succeeded`, `failed` and `cancelled` are final."""
    priority: JobPriority
    """Priority among the batch predictions and evaluations that wait for a worker."""
    progress: Progress | None = None
    """Progress; set once it has started."""
    attempt: int
    """Number of times the job was started. More than 1 if a worker was lost or stopped."""
    created_at: Timestamp
    """When the batch prediction was created."""
    started_at: Timestamp | None = None
    """When it was first started."""
    finished_at: Timestamp | None = None
    """When it ended."""
    cancel_requested_at: Timestamp | None = None
    """When cancellation was requested."""
    error: Problem | None = None
    """Why it failed."""
    result: BatchPredictionResult | None = None
    """The file with the predictions; set once it has succeeded. Download it from `…/result`."""


class BatchPredictionPage(ResponseModel):
    """A page of batch predictions, newest first."""

    items: list[BatchPrediction]
    """The batch predictions."""
    next_cursor: NextCursor = None
