"""The worker's part of a training job: trains, evaluates, saves and publishes a model version."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from app.context import AppContext
from app.db import tables
from app.db.session import Transaction
from app.db.tables import Job
from app.evaluations.evaluate import evaluate_part
from app.jobs import memory, queue
from app.jobs.checkpoints import Checkpoint, Checkpoints
from app.jobs.progress import ProgressReporter
from app.jobs.queue import Claim
from app.jobs.retry import write_with_retry
from app.registry import publishing
from app.registry.publishing import NewVersion
from app.training.schemas import GivenSplit, RandomSplit, TrainingJobCreate
from models import artifact
from models.data.store import StoredExamples
from models.errors import SnapshotError, UnsuitableDataError
from models.labels import LabelTree
from models.pipeline import Pipeline, Progress


class TrainModel:
    """The job kind ``train``."""

    def run(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        """Trains, evaluates, saves, and publishes the version.

        Raises:
            UnsuitableDataError: the data set cannot be split, the learner cannot learn from it, or the saved
                model cannot be loaded.
        """
        request = TrainingJobCreate.model_validate(claim.spec)
        with ctx.db.read() as session:
            dataset = session.get_one(tables.Dataset, claim.dataset_id)
        assert dataset.storage_key is not None, "a ready data set has its file"  # noqa: S101
        stored = StoredExamples(ctx.storage.local(dataset.storage_key))
        training_part, test_part = split_examples(stored, request)
        tree = LabelTree(dataset.label_tree) if dataset.label_tree else None
        checkpoints = Checkpoints(ctx, claim, report)
        checkpoint = checkpoints.load()
        limit = memory.available_to_training(ctx.settings)
        try:
            pipeline, timings = fit(request, training_part, tree, report, checkpoints, checkpoint, limit)
        except SnapshotError as error:
            checkpoints.ignore(str(error))
            pipeline, timings = fit(request, training_part, tree, report, checkpoints, None, limit)
        fitted = time.perf_counter()
        warnings = list(pipeline.summary_.warnings)
        metrics: dict[str, dict[str, float]] = {}
        evaluations: dict[str, dict[str, Any]] = {}
        for completed, (name, part) in enumerate([("train", training_part), ("test", test_part)]):
            report("evaluating", completed, 2, "parts")
            if part is not None:
                evaluation, evaluations[name] = evaluate_part(pipeline, part)
                metrics[name] = evaluation.measures
                warnings += [f"{name} part: {warning}" for warning in evaluation.warnings]
        evaluated = time.perf_counter()
        report("saving", 0, 1, "files")
        with ctx.storage.temporary_file(".covey") as path:
            extra = {"metrics": metrics, "dataset_sha256": dataset.sha256}
            artifact.save(pipeline, path, extra=extra)
            artifact.check_saved(path, pipeline, training_part)
            stored_artifact = ctx.storage.put(f"artifacts/{claim.job_id}.{claim.fence}.covey", path)
        version = NewVersion(
            model=request.model,
            pipeline=pipeline,
            artifact=stored_artifact,
            metrics=metrics,
            warnings=warnings,
            dataset_id=dataset.id,
            dataset_sha256=dataset.sha256,
            training_job_id=claim.job_id,
            evaluation=evaluations,
            timings={**timings, "evaluation_seconds": evaluated - fitted},
        )

        def finish(tx: Transaction) -> None:
            number = publishing.publish(tx, replace(version, warnings=list(warnings)), request.promote)
            result = {"model": request.model, "version": number, "metrics": metrics}
            queue.finish(tx, claim, "succeeded", result=result, curve=report.unwritten_curve)

        write_with_retry(ctx.db, finish)

    def on_failure(self, tx: Transaction, job: Job | Claim, error: dict[str, Any]) -> None:
        """Change nothing: the job has created no version, and has not changed the data set."""


def fit(
    request: TrainingJobCreate,
    source: StoredExamples,
    tree: LabelTree | None,
    report: ProgressReporter,
    checkpoints: Checkpoints,
    checkpoint: Checkpoint | None,
    memory_bytes: int | None,
) -> tuple[Pipeline, dict[str, float]]:
    """Fits the pipeline of a request, from the beginning or from a checkpoint.

    Args:
        request: a request with its defaults filled in.
        source: the training part.
        tree: the label tree, if the data set has one.
        report: receives the progress of every step.
        checkpoints: receives a snapshot of every step and saves some of them.
        checkpoint: the checkpoint to resume from, if there is one.
        memory_bytes: limit of the memory of the training; None if there is none.

    Returns:
        the pipeline, and the seconds spent on each phase: in earlier attempts up to the checkpoint, and in
        this attempt. Work that was lost after the checkpoint does not count.

    Raises:
        SnapshotError: the checkpoint belongs to another training.
    """
    assert request.features is not None, "defaults are filled in"  # noqa: S101
    pipeline = Pipeline.from_parameters(
        request.features, request.learner, request.decision, seed=request.seed
    )
    earlier = checkpoint.seconds if checkpoint is not None else {}
    clock = time.perf_counter()

    def seconds(phase: str) -> dict[str, float]:
        """Return the seconds spent so far on each phase except features, which every attempt recomputes."""
        done: dict[str, float] = {name: s for name, s in pipeline.timings_.items() if name != phase}
        done[phase] = time.perf_counter() - clock - sum(done.values())
        done.pop("features", None)
        return {name: earlier.get(name, 0.0) + done.get(name, 0.0) for name in {*earlier, *done}}

    def monitor(progress: Progress, /) -> None:
        phase = progress.phase
        measures = dict(progress.measures) if phase == "training" else None
        report(phase, progress.completed, progress.total, progress.unit, measures)
        if phase != "features":
            checkpoints.offer(phase, progress.completed, progress.snapshot, partial(seconds, phase))

    pipeline.fit(
        source,
        tree=tree,
        monitor=monitor,
        resume=checkpoint.state if checkpoint is not None else None,
        memory_bytes=memory_bytes,
    )
    timings: dict[str, float] = {
        f"{phase}_seconds": taken + earlier.get(phase, 0.0) for phase, taken in pipeline.timings_.items()
    }
    return pipeline, {**timings, "fit_seconds": time.perf_counter() - clock + sum(earlier.values())}


def split_examples(
    stored: StoredExamples, request: TrainingJobCreate
) -> tuple[StoredExamples, StoredExamples | None]:
    """Return the training part, and the held-out part if there is one.

    Raises:
        UnsuitableDataError: a part of a random split is empty.
    """
    split = request.split
    if isinstance(split, GivenSplit):
        splits = stored.splits()
        # An example without a split belongs to neither part.
        training = np.array([name == "train" for name in splits], dtype=np.bool_)
        test = np.array([name == "test" for name in splits], dtype=np.bool_)
    elif isinstance(split, RandomSplit):
        n_test = round(stored.n_examples * split.test_fraction)
        if n_test in (0, stored.n_examples):
            message = f"a test fraction of {split.test_fraction} leaves no examples in one part"
            raise UnsuitableDataError(f"{message}; the data set has {stored.n_examples}")
        test = np.zeros(stored.n_examples, dtype=np.bool_)
        test[np.random.default_rng(request.seed).permutation(stored.n_examples)[:n_test]] = True
        training = ~test
    else:
        return stored, None
    return stored.where(training), stored.where(test) if test.any() else None
