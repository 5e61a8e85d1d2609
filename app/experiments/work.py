"""The worker's part of experiments: plans an experiment, and runs one configuration on one fold."""

from __future__ import annotations

from typing import Any

import structlog

from app.context import AppContext
from app.db import tables
from app.db.session import Transaction
from app.db.tables import Job
from app.experiments import cell_files, completion, shared_files
from app.experiments.errors import limits_of_cell
from app.experiments.folds import assign_folds, held_out_folds
from app.experiments.measures import measures_of
from app.experiments.schemas import (
    MAX_CELL_STEPS,
    MAX_EXPERIMENT_STEPS,
    ExperimentConfiguration,
    ExperimentCreate,
)
from app.jobs import memory, queue
from app.jobs.checkpoints import Checkpoint, Checkpoints
from app.jobs.progress import ProgressReporter
from app.jobs.queue import Claim
from app.jobs.retry import write_with_retry
from app.jobs.work import Work
from models import catalog
from models.catalog import FeaturesConfig
from models.data.examples import ExampleSource
from models.data.store import StoredExamples
from models.errors import SnapshotError, UnsuitableDataError
from models.features.auto import N_CANDIDATES, AutoFeaturesParameters
from models.labels import LabelTree
from models.pipeline import Pipeline, TrainingSet
from models.pipeline.feature_choice import FeatureChooser
from models.trials import Measured, PrecomputedFeatures, TrialResult, TrialStep, run_trial

log = structlog.get_logger()


class PlanExperiment(Work):
    """The job kind ``experiment``: assigns examples to folds and queues the cells."""

    def run(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        """Compute the folds once, and queue every cell in the transaction that ends this job.

        Raises:
            UnsuitableDataError: a fold has an empty part.
        """
        experiment, stored, tree = _load(ctx, claim)
        request = ExperimentCreate.model_validate(experiment.request)
        report("splitting", 0, 1, "splits")
        folds = assign_folds(request, stored, tree)
        for fold in held_out_folds(request):
            if not folds.training(fold).any() or not folds.test(fold).any():
                raise UnsuitableDataError(f"fold {fold} has no training or no test examples; use fewer folds")
        shared_files.save_folds(ctx, experiment.id, folds)

        def finish(tx: Transaction) -> None:
            queue.finish(tx, claim, "succeeded")
            row = completion.lock(tx, experiment.id)
            if row.cancel_requested_at is None:
                _queue_cells(tx, row, request)
            completion.finish_if_done(tx, row.id)

        write_with_retry(ctx.db, finish)

    def on_failure(self, tx: Transaction, job: Job | Claim, error: dict[str, Any]) -> None:  # noqa: ARG002
        """End the experiment, which has no cells."""
        completion.finish_if_done(tx, job.spec["experiment_id"])


class RunCell(Work):
    """The job kind ``cell``: trains and evaluates one configuration on one fold."""

    def run(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        """Train, evaluate, and end the experiment if this is its last cell to end."""
        experiment, stored, tree = _load(ctx, claim)
        request = ExperimentCreate.model_validate(experiment.request)
        fold = int(claim.spec["fold"])
        assert request.configurations is not None, "the grid is expanded"  # noqa: S101
        configuration = request.configurations[int(claim.spec["configuration"])]
        folds = shared_files.load_folds(ctx, experiment.id) or assign_folds(request, stored, tree)
        training = TrainingSet(
            stored.where(folds.training(fold)),
            stored.where(folds.validation()) if folds.validation().any() else None,
            tree,
            stored.labels if request.keep_labels == "all" else (),
        )
        test = stored.where(folds.test(fold))
        memory.check_training(ctx.settings, training.source.n_examples, len(training.labels))
        measures = measures_of(request)
        features, compared = _choose_features(configuration, training, request.seed, report)
        key = shared_files.features_key(experiment.id, features, fold)
        shared, computed = _features(ctx, key, features, training, test, report)
        earlier_seconds = 0.0

        def run(kept: Checkpoint | None) -> TrialResult:
            nonlocal earlier_seconds
            earlier_seconds = sum(kept.seconds.values()) if kept is not None else 0.0
            learner = catalog.create_learner(configuration.learner, seed=request.seed)
            return run_trial(
                Pipeline(shared.features(), learner, configuration.decision, seed=request.seed),
                shared,
                training,
                test,
                measured=Measured(
                    measures, request.coverings or {}, every_step_up_to(request), limits_of_cell(request)
                ),
                monitor=monitor,
                resume=kept.state if kept is not None else None,
                n_jobs=ctx.settings.job_threads,
            )

        def monitor(step: TrialStep, /) -> None:
            at = step.progress
            report(at.phase, at.completed, at.total, at.unit, step.curve or None)
            seconds = earlier_seconds + step.fit_seconds
            checkpoints.offer(at.phase, at.completed, at.snapshot, lambda: {"fit": seconds})

        checkpoints = Checkpoints(ctx, claim, report)
        try:
            trial = run(checkpoints.load())
        except SnapshotError as error:
            checkpoints.ignore(str(error))
            trial = run(None)
        report("saving", 0, 1, "files")
        examples_key = cell_files.save(ctx, experiment.id, claim, trial, measures, test)
        result = {
            "metrics": {"train": trial.train.measures, "test": trial.test.measures},
            "examples": examples_key,
            "facts": {**trial.pipeline.summary_.facts, **compared},
            "warnings": [*trial.pipeline.summary_.warnings, *trial.test.warnings],
            "features_computed": computed,
            "curve_unit": trial.curve_unit,
            "timings": {
                "features_seconds": shared.seconds,
                "fit_seconds": earlier_seconds + trial.fit_seconds,
                "score_seconds": trial.score_seconds,
            },
        }

        def finish(tx: Transaction) -> bool:
            queue.finish(tx, claim, "succeeded", result=result, curve=report.unwritten_curve)
            return completion.finish_if_done(tx, experiment.id)

        if write_with_retry(ctx.db, finish):
            shared_files.delete_all(ctx, experiment.id)

    def on_failure(self, tx: Transaction, job: Job | Claim, error: dict[str, Any]) -> None:  # noqa: ARG002
        """End the experiment if this is its last cell to end; other cells continue."""
        completion.finish_if_done(tx, job.spec["experiment_id"])


def every_step_up_to(request: ExperimentCreate) -> int:
    """Return the number of the first steps of a cell that are all measured.

    >>> from app.experiments.schemas import ExperimentConfiguration
    >>> bayes = ExperimentConfiguration.model_validate({"learner": {"algorithm": "naive_bayes"}})
    >>> split = {"kind": "folds", "folds": 20}
    >>> fields = {"dataset_id": "ds_1", "configurations": [bayes], "split": split}
    >>> [every_step_up_to(ExperimentCreate(**fields, steps=steps)) for steps in ("thinned", "all")]
    [1, 5000]
    """
    if request.steps == "thinned":
        return 1
    n_cells = len(request.configurations or []) * len(held_out_folds(request))
    return min(MAX_CELL_STEPS, MAX_EXPERIMENT_STEPS // n_cells)


def _load(ctx: AppContext, claim: Claim) -> tuple[tables.Experiment, StoredExamples, LabelTree | None]:
    with ctx.db.read() as session:
        experiment = session.get_one(tables.Experiment, claim.spec["experiment_id"])
        dataset = session.get_one(tables.Dataset, experiment.dataset_id)
    assert dataset.storage_key is not None, "a ready data set has its file"  # noqa: S101
    stored = StoredExamples(ctx.storage.local(dataset.storage_key))
    return experiment, stored, LabelTree(dataset.label_tree) if dataset.label_tree else None


def _queue_cells(tx: Transaction, experiment: tables.Experiment, request: ExperimentCreate) -> None:
    # All folds of a configuration come one after another, so that workers that start at the same moment
    # compute the features of different folds, and later cells find them in storage.
    plan = tx.session.get_one(tables.Job, experiment.job_id)
    places = [
        {"configuration": i, "fold": fold}
        for i in range(len(request.configurations or []))
        for fold in held_out_folds(request)
    ]
    jobs = queue.enqueue_all(
        tx,
        "cell",
        [{"experiment_id": experiment.id, **place} for place in places],
        dataset_id=experiment.dataset_id,
        priority=plan.priority,
        key_id=plan.key_id,
    )
    tx.session.add_all(
        tables.ExperimentCell(experiment_id=experiment.id, job_id=job.id, **place)
        for job, place in zip(jobs, places, strict=True)
    )
    tx.session.flush()


def _choose_features(
    configuration: ExperimentConfiguration, training: TrainingSet, seed: int, report: ProgressReporter
) -> tuple[FeaturesConfig, dict[str, Any]]:
    """Return the features of a cell, and facts about their choice: ``auto`` chooses as a training does."""
    features = configuration.features
    assert features is not None, "defaults are filled in"  # noqa: S101
    if not isinstance(features, AutoFeaturesParameters):
        return features, {}
    learner = catalog.create_learner(configuration.learner, seed=seed)

    def on_step(n_compared: int) -> None:
        report("features", n_compared, N_CANDIDATES, "candidates")

    chooser = FeatureChooser(learner, training.source, tree=training.tree, seed=seed, on_step=on_step)
    choice = chooser.choose(catalog.resolve_features(learner, None, training.source.kind))
    return choice.parameters, {"average_precision_of_features": choice.average_precision}


def _features(
    ctx: AppContext,
    key: str,
    parameters: FeaturesConfig,
    training: TrainingSet,
    test: ExampleSource,
    report: ProgressReporter,
) -> tuple[PrecomputedFeatures, bool]:
    """Load the features of a fold, or compute and store them if no other cell has done so.

    Returns:
        the features, and whether this cell computed them.
    """
    report("features", 0, None, "examples")
    try:
        return PrecomputedFeatures.load(ctx.storage.local(key)), False
    except FileNotFoundError:
        pass
    total = training.source.n_examples + test.n_examples
    shared = PrecomputedFeatures.fit(
        parameters, training, test, progress=lambda read: report("features", read, total, "examples")
    )
    with ctx.storage.temporary_file(".safetensors") as path:
        shared.save(path)
        ctx.storage.put(key, path)
    return shared, True
