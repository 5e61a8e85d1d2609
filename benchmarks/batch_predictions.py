"""Compare the documents per second of a batch prediction with those of the library.

    python -m benchmarks.batch_predictions [--rounds 200] [--repeats 5]

Trains MP-Boost on Reuters-21578. Then it alternates, in one process: ``Pipeline.predict`` over all documents,
which are in memory, and the job over the same data set, from its first document to the finished row. Prints
the fastest CPU time of each, the ratio of documents per second (above 1: the job is faster), and where the
job spends its time. ``COVEY_DATA`` is the folder of the corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import in_process
import rows

from app.batch_predictions import service
from app.batch_predictions.rank_examples import FailedDocument, rank_examples
from app.batch_predictions.result_files import open_result
from app.batch_predictions.schemas import BatchPredictionCreate, ResultFormat
from app.batch_predictions.work import PredictBatch
from app.context import AppContext
from app.db import schema, tables
from app.db.session import Database
from app.jobs.progress import ProgressReporter
from app.settings import Settings
from app.storage import LocalStorage
from app.training import service as training
from app.training.schemas import TrainingJobCreate
from benchmarks.corpora import records
from models import artifact
from models.data.examples import Examples
from models.data.store import StoredExamples
from models.pipeline import Pipeline


def open_context(folder: Path) -> AppContext:
    """Return a context with an SQLite database and a storage in a folder."""
    settings = Settings(data_dir=folder, log_level="error")
    db = Database(f"sqlite:///{folder / 'covey.db'}")
    schema.migrate(db.engine)
    storage = LocalStorage(folder / "storage")
    storage.initialize()
    return AppContext(settings, db, storage, in_process.NoRelay())


class Start(ProgressReporter):
    """Reports progress, and notes the CPU time at which the first document is predicted."""

    cpu = 0.0

    def __call__(self, phase: str, *arguments: Any, **options: Any) -> None:
        """Report progress."""
        if phase == "predicting" and not self.cpu:
            self.cpu = time.process_time()
        super().__call__(phase, *arguments, **options)


def run_job(ctx: AppContext, dataset: str, top: int | None, form: ResultFormat) -> float:
    """Return the CPU seconds of a job from its first document."""
    body = BatchPredictionCreate(model="m", dataset_id=dataset, top=top, format=form)
    service.create(ctx, body, in_process.WITHOUT_KEY)
    claim = rows.claimed(ctx.db, in_process.queued(ctx)[0], seconds=600)
    start = Start(ctx.db, claim)
    PredictBatch().run(ctx, claim, start)
    return time.process_time() - start.cpu


def cpu_seconds(function: Callable[[], Any]) -> float:
    """Return the CPU seconds of a call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def layers(pipeline: Pipeline, stored: StoredExamples, top: int | None, form: ResultFormat) -> list[float]:
    """Return the CPU seconds of reading, ranking and writing."""
    batches: list[Examples] = []
    reading = cpu_seconds(lambda: batches.extend(stored.batches()))
    ranked: list[Any] = []
    # The batches are in memory, so this does not read the file again.
    ranking = cpu_seconds(
        lambda: ranked.extend(
            itertools.chain.from_iterable(
                rank_examples(pipeline, batch, top=top, max_products=1) for batch in batches
            )
        )
    )
    assert not any(isinstance(part, FailedDocument) for part in ranked)

    def write() -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            open_result(Path(folder) / "result", form, pipeline.labels_) as result,
        ):
            for part in ranked:
                result.write(part)

    return [reading, ranking, cpu_seconds(write)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ctx = open_context(Path(folder))
        dataset = in_process.dataset(ctx, records("reuters21578"))
        learner = {"algorithm": "mp_boost", "rounds": arguments.rounds}
        body = {"model": "m", "dataset_id": dataset, "learner": learner}
        training.create(ctx, TrainingJobCreate.model_validate(body), in_process.WITHOUT_KEY)
        in_process.work(ctx)
        with ctx.db.read() as session:
            version = session.get_one(tables.ModelVersion, ("m", 1))
            row = session.get_one(tables.Dataset, dataset)
        pipeline = artifact.load(ctx.storage.local(version.artifact_key))
        stored = StoredExamples(ctx.storage.local(str(row.storage_key)))
        n = stored.n_examples
        documents: Any = [document for batch in stored.batches() for document in batch.documents]  # type: ignore[union-attr] # they are texts
        print(f"{n:,} documents, {len(pipeline.labels_)} labels; CPU microseconds per document, fastest")
        header = f"{'':18}{'library':>9}{'job':>9}{'ratio':>9}{'reading':>10}{'ranking':>10}{'writing':>10}"
        print(header, "  rest (digest, storing, progress)")
        formats: tuple[ResultFormat, ...] = ("ndjson", "parquet")
        for top, form in itertools.product((None, 5), formats):
            library, job, parts = [], [], []
            for _ in range(arguments.repeats):
                library.append(cpu_seconds(partial(pipeline.predictions, documents, top=top)))
                job.append(run_job(ctx, dataset, top, form))
                parts.append(layers(pipeline, stored, top, form))
            fastest = [min(values) for values in zip(*parts, strict=True)]
            numbers = [min(library), min(job), *fastest, min(job) - sum(fastest)]
            micro = [1e6 * seconds / n for seconds in numbers]
            print(
                f"{form + (f', top {top}' if top else ', all labels'):18}"
                f"{micro[0]:9.1f}{micro[1]:9.1f}{micro[0] / micro[1]:9.2f}"
                f"{micro[2]:10.1f}{micro[3]:10.1f}{micro[4]:10.1f}{micro[5]:8.1f}",
                flush=True,
            )
        ctx.close()


if __name__ == "__main__":
    main()
