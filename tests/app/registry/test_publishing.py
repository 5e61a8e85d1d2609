"""A fitted pipeline becomes the next version of a model: numbers are never taken twice."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import rows
from sqlalchemy import select

from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.http.errors import Conflict, PreconditionFailed
from app.http.idempotency import Idempotency
from app.jobs import queue
from app.jobs.queue import LostClaimError
from app.registry import publishing
from app.registry import service as versions
from app.registry.publishing import NewVersion
from app.registry.schemas import AliasPut, ModelVersion, PromoteIfBetter
from app.storage import StoredFile
from models import artifact
from models.data.examples import Examples
from models.features import TextFeatures, TextFeaturesParameters
from models.perceptrons import MLPP
from models.pipeline import Pipeline


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    """Something that was really fitted, if only to four words."""
    examples = Examples("text", ["red apple", "red", "apple", "green"], [("a", "b"), ("a",), ("b",), ()])
    return Pipeline(TextFeatures(TextFeaturesParameters(kind="text")), MLPP()).fit(examples)


def new(pipeline: Pipeline, model: str = "m", test: dict[str, float] | None = None) -> NewVersion:
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
        return publishing.publish(tx, version, promote)


def live(database: Database, model: str = "m") -> tuple[int, int] | None:
    """The version that is live, and the alias's revision."""
    with database.read() as session:
        row = session.get(tables.ModelAlias, (model, "live"))
        return (row.version, row.revision) if row is not None else None


@pytest.mark.parametrize("exists", [False, True])
def test_versions_published_at_once_get_numbers_of_their_own_and_without_gaps(
    database: Database, pipeline: Pipeline, exists: bool
) -> None:
    n = 8
    already = [publish(database, new(pipeline))] if exists else []
    together = threading.Barrier(n)

    def contend(_: int) -> int:
        together.wait()
        return publish(database, new(pipeline), "if_first")

    with ThreadPoolExecutor(n) as pool:
        numbers = list(pool.map(contend, range(n)))
    assert sorted(already + numbers) == list(range(1, n + len(already) + 1))
    with database.read() as session:
        rows_ = session.scalars(select(tables.ModelVersion.version)).all()
    assert sorted(rows_) == sorted(already + numbers)
    found = live(database)
    assert found is not None
    assert found[1] == 1, "if_first promoted one of them, once"


def test_models_count_by_themselves(database: Database, pipeline: Pipeline) -> None:
    assert [publish(database, new(pipeline, model)) for model in ("m", "n", "m", "n", "o")] == [1, 1, 2, 2, 1]


def test_a_number_is_not_used_again_after_its_version_was_deleted(ctx: Any, pipeline: Pipeline) -> None:
    assert publish(ctx.db, new(pipeline)) == 1
    assert publish(ctx.db, new(pipeline)) == 2
    versions.delete_version(ctx, "m", 2)
    assert publish(ctx.db, new(pipeline)) == 3


def test_a_publication_that_fails_uses_up_no_number(database: Database, pipeline: Pipeline) -> None:
    publish(database, new(pipeline))

    def fail() -> None:
        with database.write() as tx:
            publishing.publish(tx, new(pipeline), "always")
            raise ZeroDivisionError

    before = rows.all_rows(database)
    with pytest.raises(ZeroDivisionError):
        fail()
    assert rows.all_rows(database) == before
    assert publish(database, new(pipeline)) == 2


def test_a_job_that_lost_its_claim_publishes_nothing(database: Database, pipeline: Pipeline) -> None:
    claim = rows.claimed(database, rows.queued(database))
    with database.write() as tx:
        queue.release(tx, claim, reason="stop")

    def end() -> None:
        with database.write() as tx:
            number = publishing.publish(tx, new(pipeline), "always")
            queue.finish(tx, claim, "succeeded", result={"version": number})

    before = rows.all_rows(database)
    with pytest.raises(LostClaimError):
        end()
    assert rows.all_rows(database) == before


def test_what_goes_live_is_what_was_asked_for(database: Database, pipeline: Pipeline) -> None:
    publish(database, new(pipeline), "never")
    assert live(database) is None
    publish(database, new(pipeline), "if_first")
    assert live(database) == (2, 1), "nothing was live yet"
    publish(database, new(pipeline), "if_first")
    assert live(database) == (2, 1)
    publish(database, new(pipeline), "always")
    assert live(database) == (4, 2)


@pytest.mark.parametrize(
    ("metric", "before", "after", "goes_live"),
    [
        ("f1_micro", 0.5, 0.6, True),
        ("f1_micro", 0.6, 0.5, False),
        ("f1_micro", 0.5, 0.5, False),
        ("hamming_loss", 0.5, 0.4, True),
        ("hamming_loss", 0.4, 0.5, False),
        ("one_error", 0.2, 0.1, True),
    ],
)
def test_only_a_better_version_goes_live(
    database: Database, pipeline: Pipeline, metric: str, before: float, after: float, goes_live: bool
) -> None:
    promote = PromoteIfBetter.model_validate({"if_better": {"metric": metric}})
    publish(database, new(pipeline, test={metric: before}), promote)
    assert live(database) == (1, 1), "the first one is better than none"
    publish(database, new(pipeline, test={metric: after}), promote)
    assert live(database) == ((2, 2) if goes_live else (1, 1))


def test_what_was_not_measured_is_not_better_and_says_so(database: Database, pipeline: Pipeline) -> None:
    promote = PromoteIfBetter.model_validate({"if_better": {"metric": "f1_micro"}})
    publish(database, new(pipeline, test={"f1_micro": 0.1}), promote)
    unmeasured = new(pipeline)
    publish(database, unmeasured, promote)
    assert live(database) == (1, 1)
    assert any("f1_micro was not measured" in warning for warning in unmeasured.warnings)


def test_one_of_many_who_move_an_alias_from_the_same_revision_succeeds(
    database: Database, pipeline: Pipeline
) -> None:
    publish(database, new(pipeline), "always")
    numbers = [publish(database, new(pipeline)) for _ in range(5)]
    together = threading.Barrier(len(numbers))

    def move(number: int) -> int | None:
        together.wait()
        try:
            return versions.put_alias(database, "m", "live", AliasPut(version=number), '"1"').version
        except PreconditionFailed:
            return None

    with ThreadPoolExecutor(len(numbers)) as pool:
        moved = [number for number in pool.map(move, numbers) if number is not None]
    assert len(moved) == 1
    assert live(database) == (moved[0], 2)


# Writers of SQLite come one after the other.
@pytest.mark.parametrize("kind_of_database", ["postgresql"], indirect=True)
def test_an_alias_is_not_deleted_under_the_hands_of_a_publication(
    database: Database, pipeline: Pipeline
) -> None:
    publish(database, new(pipeline), "always")
    with ThreadPoolExecutor(1) as pool:
        with database.write() as tx:
            publishing.publish(tx, new(pipeline), "never")
            seen = tx.session.get(tables.ModelAlias, ("m", "live"))
            deleting = pool.submit(versions.delete_alias, database, "m", "live")
            rows.wait_for_lock_wait(database)
            assert publishing.set_alias(tx, "m", "live", 2) is seen
        deleting.result()
    assert live(database) is None


def test_a_version_that_serves_cannot_be_deleted(ctx: Any, pipeline: Pipeline) -> None:
    publish(ctx.db, new(pipeline), "always")
    with pytest.raises(Conflict) as refused:
        versions.delete_version(ctx, "m", 1)
    assert refused.value.code == "version_in_use"


def test_a_repeated_import_makes_one_version_and_keeps_one_file(ctx: AppContext, pipeline: Pipeline) -> None:
    def send(idempotency_key: str | None, seed: int = 0) -> ModelVersion:
        key = versions.artifact_key()
        with ctx.storage.create(key) as file, ctx.storage.temporary_file() as path:
            artifact.save(pipeline, path, extra={"seed": seed})
            file.write(path.read_bytes())
        return versions.import_version(ctx, "m", key, Idempotency("key_1", idempotency_key, "path"))

    first = send("k")
    assert send("k").model_dump_json() == first.model_dump_json()
    with pytest.raises(Conflict) as refused:
        send("k", seed=1)
    assert refused.value.code == "idempotency_key_reused"
    assert [send(None).version, send("another").version] == [2, 3]
    with ctx.db.read() as session:
        kept = set(session.scalars(select(tables.ModelVersion.artifact_key)))
    assert {found.key for found in ctx.storage.files("artifacts")} == kept
    assert len(kept) == 3
