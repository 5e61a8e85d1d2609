"""The worker's part of a batch prediction: predicts for all examples of a data set and stores the file."""

from __future__ import annotations

from sqlalchemy import select

from app.batch_predictions.rank_examples import FailedDocument, rank_examples
from app.batch_predictions.result_files import open_result
from app.batch_predictions.schemas import MAX_RANKED_LABELS, BatchPredictionCreate, BatchPredictionResult
from app.context import AppContext
from app.db import tables
from app.db.session import Transaction
from app.jobs import queue
from app.jobs.progress import ProgressReporter
from app.jobs.queue import Claim
from app.jobs.retry import write_with_retry
from app.jobs.work import Work
from app.serving.instances import MAX_PRODUCTS, find_unknown_features
from models import artifact
from models.data.store import StoredExamples
from models.errors import UnsuitableDataError

FOLDER = "predictions"


class PredictBatch(Work):
    """The job kind ``batch_prediction``. A new attempt starts from the beginning."""

    def run(self, ctx: AppContext, claim: Claim, report: ProgressReporter) -> None:
        """Predict for all examples, store the file, and reference it in the row.

        Raises:
            UnsuitableDataError: too many documents have no scores, or the label sets have too many labels.
        """
        with ctx.db.read() as session:
            row = session.scalars(
                select(tables.BatchPrediction).where(tables.BatchPrediction.job_id == claim.job_id)
            ).one()
            dataset = session.get_one(tables.Dataset, row.dataset_id)
            version = session.get_one(tables.ModelVersion, (row.model, row.version))
        assert dataset.storage_key is not None, "a ready data set has its file"  # noqa: S101
        request = BatchPredictionCreate.model_validate(row.request)
        report("loading", 0, 1, "files")
        pipeline = artifact.load(ctx.storage.local(version.artifact_key))
        examples = StoredExamples(ctx.storage.local(dataset.storage_key))
        documents = failed = predicted_labels = 0
        suffix = f".{request.format}"
        with ctx.storage.temporary_file(suffix) as path:
            report("predicting", 0, examples.n_examples, "documents")
            with open_result(path, request.format, pipeline.labels_) as result:
                for part in rank_examples(pipeline, examples, top=request.top, max_products=MAX_PRODUCTS):
                    if isinstance(part, FailedDocument):
                        failed += 1
                        documents += 1
                    else:
                        documents += len(part.ids)
                        predicted_labels += sum(map(len, part.ranking.label_sets))
                        _check_predicted_labels(predicted_labels, MAX_RANKED_LABELS)
                    result.write(part)
                    report("predicting", documents, examples.n_examples, "documents")
            report("storing", 0, 1, "files")
            stored = ctx.storage.put(f"{FOLDER}/{claim.job_id}.{claim.fence}{suffix}", path)
        report("storing", 1, 1, "files")
        content = BatchPredictionResult(
            documents=documents,
            failed_documents=failed,
            sha256=stored.sha256,
            size_bytes=stored.size_bytes,
            unknown_features=find_unknown_features(pipeline, examples.feature_names),
        )

        def finish(tx: Transaction) -> None:
            queue.finish(tx, claim, "succeeded")
            fresh = tx.session.get_one(tables.BatchPrediction, row.id)
            fresh.result_key = stored.key
            fresh.result = content.model_dump(mode="json")

        write_with_retry(ctx.db, finish)


def _check_predicted_labels(n_labels: int, limit: int) -> None:
    if n_labels > limit:
        raise UnsuitableDataError(
            f"the predicted label sets have more than {limit:,} labels; use a smaller data set, or a version "
            "with a decision rule that predicts fewer labels"
        )
