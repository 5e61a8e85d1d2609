"""The worker's part of an evaluation: evaluates a version on a data set."""

from __future__ import annotations

import numpy as np
from sqlalchemy import select

from app.context import AppContext
from app.db import tables
from app.db.session import Transaction
from app.evaluations.evaluate import evaluate_part
from app.evaluations.schemas import EvaluationCreate
from app.jobs import queue
from app.jobs.progress import ProgressReporter
from app.jobs.queue import Claim
from app.jobs.retry import write_with_retry
from app.jobs.work import Work
from models import artifact
from models.data.store import StoredExamples


class EvaluateVersion(Work):
    """The job kind ``evaluate``."""

    def run(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        """Load the version, evaluate it, and store the result."""
        with ctx.db.read() as session:
            row = session.scalars(
                select(tables.Evaluation).where(tables.Evaluation.job_id == claim.job_id)
            ).one()
            dataset = session.get_one(tables.Dataset, row.dataset_id)
            version = session.get_one(tables.ModelVersion, (row.model, row.version))
        assert dataset.storage_key is not None, "a ready data set has its file"  # noqa: S101
        report("loading", 0, 1, "files")
        pipeline = artifact.load(ctx.storage.local(version.artifact_key))
        stored = StoredExamples(ctx.storage.local(dataset.storage_key))
        request = EvaluationCreate.model_validate(row.request)
        part = request.part
        keep = np.array([part in ("all", split) for split in stored.splits()], dtype=np.bool_)
        n_examples = int(keep.sum())

        def on_batch(n_scored: int) -> None:
            report("evaluating", n_scored, n_examples, "examples")

        _, content = evaluate_part(pipeline, stored.where(keep), covering=request.covering, on_batch=on_batch)

        def finish(tx: Transaction) -> None:
            queue.finish(tx, claim, "succeeded")
            tx.session.get_one(tables.Evaluation, row.id).content = {"all": content}

        write_with_retry(ctx.db, finish)
