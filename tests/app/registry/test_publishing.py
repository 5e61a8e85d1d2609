"""Publishing versions: numbers are unique, promotion follows its rule, and aliases move atomically."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import rows
from sqlalchemy import select

from app.api.idempotency import Idempotency
from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.errors import Conflict, PreconditionFailed
from app.jobs import queue
from app.jobs.queue import LostClaimError
from app.registry import aliases, publishing
from app.registry import service as registry
from app.registry.alias_changes import Cause
from app.registry.publishing import ComparisonRecord, NewVersion, Verdict, VerdictOutdatedError
from app.registry.schemas import AliasPut, ModelVersion
from app.storage import StoredFile
from models import artifact
from models.data.examples import Examples
from models.features import TextFeatures, TextFeaturesParameters
from models.perceptrons import MLPP
from models.pipeline import Pipeline


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    """A pipeline that was fitted to four short texts."""
    examples = Examples("text", ["red apple", "red", "apple", "green"], [("a", "b"), ("a",), ("b",), ()])
    return Pipeline(TextFeatures(TextFeaturesParameters(kind="text")), MLPP()).fit(examples)


def new_version(pipeline: Pipeline, model: str = "m", test: dict[str, float] | None = None) -> NewVersion:
    return NewVersion(
        model=model,
        pipeline=pipeline,
        artifact=StoredFile("artifacts/a.covey", "0" * 64, 10),
        metrics={"test": test} if test else {},
        warnings=[],
        dataset_id=None,
        dataset_sha256=None,
        training_job_id=None,
        timings={},
    )


def publish(database: Database, version: NewVersion, promote: Any = "never") -> int:
    with database.write() as tx:
        return publishing.publish(tx, version, promote).version


def live(database: Database, model: str = "m") -> tuple[int, int] | None:
    """The number of the live version, and the revision of the alias."""
    with database.read() as session:
        row = session.get(tables.ModelAlias, (model, "live"))
        return (row.version, row.revision) if row is not None else None


@pytest.mark.parametrize("exists", [False, True])
def test_versions_published_concurrently_get_distinct_numbers_without_gaps(
    database: Database, pipeline: Pipeline, exists: bool
) -> None:
    n = 8
    existing = [publish(database, new_version(pipeline))] if exists else []
    start = threading.Barrier(n)

    def publish_next(_: int) -> int:
        start.wait()
        return publish(database, new_version(pipeline), "if_first")

    with ThreadPoolExecutor(n) as pool:
        numbers = list(pool.map(publish_next, range(n)))
    assert sorted(existing + numbers) == list(range(1, n + len(existing) + 1))
    with database.read() as session:
        stored = session.scalars(select(tables.ModelVersion.version)).all()
    assert sorted(stored) == sorted(existing + numbers)
    alias = live(database)
    assert alias is not None
    assert alias[1] == 1, "if_first promoted exactly one version"


def test_each_model_has_its_own_numbers(database: Database, pipeline: Pipeline) -> None:
    assert [publish(database, new_version(pipeline, model)) for model in ("m", "n", "m", "n", "o")] == [
        1,
        1,
        2,
        2,
        1,
    ]


def test_the_number_of_a_deleted_version_is_not_reused(ctx: Any, pipeline: Pipeline) -> None:
    assert publish(ctx.db, new_version(pipeline)) == 1
    assert publish(ctx.db, new_version(pipeline)) == 2
    registry.delete_version(ctx, "m", 2)
    assert publish(ctx.db, new_version(pipeline)) == 3


def test_a_failed_publication_uses_no_number(database: Database, pipeline: Pipeline) -> None:
    publish(database, new_version(pipeline))

    def fail() -> None:
        with database.write() as tx:
            publishing.publish(tx, new_version(pipeline), "always")
            raise ZeroDivisionError

    before = rows.all_rows(database)
    with pytest.raises(ZeroDivisionError):
        fail()
    assert rows.all_rows(database) == before
    assert publish(database, new_version(pipeline)) == 2


def test_a_job_that_lost_its_claim_publishes_nothing(database: Database, pipeline: Pipeline) -> None:
    claim = rows.claimed(database, rows.queued(database))
    with database.write() as tx:
        queue.release(tx, claim, reason="stop")

    def publish_and_finish() -> None:
        with database.write() as tx:
            number = publishing.publish(tx, new_version(pipeline), "always").version
            queue.finish(tx, claim, "succeeded", result={"version": number})

    before = rows.all_rows(database)
    with pytest.raises(LostClaimError):
        publish_and_finish()
    assert rows.all_rows(database) == before


def test_the_promotion_rule_decides_whether_a_version_goes_live(
    database: Database, pipeline: Pipeline
) -> None:
    publish(database, new_version(pipeline), "never")
    assert live(database) is None
    publish(database, new_version(pipeline), "if_first")
    assert live(database) == (2, 1), "no version was live before"
    publish(database, new_version(pipeline), "if_first")
    assert live(database) == (2, 1)
    publish(database, new_version(pipeline), "always")
    assert live(database) == (4, 2)


@pytest.mark.parametrize("promote", [True, False])
def test_a_verdict_decides_about_the_promotion(database: Database, pipeline: Pipeline, promote: bool) -> None:
    publish(database, new_version(pipeline), Verdict(None, True, "the first one"))
    assert live(database) == (1, 1)
    with database.write() as tx:
        published = publishing.publish(tx, new_version(pipeline), Verdict(1, promote, "because"))
    assert live(database) == ((2, 2) if promote else (1, 1))
    outcome = published.promotion
    assert (outcome.promoted, outcome.reason, outcome.live_before) == (promote, "because", 1)
    with database.read() as session:
        row = session.get_one(tables.ModelVersion, ("m", 2))
        assert row.description["warnings"] == ([] if promote else ["not promoted: because"])


@pytest.mark.parametrize("compared_with", [None, 1])
def test_a_verdict_about_another_live_version_is_refused(
    database: Database, pipeline: Pipeline, compared_with: int | None
) -> None:
    publish(database, new_version(pipeline), "always")
    publish(database, new_version(pipeline), "always")
    before = rows.all_rows(database)
    with pytest.raises(VerdictOutdatedError):
        publish(database, new_version(pipeline), Verdict(compared_with, True, "better"))
    assert rows.all_rows(database) == before


def test_a_comparison_that_did_not_count_another_one_is_refused(ctx: Any, pipeline: Pipeline) -> None:
    publish(ctx.db, new_version(pipeline), "always")
    for number in (1, 2):
        verdict = Verdict(1, False, "not better", record=ComparisonRecord(number, [number]))
        publish(ctx.db, new_version(pipeline), verdict)
    before = rows.all_rows(ctx.db)
    with pytest.raises(VerdictOutdatedError):
        publish(ctx.db, new_version(pipeline), Verdict(1, True, "better", record=ComparisonRecord(2, [1])))
    assert rows.all_rows(ctx.db) == before
    registry.delete_model(ctx, "m")
    with ctx.db.read() as session:
        assert publishing.compared_documents(session, "m") == []


def test_only_one_of_several_moves_from_the_same_revision_succeeds(
    database: Database, pipeline: Pipeline
) -> None:
    publish(database, new_version(pipeline), "always")
    numbers = [publish(database, new_version(pipeline)) for _ in range(5)]
    start = threading.Barrier(len(numbers))

    def move(number: int) -> int | None:
        start.wait()
        try:
            return aliases.put(database, "m", "live", AliasPut(version=number), '"1"').version
        except PreconditionFailed:
            return None

    with ThreadPoolExecutor(len(numbers)) as pool:
        moved = [number for number in pool.map(move, numbers) if number is not None]
    assert len(moved) == 1
    assert live(database) == (moved[0], 2)


# SQLite has only one writer at a time.
@pytest.mark.parametrize("kind_of_database", ["postgresql"], indirect=True)
def test_deleting_an_alias_waits_for_a_publication(database: Database, pipeline: Pipeline) -> None:
    publish(database, new_version(pipeline), "always")
    with ThreadPoolExecutor(1) as pool:
        with database.write() as tx:
            publishing.publish(tx, new_version(pipeline), "never")
            alias = tx.session.get(tables.ModelAlias, ("m", "live"))
            deleting = pool.submit(aliases.delete, database, "m", "live")
            rows.wait_for_lock_wait(database)
            assert publishing.set_alias(tx, "m", "live", 2, Cause("put")) is alias
        deleting.result()
    assert live(database) is None


def test_a_live_version_cannot_be_deleted(ctx: Any, pipeline: Pipeline) -> None:
    publish(ctx.db, new_version(pipeline), "always")
    with pytest.raises(Conflict) as rejected:
        registry.delete_version(ctx, "m", 1)
    assert rejected.value.code == "version_in_use"


def test_a_repeated_import_creates_one_version_and_keeps_one_file(
    ctx: AppContext, pipeline: Pipeline
) -> None:
    def send(idempotency_key: str | None, seed: int = 0) -> ModelVersion:
        with ctx.storage.temporary_file() as path:
            artifact.save(pipeline, path, extra={"seed": seed})
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
            idempotency = Idempotency("key_1", idempotency_key, "path").of(sha256)
            return registry.import_version(ctx, "m", path, idempotency)

    first = send("k")
    assert send("k").model_dump_json() == first.model_dump_json()
    with pytest.raises(Conflict) as rejected:
        send("k", seed=1)
    assert rejected.value.code == "idempotency_key_reused"
    assert [send(None).version, send("another").version] == [2, 3]
    with ctx.db.read() as session:
        keys = set(session.scalars(select(tables.ModelVersion.artifact_key)))
    assert {file.key for file in ctx.storage.files("artifacts")} == keys
    assert len(keys) == 3
