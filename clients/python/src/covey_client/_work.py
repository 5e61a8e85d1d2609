"""What can be waited for, and the paths of resources in the API."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote

from covey_client.errors import DatasetFailed, WorkCancelled, WorkFailed
from covey_client.generated.models import (
    Alias,
    BatchPrediction,
    Dataset,
    Decision,
    Evaluation,
    Experiment,
    Model,
    ModelVersion,
    RecordedDecision,
    Router,
    TrainingJob,
)
from covey_client.progress import Progress

AnyWork = Dataset | TrainingJob | Experiment | Evaluation | BatchPrediction
Work = TypeVar("Work", bound=AnyWork)
Cancellable = TypeVar("Cancellable", bound=TrainingJob | Experiment | BatchPrediction)


Deletable = Dataset | Model | ModelVersion | Alias | Router | Decision | RecordedDecision
"""What can be deleted."""


def path_of(resource: AnyWork | Deletable) -> str:
    """Return the path of a resource in the API."""
    match resource:
        case Evaluation(model=model, version=version, id=id_):
            return f"/v1/models/{_quoted(model)}/versions/{version}/evaluations/{id_}"
        case ModelVersion(model=model, version=version):
            return f"/v1/models/{_quoted(model)}/versions/{version}"
        case Alias(model=model, alias=alias):
            return f"/v1/models/{_quoted(model)}/aliases/{_quoted(alias)}"
        case Model(name=name):
            return f"/v1/models/{_quoted(name)}"
        case Router(name=name):
            return f"/v1/routers/{_quoted(name)}"
        case Decision(decision_id=id_) | RecordedDecision(decision_id=id_):
            return f"/v1/decisions/{id_}"
    folders = {
        Dataset: "datasets",
        TrainingJob: "training-jobs",
        Experiment: "experiments",
        BatchPrediction: "batch-predictions",
    }
    return f"/v1/{folders[type(resource)]}/{resource.id}"


def _quoted(name: str) -> str:
    return quote(name, safe="")


def has_ended(work: AnyWork) -> bool:
    """Whether the state does not change any more by itself."""
    return work.state not in ("ingesting", "queued", "running")


def check(work: AnyWork) -> None:
    """Check the end of the work.

    Raises:
        WorkFailed: it failed.
        WorkCancelled: it was cancelled.
    """
    if work.state == "failed":
        raise (DatasetFailed if isinstance(work, Dataset) else WorkFailed)(work, work.error)
    if work.state == "cancelled":
        raise WorkCancelled(work)


def progress_of(work: AnyWork) -> Progress:
    """Return how far the work is."""
    if isinstance(work, Experiment):
        counts = work.counts.to_dict()
        completed = sum(counts.get(state, 0) for state in ("succeeded", "failed", "cancelled"))
        return Progress(work.state, completed, sum(counts.values()), "cells")
    if (
        isinstance(work, TrainingJob | BatchPrediction)
        and work.progress is not None
        and not has_ended(work)  # its last state is that before the end
    ):
        progress = work.progress
        return Progress(progress.phase, progress.completed, progress.total, progress.unit)
    return Progress(work.state, int(has_ended(work)), 1, "steps")
