"""The worker's part of a training job: trains, evaluates, saves and publishes a model version."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import select

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
from app.jobs.work import Work
from app.registry import publishing
from app.registry.publishing import NewVersion, Verdict, VerdictOutdatedError
from app.registry.schemas import PromoteIfBetter, PromotionRule
from app.training.comparison import compare_with_live
from app.training.schemas import RandomSplit, TrainingJobCreate
from app.training.splitting import Parts, duplicate_warnings, split_examples
from models import artifact
from models.data.store import StoredExamples
from models.decisions import needs_held_out
from models.errors import SnapshotError
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels
from models.pipeline import Pipeline, Progress, TrainingSet


class TrainModel(Work):
    """The job kind ``train``."""

    def run(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        """Train, evaluate, save, and publish the version.

        Raises:
            UnsuitableDataError: the data set cannot be split, the learner cannot learn from it, or the saved
                model cannot be loaded.
        """
        request = TrainingJobCreate.model_validate(claim.spec)
        with ctx.db.read() as session:
            dataset = session.get_one(tables.Dataset, claim.dataset_id)
            key_id = session.scalar(select(Job.key_id).where(Job.id == claim.job_id))
        assert dataset.storage_key is not None, "a ready data set has its file"  # noqa: S101
        stored = StoredExamples(ctx.storage.local(dataset.storage_key))
        tree = LabelTree(dataset.label_tree) if dataset.label_tree else None
        parts = split_examples(stored, request, tree)
        warnings = duplicate_warnings(stored, parts, drawn=isinstance(request.split, RandomSplit))
        report.plan(_phases(request, parts))
        checkpoints = Checkpoints(ctx, claim, report)
        checkpoint = checkpoints.load()
        memory.check_training(ctx.settings, parts.training.n_examples, _count_labels(request, parts, tree))
        n_jobs = ctx.settings.job_threads
        try:
            pipeline, timings = fit(request, parts, tree, report, checkpoints, checkpoint, n_jobs)
        except SnapshotError as error:
            checkpoints.ignore(str(error))
            pipeline, timings = fit(request, parts, tree, report, checkpoints, None, n_jobs)
        fitted = time.perf_counter()
        warnings += pipeline.summary_.warnings
        metrics: dict[str, dict[str, float]] = {}
        evaluations: dict[str, dict[str, Any]] = {}
        n_evaluated = 0
        n_examples = parts.training.n_examples + (0 if parts.test is None else parts.test.n_examples)
        for name, part in [("train", parts.training), ("test", parts.test)]:
            if part is not None:
                on_batch = partial(_report_scored, report, n_evaluated, n_examples)
                evaluation, evaluations[name] = evaluate_part(
                    pipeline, part, covering=request.covering, on_batch=on_batch
                )
                n_evaluated += part.n_examples
                metrics[name] = evaluation.measures
                warnings += [f"{name} part: {warning}" for warning in evaluation.warnings]
        evaluated = time.perf_counter()
        report("saving", 0, 1, "files")
        with ctx.storage.temporary_file(".covey") as path:
            extra = {"metrics": metrics, "dataset_sha256": dataset.sha256}
            artifact.save(pipeline, path, extra=extra)
            artifact.check_saved(path, pipeline, parts.training)
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
            key_id=key_id,
            timings={**timings, "evaluation_seconds": evaluated - fitted},
        )

        def finish(tx: Transaction, promote: PromotionRule | Verdict) -> None:
            published = publishing.publish(tx, replace(version, warnings=list(warnings)), promote)
            result = {
                "model": request.model,
                "version": published.version,
                "metrics": metrics,
                "promotion": published.promotion.model_dump(mode="json", exclude_none=True),
            }
            queue.finish(tx, claim, "succeeded", result=result, curve=report.unwritten_curve)

        while True:
            promote: PromotionRule | Verdict
            if isinstance(request.promote, PromoteIfBetter):
                report("comparing", 0, 1, "versions")
                promote = compare_with_live(ctx, request, request.promote.if_better, pipeline, parts.test)
            else:
                promote = request.promote
            try:
                write_with_retry(ctx.db, partial(finish, promote=promote))
            except VerdictOutdatedError:
                continue  # compare with the version that is live now, and count the comparisons again
            return


def _report_scored(report: ProgressReporter, n_before: int, n_examples: int, n_scored: int) -> None:
    report("evaluating", n_before + n_scored, n_examples, "examples")


PHASE_WEIGHTS: Mapping[str, float] = {
    "features/candidates": 6,
    "features": 2,
    "training": 3,
    "thresholds": 5,
    "evaluating": 2,
    "saving": 1,
    "comparing": 1,
}
"""About how long each phase takes in relation to the others, in their order, as measured with ``svm``."""


def _phases(request: TrainingJobCreate, parts: Parts) -> dict[str, float]:
    """Return the weights of the phases that a training has."""
    assert request.features is not None, "defaults are filled in"  # noqa: S101
    assert request.decision is not None, "defaults are filled in"  # noqa: S101
    absent = {
        "features/candidates": request.features.kind != "auto",
        "thresholds": not needs_held_out(request.decision) or parts.validation is not None,
        "comparing": not isinstance(request.promote, PromoteIfBetter),
    }
    return {name: weight for name, weight in PHASE_WEIGHTS.items() if not absent.get(name)}


def _count_labels(request: TrainingJobCreate, parts: Parts, tree: LabelTree | None) -> int:
    kept = parts.training.labels if request.keep_labels == "all" else ()
    return len(collect_labels(parts.training.label_sets(), tree, kept=kept))


def fit(
    request: TrainingJobCreate,
    parts: Parts,
    tree: LabelTree | None,
    report: ProgressReporter,
    checkpoints: Checkpoints,
    checkpoint: Checkpoint | None,
    n_jobs: int = 1,
) -> tuple[Pipeline, dict[str, float]]:
    """Fit the pipeline of a request, from the beginning or from a checkpoint.

    Args:
        request: a request with its defaults filled in.
        parts: the parts of the data set.
        tree: the label tree, if the data set has one.
        report: receives the progress of every step.
        checkpoints: receives a snapshot of every step and saves some of them.
        checkpoint: the checkpoint to resume from, if there is one.
        n_jobs: number of threads that the learner may use.

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

    kept_labels = parts.training.labels if request.keep_labels == "all" else ()
    pipeline.fit_training(
        TrainingSet(parts.training, parts.validation, tree, kept_labels),
        monitor=monitor,
        resume=checkpoint.state if checkpoint is not None else None,
        n_jobs=n_jobs,
    )
    timings: dict[str, float] = {
        f"{phase}_seconds": taken + earlier.get(phase, 0.0) for phase, taken in pipeline.timings_.items()
    }
    return pipeline, {**timings, "fit_seconds": time.perf_counter() - clock + sum(earlier.values())}
