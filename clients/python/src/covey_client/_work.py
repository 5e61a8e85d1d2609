"""What can be waited for: data sets, training jobs, experiments, evaluations and batch predictions."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote

from covey_client.errors import DatasetFailed, WorkCancelled, WorkFailed
from covey_client.generated.models import BatchPrediction, Dataset, Evaluation, Experiment, TrainingJob
from covey_client.generated.types import Unset
from covey_client.progress import Progress

AnyWork = Dataset | TrainingJob | Experiment | Evaluation | BatchPrediction
Work = TypeVar("Work", bound=AnyWork)
Cancellable = TypeVar("Cancellable", bound=TrainingJob | Experiment | BatchPrediction)


def path_of(work: AnyWork) -> str:
    """Return the path of the work in the API."""
    if isinstance(work, Evaluation):
        return f"/v1/models/{quote(work.model, safe='')}/versions/{work.version}/evaluations/{work.id}"
    folders = {
        Dataset: "datasets",
        TrainingJob: "training-jobs",
        Experiment: "experiments",
        BatchPrediction: "batch-predictions",
    }
    return f"/v1/{folders[type(work)]}/{work.id}"


def has_ended(work: AnyWork) -> bool:
    """Whether the state does not change any more by itself."""
    return work.state.value not in ("ingesting", "queued", "running")


def check(work: AnyWork) -> None:
    """Check the end of the work.

    Raises:
        WorkFailed: it failed.
        WorkCancelled: it was cancelled.
    """
    state = work.state.value
    if state == "failed":
        raise (DatasetFailed if isinstance(work, Dataset) else WorkFailed)(work, work.error)
    if state == "cancelled":
        raise WorkCancelled(work)


def progress_of(work: AnyWork) -> Progress:
    """Return how far the work is."""
    if isinstance(work, Experiment):
        counts = work.counts.to_dict()
        completed = sum(counts.get(state, 0) for state in ("succeeded", "failed", "cancelled"))
        return Progress(work.state.value, completed, sum(counts.values()), "cells")
    if (
        isinstance(work, TrainingJob | BatchPrediction)
        and not isinstance(work.progress, Unset)
        and not has_ended(work)  # its last state is that before the end
    ):
        progress = work.progress
        total = None if isinstance(progress.total, Unset) else progress.total
        return Progress(progress.phase, progress.completed, total, progress.unit)
    return Progress(work.state.value, int(has_ended(work)), 1, "steps")
