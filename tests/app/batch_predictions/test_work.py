"""The worker's part of batch predictions: bounded memory, failing documents, interruptions, retention."""

from __future__ import annotations

import errno
import json
import weakref
from dataclasses import replace
from datetime import timedelta
from typing import Any

import in_process
import pyarrow.parquet as pq
import pytest
import rows
from stack import departments

from app.batch_predictions import rank_examples, result_files, service, work
from app.batch_predictions.schemas import BatchPrediction, BatchPredictionCreate
from app.batch_predictions.work import PredictBatch
from app.context import AppContext
from app.db import tables
from app.errors import NotFound
from app.jobs import queue
from app.jobs.progress import ProgressReporter
from app.jobs.queue import LostClaimError
from app.maintenance import retention
from app.storage import StorageState, StorageUnavailableError
from app.training import service as training
from app.training.schemas import TrainingJobCreate
from models.data import store
from models.data.examples import Examples
from models.data.store import StoredExamples
from models.pipeline import Pipeline
from workers import job_kinds

SQLITE = pytest.mark.parametrize("kind_of_database", ["sqlite"])
"""For tests that do not depend on the database."""

FORMATS = pytest.mark.parametrize("form", ["ndjson", "parquet"])


def train(ctx: AppContext, dataset_id: str, **fields: Any) -> None:
    """Train a version of the model ``m``."""
    body = {
        "model": "m",
        "dataset_id": dataset_id,
        "learner": {"algorithm": "naive_bayes"},
        "decision": {"kind": "sign"},
        **fields,
    }
    job = training.create(ctx, TrainingJobCreate.model_validate(body), in_process.WITHOUT_KEY)
    in_process.work(ctx)
    assert training.get(ctx.db, job.id).state == "succeeded"


def create(ctx: AppContext, dataset_id: str, **fields: Any) -> BatchPrediction:
    body = BatchPredictionCreate.model_validate({"model": "m", "dataset_id": dataset_id, **fields})
    return service.create(ctx, body, in_process.WITHOUT_KEY)


def finished(ctx: AppContext, prediction: BatchPrediction) -> BatchPrediction:
    in_process.work(ctx)
    return service.get(ctx.db, prediction.id)


def items(ctx: AppContext, prediction: BatchPrediction) -> list[dict[str, Any]]:
    """The lines or rows of a result. In a line, a field without a value is omitted."""
    assert prediction.state == "succeeded", prediction.error
    path, _, _ = service.result_path(ctx, prediction.id)
    if prediction.format == "ndjson":
        return [json.loads(line) for line in path.read_bytes().splitlines()]
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in pq.read_table(path).to_pylist()
    ]


def files(ctx: AppContext) -> list[str]:
    """The results and temporary files in the storage."""
    return [file.key for folder in ("predictions", "tmp") for file in ctx.storage.files(folder)]


@pytest.fixture
def dataset(ctx: AppContext) -> str:
    """A data set on which version 1 of the model ``m`` was trained."""
    dataset_id = in_process.dataset(ctx, departments(40))
    train(ctx, dataset_id)
    return dataset_id


@SQLITE
@FORMATS
def test_documents_and_predictions_are_held_a_block_at_a_time(
    ctx: AppContext, dataset: str, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(store, "_MAX_GROUP_ROWS", 50)
    monkeypatch.setattr(rank_examples, "BLOCK_RANKED_LABELS", 4 * 20)
    monkeypatch.setattr(result_files, "GROUP_RANKED_LABELS", 4 * 40)
    many = in_process.dataset(ctx, departments(600))
    alive: weakref.WeakSet[Examples] = weakref.WeakSet()
    batches_held: list[int] = []
    ranked_at_once: list[int] = []
    read, rank = StoredExamples._examples, Pipeline.rank

    def tracked(self: StoredExamples, table: Any) -> Examples:
        batch = replace(read(self, table))
        alive.add(batch)
        batches_held.append(len(alive))
        return batch

    def counted(self: Pipeline, documents: Any, **options: Any) -> Any:
        ranked_at_once.append(len(documents))
        return rank(self, documents, **options)

    monkeypatch.setattr(Examples, "__hash__", object.__hash__)
    monkeypatch.setattr(StoredExamples, "_examples", tracked)
    monkeypatch.setattr(Pipeline, "rank", counted)
    prediction = finished(ctx, create(ctx, many, format=form))
    assert len(items(ctx, prediction)) == 600
    assert len(batches_held) == 12
    assert max(batches_held) <= 2, "the one that is predicted, and the one that is read next"
    assert max(ranked_at_once) == 20
    if form == "parquet":
        metadata = pq.read_metadata(service.result_path(ctx, prediction.id)[0])
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        assert max(sizes) <= 60, "a row group ends after 40 documents, and a block has at most 20"
        assert len(sizes) >= 10


def overflowing(n: int, bad: set[int]) -> list[dict[str, Any]]:
    """Numeric examples, of which some have products that are infinite."""
    return [
        {
            "id": f"d{i}",
            "features": {"a": 1e200 if i in bad else 1.0 + i % 5, "b": 1.0 + i % 3},
            "labels": ["odd"][: i % 2],
        }
        for i in range(n)
    ]


def train_with_products(ctx: AppContext) -> None:
    features = {"kind": "numeric", "interactions": 2}
    train(
        ctx, in_process.dataset(ctx, overflowing(30, set())), features=features, learner={"algorithm": "svm"}
    )


@SQLITE
@FORMATS
def test_a_document_without_scores_has_an_error_in_its_place(ctx: AppContext, form: str) -> None:
    train_with_products(ctx)
    good = finished(ctx, create(ctx, in_process.dataset(ctx, overflowing(40, set())), format=form))
    bad = {0, 17, 18, 39}
    prediction = finished(ctx, create(ctx, in_process.dataset(ctx, overflowing(40, bad)), format=form))
    assert prediction.result is not None
    assert (prediction.result.documents, prediction.result.failed_documents) == (40, 4)
    for i, (item, expected) in enumerate(zip(items(ctx, prediction), items(ctx, good), strict=True)):
        if i not in bad:
            assert item == expected
            continue
        assert item.keys() == {"id", "error"}
        assert item["id"] == f"d{i}"
        assert item["error"]["code"] == "unsuitable_data"
        assert "too large" in item["error"]["detail"]


@SQLITE
def test_a_batch_prediction_fails_if_many_documents_have_no_scores(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_examples, "MAX_FAILED_DOCUMENTS", 3)
    train_with_products(ctx)
    data = in_process.dataset(ctx, overflowing(40, {1, 2, 3, 30}))
    prediction = finished(ctx, create(ctx, data))
    assert prediction.state == "failed"
    assert prediction.error is not None
    assert prediction.error.code == "unsuitable_data"
    assert "more than 3 documents have no scores; the latest is d30" in prediction.error.detail
    assert files(ctx) == []


@SQLITE
def test_products_of_features_are_limited_for_each_document(
    ctx: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_with_products(ctx)
    data = in_process.dataset(ctx, overflowing(10, set()))
    monkeypatch.setattr(work, "MAX_PRODUCTS", 3)
    prediction = finished(ctx, create(ctx, data))
    assert prediction.result is not None
    assert (prediction.result.documents, prediction.result.failed_documents) == (10, 0)
    monkeypatch.setattr(work, "MAX_PRODUCTS", 2)
    prediction = finished(ctx, create(ctx, data))
    assert {item["error"]["detail"] for item in items(ctx, prediction)} == {
        "the document has 3 products of two features; the limit is 2"
    }


@SQLITE
def test_label_sets_that_are_too_large_fail_the_job(ctx: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
    data = in_process.dataset(ctx, departments(40))
    train(ctx, data, decision={"kind": "top_k", "k": 3})
    monkeypatch.setattr(work, "MAX_RANKED_LABELS", 119)
    prediction = finished(ctx, create(ctx, data, top=1))
    assert prediction.state == "failed"
    assert prediction.error is not None
    assert "more than 119 labels" in prediction.error.detail
    monkeypatch.setattr(work, "MAX_RANKED_LABELS", 120)
    assert finished(ctx, create(ctx, data, top=1)).state == "succeeded"


def test_a_running_batch_prediction_stops_when_it_is_cancelled(
    ctx: AppContext, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prediction = create(ctx, dataset)
    rank = Pipeline.rank

    def cancel_first(self: Pipeline, documents: Any, **options: Any) -> Any:
        assert service.cancel(ctx.db, prediction.id).cancel_requested_at is not None
        return rank(self, documents, **options)

    monkeypatch.setattr(Pipeline, "rank", cancel_first)
    assert finished(ctx, prediction).state == "cancelled"
    assert files(ctx) == []


def test_an_attempt_that_lost_its_claim_leaves_the_result_to_the_next_one(
    ctx: AppContext, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prediction = create(ctx, dataset)
    job_id = in_process.queued(ctx)[0]
    claim = rows.claimed(ctx.db, job_id)
    put = type(ctx.storage).put

    def lose(self: Any, key: str, path: Any) -> Any:
        with ctx.db.write() as tx:
            job = queue.lock(tx, job_id)
            assert job is not None
            queue.requeue_lost(tx, job, reason="test")
        return put(self, key, path)

    with monkeypatch.context() as patch:
        patch.setattr(type(ctx.storage), "put", lose)
        with pytest.raises(LostClaimError):
            PredictBatch().run(ctx, claim, ProgressReporter(ctx.db, claim))
    lost = files(ctx)
    assert service.get(ctx.db, prediction.id).result is None
    ended = finished(ctx, prediction)
    assert (ended.state, ended.attempt) == ("succeeded", 2)
    path, _, _ = service.result_path(ctx, prediction.id)
    assert [key for key in files(ctx) if key not in lost] == [f"predictions/{path.name}"]
    assert rows.events(ctx.db, job_id).count("succeeded") == 1


@SQLITE
@pytest.mark.parametrize(
    ("call", "form"),
    [("temporary_file", "ndjson"), ("put", "ndjson"), ("put", "parquet"), ("local", "ndjson")],
)
def test_an_unavailable_storage_leaves_the_job_to_a_later_attempt(
    ctx: AppContext, dataset: str, monkeypatch: pytest.MonkeyPatch, call: str, form: str
) -> None:
    prediction = create(ctx, dataset, format=form)
    claim = rows.claimed(ctx.db, in_process.queued(ctx)[0])

    def fail(*_: Any) -> Any:
        raise StorageUnavailableError("test")

    with monkeypatch.context() as patch:
        patch.setattr(type(ctx.storage), call, fail)
        with pytest.raises(StorageUnavailableError):
            PredictBatch().run(ctx, claim, ProgressReporter(ctx.db, claim))
    assert files(ctx) == []
    job_kinds.release(ctx, claim, reason="test")
    assert len(items(ctx, finished(ctx, prediction))) == 40


class FullDisk:
    """A file of which only the first bytes fit on the disk."""

    def __init__(self, file: Any, size: int) -> None:
        self._file, self._left = file, size

    def write(self, content: bytes) -> int:
        self._left -= len(content)
        if self._left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return int(self._file.write(content))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@SQLITE
@FORMATS
@pytest.mark.parametrize("size", [0, 100])
def test_a_full_disk_leaves_no_file_and_is_reported_as_an_error_of_the_system(
    ctx: AppContext, dataset: str, monkeypatch: pytest.MonkeyPatch, form: str, size: int
) -> None:
    create(ctx, dataset, format=form)
    claim = rows.claimed(ctx.db, in_process.queued(ctx)[0])
    writer: Any = result_files.NdjsonWriter if form == "ndjson" else result_files.ParquetWriter
    monkeypatch.setattr(
        result_files, writer.__name__, lambda file, labels: writer(FullDisk(file, size), labels)
    )
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is checked
        PredictBatch().run(ctx, claim, ProgressReporter(ctx.db, claim))
    assert caught.value.errno == errno.ENOSPC
    assert files(ctx) == []


def test_the_progress_counts_documents(ctx: AppContext, dataset: str) -> None:
    create(ctx, dataset)
    claim = rows.claimed(ctx.db, in_process.queued(ctx)[0])
    reported: list[tuple[Any, ...]] = []
    reporter = ProgressReporter(ctx.db, claim)

    class Recorder:
        def __call__(self, *progress: Any) -> None:
            reported.append(progress)
            reporter(*progress)

    PredictBatch().run(ctx, claim, Recorder())  # type: ignore[arg-type] # it is called like one
    assert reported == [
        ("loading", 0, 1, "files"),
        ("predicting", 0, 40, "documents"),
        ("predicting", 40, 40, "documents"),
        ("storing", 0, 1, "files"),
        ("storing", 1, 1, "files"),
    ]
    assert rows.events(ctx.db, claim.job_id) == ["queued", "started", "phase", "phase", "phase", "succeeded"]


def test_a_batch_prediction_expires_with_its_result(
    ctx: AppContext, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = finished(ctx, create(ctx, dataset))
    waiting = create(ctx, dataset)
    assert len(files(ctx)) == 1
    now = tables_now(ctx)

    def after(days: float) -> AppContext:
        monkeypatch.setattr("app.db.session.database_now", lambda _: now + timedelta(days=days))
        later = StorageState(now + timedelta(days=days))
        monkeypatch.setattr(type(ctx.storage), "check", lambda _: later)
        retention.apply_retention(ctx)
        return ctx

    after(29)
    assert len(items(ctx, old)) == 40
    after(31)
    with pytest.raises(NotFound):
        service.get(ctx.db, old.id)
    with pytest.raises(NotFound):
        service.result_path(ctx, old.id)
    assert files(ctx) == []
    assert service.get(ctx.db, waiting.id).state == "queued", "an unfinished one never expires"
    with ctx.db.read() as session:
        jobs = session.query(tables.Job).filter_by(kind="batch_prediction", state="succeeded")
        assert jobs.count() == 1, "its job expires like others"
    after(1000)
    with ctx.db.read() as session:
        assert session.query(tables.Job).filter_by(kind="batch_prediction").count() == 1
    service.cancel(ctx.db, waiting.id)


def tables_now(ctx: AppContext) -> Any:
    with ctx.db.write() as tx:
        return tx.now


def test_a_result_without_a_row_is_deleted_and_others_are_kept(ctx: AppContext, dataset: str) -> None:
    kept = finished(ctx, create(ctx, dataset))
    with ctx.storage.create("predictions/job_gone.1.ndjson") as file:
        file.write(b"{}\n")
    at_once = replace(ctx, settings=ctx.settings.model_copy(update={"collect_seconds": 1e-9}))
    retention.apply_retention(at_once)
    assert len(files(ctx)) == 1
    assert len(items(ctx, kept)) == 40
