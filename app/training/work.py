"""What a worker does with a training job: a request becomes a model version."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from app.db import tables
from app.db.session import Transaction
from app.environment import Environment
from app.evaluations.measuring import measure_part
from app.jobs import ledger
from app.jobs.ledger import Claim
from app.jobs.reporter import Reporter
from app.training.schemas import GivenSplit, RandomSplit, TrainingJobCreate
from app.versions import publishing
from app.versions.publishing import NewVersion
from models import artifact
from models.data.store import StoredExamples
from models.errors import UnsuitableDataError
from models.labels import LabelTree
from models.pipeline import Pipeline, Progress


class Training:
    """The job kind ``train``."""

    def run(self, env: Environment, claim: Claim, report: Reporter) -> None:
        """Train, measure, save, and publish the version."""
        request = TrainingJobCreate.model_validate(claim.spec)
        with env.db.read() as session:
            dataset = session.get_one(tables.Dataset, claim.dataset_id)
        assert dataset.storage_key is not None, "a ready data set has its file"  # noqa: S101
        stored = StoredExamples(env.storage.local(dataset.storage_key))
        training_part, test_part = parts(stored, request)
        assert request.features is not None, "defaults were filled in"  # noqa: S101
        pipeline = Pipeline.from_parameters(
            request.features, request.learner, request.decision, seed=request.seed
        )

        def monitor(progress: Progress, /) -> None:
            measures = dict(progress.measures) if progress.phase == "training" else None
            report(progress.phase, progress.completed, progress.total, progress.unit, measures)

        clock = time.perf_counter()
        pipeline.fit(
            training_part,
            tree=LabelTree(dataset.label_tree) if dataset.label_tree else None,
            monitor=monitor,
        )
        fitted = time.perf_counter()
        warnings = list(pipeline.notes_.warnings)
        metrics: dict[str, dict[str, float]] = {}
        measured: dict[str, dict[str, Any]] = {}
        for done, (name, part) in enumerate([("train", training_part), ("test", test_part)]):
            report("evaluating", done, 2, "parts")
            if part is not None:
                evaluation, measured[name] = measure_part(pipeline, part)
                metrics[name] = evaluation.measures
                warnings += [f"{name} part: {warning}" for warning in evaluation.warnings]
        evaluated = time.perf_counter()
        report("saving", 0, 1, "files")
        with env.storage.scratch(".covey") as path:
            kept = {"metrics": metrics, "dataset_sha256": dataset.sha256}
            artifact.save(pipeline, path, extra=kept)
            saved = env.storage.put(f"artifacts/{claim.job_id}.{claim.fence}.covey", path)
        version = NewVersion(
            model=request.model,
            pipeline=pipeline,
            artifact=saved,
            metrics=metrics,
            warnings=warnings,
            dataset_id=dataset.id,
            dataset_sha256=dataset.sha256,
            training_job_id=claim.job_id,
            evaluation=measured,
            timings={
                **{f"{phase}_seconds": seconds for phase, seconds in pipeline.timings_.items()},
                "fit_seconds": fitted - clock,
                "evaluation_seconds": evaluated - fitted,
            },
        )
        with env.db.write() as tx:
            number = publishing.publish(tx, version, request.promote)
            result = {"model": request.model, "version": number, "metrics": metrics}
            ledger.finish(tx, claim, "succeeded", result=result)

    def ended_unfinished(self, tx: Transaction, dataset_id: str | None, error: dict[str, Any]) -> None:
        """Nothing else changes: there is no version, and the data set is as it was."""


def parts(stored: StoredExamples, request: TrainingJobCreate) -> tuple[StoredExamples, StoredExamples | None]:
    """The training part, and the held-out part where there is one.

    Raises:
        UnsuitableDataError: nothing would be left to learn from.
    """
    split = request.split
    if isinstance(split, GivenSplit):
        given = stored.splits()
        # An example without a split of its own belongs to neither part.
        training = np.array([name == "train" for name in given], dtype=np.bool_)
        test = np.array([name == "test" for name in given], dtype=np.bool_)
    elif isinstance(split, RandomSplit):
        n_test = round(stored.n_examples * split.test_fraction)
        if n_test in (0, stored.n_examples):
            raise UnsuitableDataError(
                f"a test fraction of {split.test_fraction} of {stored.n_examples} examples leaves one empty"
            )
        test = np.zeros(stored.n_examples, dtype=np.bool_)
        test[np.random.default_rng(request.seed).permutation(stored.n_examples)[:n_test]] = True
        training = ~test
    else:
        return stored, None
    return stored.where(training), stored.where(test) if test.any() else None
