"""What workers do for an experiment: share the examples out, and try one configuration on one fold."""

from __future__ import annotations

from typing import Any

from app.db import tables
from app.db.session import Transaction
from app.environment import Environment
from app.experiments import service, sharing
from app.experiments.schemas import ExperimentCreate
from app.jobs import ledger
from app.jobs.checkpoints import Checkpoints, Kept
from app.jobs.ledger import Claim
from app.jobs.patience import persist
from app.jobs.reporter import Reporter
from models.data.examples import ExampleSource
from models.data.store import StoredExamples
from models.errors import SnapshotError, UnsuitableDataError
from models.labels import LabelTree
from models.serialization.array_file import write_arrays
from models.trials import PrecomputedFeatures, TrialResult, TrialStep, run_trial


class Planning:
    """The job kind ``experiment``: examples are shared out, and the cells queued."""

    def run(self, env: Environment, claim: Claim, report: Reporter) -> None:
        """Compute the folds once, and queue every cell in the transaction that ends this job."""
        experiment, stored, tree = _read(env, claim)
        request = ExperimentCreate.model_validate(experiment.request)
        report("sharing out", 0, 1, "splits")
        folds = sharing.share_out(request, stored, tree)
        for fold in range(service.n_folds(request)):
            if not folds.training(fold).any() or not folds.test(fold).any():
                raise UnsuitableDataError(f"fold {fold} would have an empty part; make fewer folds")
        sharing.save_folds(env, experiment.id, folds)

        def finish(tx: Transaction) -> None:
            ledger.finish(tx, claim, "succeeded")
            row = service.lock(tx, experiment.id)
            if row.cancel_requested_at is None:
                _queue_cells(tx, row, request)
            service.close_if_done(tx, row.id)

        persist(env.db, finish)

    def ended_unfinished(self, tx: Transaction, dataset_id: str | None, error: dict[str, Any]) -> None:  # noqa: ARG002
        """Without cells the experiment has ended too."""
        service.close_ended(tx, dataset_id)


class Trying:
    """The job kind ``cell``: one configuration on one fold."""

    def run(self, env: Environment, claim: Claim, report: Reporter) -> None:
        """Train, measure, and end the experiment if this was its last cell."""
        experiment, stored, tree = _read(env, claim)
        request = ExperimentCreate.model_validate(experiment.request)
        fold = int(claim.spec["fold"])
        assert request.configurations is not None, "a grid was written out"  # noqa: S101
        configuration = request.configurations[int(claim.spec["configuration"])]
        assert configuration.features is not None, "defaults were filled in"  # noqa: S101
        folds = sharing.load_folds(env, experiment.id) or sharing.share_out(request, stored, tree)
        training, test = stored.where(folds.training(fold)), stored.where(folds.test(fold))
        key = sharing.features_key(experiment.id, configuration.features, fold)
        shared, computed = _features(env, key, configuration.features, training, test, tree, report)

        def tried(kept: Kept | None) -> TrialResult:
            return run_trial(
                shared,
                configuration.learner,
                configuration.decision,
                training,
                test,
                tree=tree,
                seed=request.seed,
                measures=request.measures,
                coverings=request.coverings,
                monitor=monitor,
                resume=kept.state if kept is not None else None,
                spent=sum(kept.seconds.values()) if kept is not None else 0.0,
            )

        def monitor(step: TrialStep, /) -> None:
            at = step.progress
            report(at.phase, at.completed, at.total, at.unit, step.curve or None)
            checkpoints.offer(at.phase, at.completed, at.snapshot, lambda: {"fit": step.fit_seconds})

        checkpoints = Checkpoints(env, claim, report)
        try:
            trial = tried(checkpoints.load())
        except SnapshotError as error:
            checkpoints.ignore(str(error))
            trial = tried(None)
        report("saving", 0, 1, "files")
        columns = [*request.measures, *(f"covering_error.{name}" for name in request.coverings)]
        kept = _keep_examples(env, experiment.id, claim, trial, columns)
        result = {
            "metrics": {"train": trial.train.measures, "test": trial.test.measures},
            "examples": kept,
            "facts": trial.pipeline.summary_.facts,
            "warnings": [*trial.pipeline.summary_.warnings, *trial.test.warnings],
            "features_computed": computed,
            "curve_unit": trial.curve_unit,
            "timings": {
                "features_seconds": shared.seconds,
                "fit_seconds": trial.fit_seconds,
                "score_seconds": trial.score_seconds,
            },
        }

        def finish(tx: Transaction) -> bool:
            ledger.finish(tx, claim, "succeeded", result=result)
            return service.close_if_done(tx, experiment.id)

        if persist(env.db, finish):
            service.sweep(env)

    def ended_unfinished(self, tx: Transaction, dataset_id: str | None, error: dict[str, Any]) -> None:  # noqa: ARG002
        """The other cells go on; if there are none, the experiment has ended."""
        service.close_ended(tx, dataset_id)


def _read(env: Environment, claim: Claim) -> tuple[tables.Experiment, StoredExamples, LabelTree | None]:
    with env.db.read() as session:
        experiment = session.get_one(tables.Experiment, claim.spec["experiment_id"])
        dataset = session.get_one(tables.Dataset, experiment.dataset_id)
    assert dataset.storage_key is not None, "a ready data set has its file"  # noqa: S101
    stored = StoredExamples(env.storage.local(dataset.storage_key))
    return experiment, stored, LabelTree(dataset.label_tree) if dataset.label_tree else None


def _queue_cells(tx: Transaction, experiment: tables.Experiment, request: ExperimentCreate) -> None:
    # Fold by fold for each configuration, so that workers that begin together begin with different
    # features, and whoever comes next finds them there.
    key_id = tx.session.get_one(tables.Job, experiment.job_id).key_id
    for i in range(len(request.configurations or [])):
        for fold in range(service.n_folds(request)):
            spec = {"experiment_id": experiment.id, "configuration": i, "fold": fold}
            job = ledger.enqueue(tx, "cell", spec, dataset_id=experiment.dataset_id)
            job.key_id = key_id
            tx.session.add(
                tables.ExperimentCell(experiment_id=experiment.id, configuration=i, fold=fold, job_id=job.id)
            )
    tx.session.flush()


def _features(
    env: Environment,
    key: str,
    parameters: Any,
    training: ExampleSource,
    test: ExampleSource,
    tree: LabelTree | None,
    report: Reporter,
) -> tuple[PrecomputedFeatures, bool]:
    """The fold's features, from another cell or computed here for the others.

    Returns:
        the features, and whether they were computed here.
    """
    report("features", 0, None, "examples")
    try:
        return PrecomputedFeatures.load(env.storage.local(key)), False
    except FileNotFoundError:
        pass
    total = training.n_examples + test.n_examples
    shared = PrecomputedFeatures.fit(
        parameters,
        training,
        test,
        tree=tree,
        progress=lambda read: report("features", read, total, "examples"),
    )
    with env.storage.scratch(".safetensors") as path:
        shared.save(path)
        env.storage.put(key, path)
    return shared, True


def _keep_examples(
    env: Environment, experiment_id: str, claim: Claim, trial: TrialResult, columns: list[str]
) -> str:
    """Keep the measures of each held-out example, for tests between configurations."""
    key = f"experiments/{experiment_id}.{claim.job_id}.{claim.fence}.safetensors"
    arrays = {name: trial.examples[name] for name in columns if name in trial.examples}
    with env.storage.scratch(".safetensors") as path:
        write_arrays(path, arrays)
        env.storage.put(key, path)
    return key
