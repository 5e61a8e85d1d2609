"""Two requests that overlap on PostgreSQL have the same effect as one after the other, in either order.

The first request is held before its commit, or at a statement in the middle. The second one starts then.
SQLite has only one writer at a time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import in_process
import pytest
from new_decisions import decision
from overlap import overlap
from sqlalchemy import func, select, update

from app.batch_predictions import service as batch_predictions
from app.batch_predictions.schemas import BatchPredictionCreate
from app.context import AppContext
from app.datasets import creation
from app.datasets import service as datasets
from app.datasets.schemas import DatasetCreate
from app.db import tables
from app.db.session import Database
from app.db.upsert import insert_if_absent
from app.errors import Conflict
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluationCreate
from app.experiments import service as experiments
from app.experiments.schemas import ExperimentCreate
from app.ids import new_id
from app.registry import aliases, publishing
from app.registry import service as registry
from app.registry.publishing import NewVersion
from app.registry.schemas import AliasPut
from app.routing import service as routing
from app.routing.decision_rows import DecisionRow
from app.routing.decision_writer import DecisionWriter
from app.routing.schemas import RouterPut
from app.storage import StoredFile
from app.training import service as training
from app.training.schemas import TrainingJobCreate
from models.data.examples import Examples
from models.features import TextFeatures, TextFeaturesParameters
from models.perceptrons import MLPP
from models.pipeline import Pipeline

pytestmark = pytest.mark.parametrize("kind_of_database", ["postgresql"], indirect=True)

Request = Callable[[AppContext], Any]


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    examples = Examples("text", ["red apple", "red", "apple", "green"], [("a", "b"), ("a",), ("b",), ()])
    return Pipeline(TextFeatures(TextFeaturesParameters(kind="text")), MLPP()).fit(examples)


@pytest.fixture
def model(ctx: AppContext, pipeline: Pipeline) -> AppContext:
    """A service with a model ``m`` of two versions; the alias ``live`` is version 1."""
    for promote in ("always", "never"):
        publish(pipeline, promote)(ctx)
    return ctx


@pytest.fixture
def overlapping(ctx: AppContext, database_url: str) -> Callable[..., tuple[Any, Any]]:
    """Runs two requests, the second in the middle of the first."""

    def run(first: Request, second: Request, **options: Any) -> tuple[Any, Any]:
        def with_database(request: Request) -> Callable[[Database], Any]:
            return lambda db: request(replace(ctx, db=db))

        return overlap(database_url, with_database(first), with_database(second), **options)

    return run


def publish(pipeline: Pipeline, promote: Any) -> Request:
    new = NewVersion(
        model="m",
        pipeline=pipeline,
        artifact=StoredFile("artifacts/a.covey", "0" * 64, 10),
        metrics={},
        warnings=[],
        dataset_id=None,
        dataset_sha256=None,
        training_job_id=None,
        timings={},
    )

    def request(ctx: AppContext) -> int:
        with ctx.db.write() as tx:
            return publishing.publish(tx, new, promote).version

    return request


def put_router(**fields: Any) -> Request:
    body = RouterPut.model_validate({"model": "m", "fallback": "front@example.org", **fields})
    return lambda ctx: routing.put(ctx.db, "desk", body).name


def move_live(ctx: AppContext) -> int:
    return aliases.put(ctx.db, "m", "live", AliasPut(version=2), None).version


def set_spare(ctx: AppContext) -> int:
    return aliases.put(ctx.db, "m", "spare", AliasPut(version=1), None).version


def delete_model(ctx: AppContext) -> None:
    registry.delete_model(ctx, "m")


def delete_version(ctx: AppContext) -> None:
    registry.delete_version(ctx, "m", 2)


def delete_spare(ctx: AppContext) -> None:
    aliases.delete(ctx.db, "m", "spare")


ROUTER_RACES = [
    pytest.param({"version": "live"}, delete_model, "model_in_use", id="model"),
    pytest.param({"version": 2}, delete_version, "version_in_use", id="version"),
    pytest.param({"shadow": 2}, delete_version, "version_in_use", id="shadow version"),
    pytest.param({"version": "spare"}, delete_spare, "alias_in_use", id="alias"),
    pytest.param({"shadow": "spare"}, delete_spare, "alias_in_use", id="shadow alias"),
]


@pytest.mark.parametrize(("fields", "delete", "code"), ROUTER_RACES)
def test_what_a_new_router_uses_is_not_deleted(
    model: AppContext,
    overlapping: Callable[..., tuple[Any, Any]],
    fields: dict[str, Any],
    delete: Request,
    code: str,
) -> None:
    set_spare(model)
    assert overlapping(put_router(**fields), delete) == ("desk", code)


@pytest.mark.parametrize(("fields", "delete", "code"), ROUTER_RACES)
def test_no_router_uses_what_is_being_deleted(
    model: AppContext,
    overlapping: Callable[..., tuple[Any, Any]],
    fields: dict[str, Any],
    delete: Request,
    code: str,
) -> None:
    set_spare(model)
    assert overlapping(delete, put_router(**fields)) == (None, "unknown_version")
    assert routing_count(model) == 0


def routing_count(ctx: AppContext) -> int:
    with ctx.db.read() as session:
        return session.scalar(select(func.count()).select_from(tables.Router)) or 0


def test_an_error_names_the_router_that_uses_an_alias_as_its_shadow(model: AppContext) -> None:
    set_spare(model)
    put_router(shadow="spare")(model)
    with pytest.raises(Conflict, match="alias spare of m is used by router desk"):
        delete_spare(model)


def test_one_of_two_first_puts_of_a_router_creates_it_and_the_other_replaces_it(
    model: AppContext, overlapping: Callable[..., tuple[Any, Any]]
) -> None:
    assert overlapping(put_router(explain=True), put_router(explain=False)) == ("desk", "desk")
    router = routing.get(model.db, "desk")
    assert router.explain is False
    assert router.created_at < router.updated_at


def test_two_first_puts_of_a_router_for_different_models_both_succeed(
    model: AppContext, overlapping: Callable[..., tuple[Any, Any]], pipeline: Pipeline
) -> None:
    with model.db.write() as tx:
        new = NewVersion(
            "n", pipeline, StoredFile("artifacts/b.covey", "0" * 64, 10), {}, [], None, None, None, {}
        )
        publishing.publish(tx, new, "always")
    assert overlapping(put_router(), put_router(model="n")) == ("desk", "desk")
    assert routing.get(model.db, "desk").model == "n"


@pytest.mark.parametrize("hold", ["DELETE FROM models", "DELETE FROM model_versions", "COMMIT"])
def test_deleting_a_model_while_its_alias_is_moved_deletes_it(
    model: AppContext, overlapping: Callable[..., tuple[Any, Any]], hold: str
) -> None:
    deleted, moved = overlapping(delete_model, move_live, hold=hold)
    assert (deleted, moved) == (None, "not_found")
    with model.db.read() as session:
        assert session.get(tables.Model, "m") is None


@pytest.mark.parametrize("hold", ["UPDATE model_aliases", "COMMIT"])
@pytest.mark.parametrize("delete", [delete_model, delete_version])
def test_moving_an_alias_while_its_model_or_version_is_deleted_ends_before_the_deletion(
    model: AppContext, overlapping: Callable[..., tuple[Any, Any]], hold: str, delete: Request
) -> None:
    moved, deleted = overlapping(move_live, delete, hold=hold)
    assert moved == 2
    assert deleted == (None if delete is delete_model else "version_in_use")


def test_a_version_that_is_published_while_its_model_is_deleted_creates_the_model_again(
    model: AppContext, overlapping: Callable[..., tuple[Any, Any]], pipeline: Pipeline
) -> None:
    assert overlapping(delete_model, publish(pipeline, "always")) == (None, 1)
    assert registry.get_model(model.db, "m").aliases == {"live": 1}


@pytest.fixture
def dataset(ctx: AppContext) -> str:
    examples = [{"text": f"red apple {n}", "labels": ["a" if n % 2 else "b"]} for n in range(8)]
    return in_process.dataset(ctx, examples)


def create_training(dataset: str) -> Request:
    body = TrainingJobCreate.model_validate(
        {"model": "t", "dataset_id": dataset, "learner": {"algorithm": "naive_bayes"}}
    )
    return lambda ctx: training.create(ctx, body, in_process.WITHOUT_KEY).state


def create_experiment(dataset: str) -> Request:
    body = ExperimentCreate.model_validate(
        {
            "dataset_id": dataset,
            "split": {"kind": "folds", "folds": 2},
            "configurations": [{"learner": {"algorithm": "naive_bayes"}}],
        }
    )
    return lambda ctx: experiments.create(ctx, body, in_process.WITHOUT_KEY).state


def create_evaluation(dataset: str) -> Request:
    body = EvaluationCreate(dataset_id=dataset)
    return lambda ctx: evaluations.create(ctx, "m", 2, body, in_process.WITHOUT_KEY).state


def create_batch_prediction(dataset: str) -> Request:
    body = BatchPredictionCreate(model="m", version=2, dataset_id=dataset)
    return lambda ctx: batch_predictions.create(ctx, body, in_process.WITHOUT_KEY).state


def derive_dataset(dataset: str) -> Request:
    body = DatasetCreate.model_validate({"name": "derived", "derive": {"datasets": [dataset]}})
    states = {"ingesting": "queued"}  # of its job
    return lambda ctx: states[creation.create(ctx, body, in_process.WITHOUT_KEY).state]


CREATE = pytest.mark.parametrize(
    "create",
    [create_training, create_experiment, create_evaluation, create_batch_prediction, derive_dataset],
)


def jobs(ctx: AppContext) -> int:
    return len(in_process.queued(ctx))


@CREATE
def test_no_job_uses_a_data_set_that_is_being_deleted(
    model: AppContext,
    overlapping: Callable[..., tuple[Any, Any]],
    dataset: str,
    create: Callable[[str], Request],
) -> None:
    def delete(ctx: AppContext) -> None:
        datasets.delete(ctx, dataset)

    assert overlapping(delete, create(dataset)) == (None, "not_found")
    assert jobs(model) == 0


@CREATE
def test_a_data_set_that_a_new_job_uses_is_not_deleted(
    model: AppContext,
    overlapping: Callable[..., tuple[Any, Any]],
    dataset: str,
    create: Callable[[str], Request],
) -> None:
    def delete(ctx: AppContext) -> None:
        datasets.delete(ctx, dataset)

    created, deleted = overlapping(create(dataset), delete)
    assert (created, deleted) == ("queued", "dataset_in_use")
    assert jobs(model) == 1


def read_again(dataset: str) -> Request:
    body = DatasetCreate.model_validate({"name": "again", "from_upload": dataset})
    return lambda ctx: creation.create(ctx, body, in_process.WITHOUT_KEY).state


def test_an_upload_is_kept_for_the_data_set_that_is_read_from_it_while_the_first_one_is_deleted(
    model: AppContext, overlapping: Callable[..., tuple[Any, Any]], dataset: str
) -> None:
    def delete(ctx: AppContext) -> None:
        datasets.delete(ctx, dataset)

    assert overlapping(read_again(dataset), delete) == ("ingesting", None)
    in_process.work(model)
    with model.db.read() as session:
        assert session.scalars(select(tables.Dataset.state)).all() == ["ready"]


def test_no_data_set_is_read_from_an_upload_that_is_being_deleted(
    model: AppContext, overlapping: Callable[..., tuple[Any, Any]], dataset: str
) -> None:
    def forget(ctx: AppContext) -> None:
        with ctx.db.write() as tx:
            tx.session.execute(update(tables.Dataset).values(upload_key=None, uploaded_at=None))

    assert overlapping(forget, read_again(dataset)) == (None, "upload_not_kept")
    assert jobs(model) == 0


def test_jobs_on_one_data_set_do_not_wait_for_each_other(
    model: AppContext,
    overlapping: Callable[..., tuple[Any, Any]],
    dataset: str,
) -> None:
    assert overlapping(create_training(dataset), create_evaluation(dataset)) == ("queued", "queued")
    assert overlapping(create_evaluation(dataset), create_evaluation(dataset)) == ("queued", "queued")
    assert overlapping(create_evaluation(dataset), create_batch_prediction(dataset)) == ("queued", "queued")


@pytest.mark.parametrize("delete", [delete_model, delete_version])
@pytest.mark.parametrize("create", [create_evaluation, create_batch_prediction])
def test_a_version_that_is_deleted_is_not_used_by_a_new_job_and_the_other_way_round(
    model: AppContext,
    overlapping: Callable[..., tuple[Any, Any]],
    dataset: str,
    create: Callable[[str], Request],
    delete: Request,
) -> None:
    code = "model_in_use" if delete is delete_model else "version_in_use"
    assert overlapping(create(dataset), delete) == ("queued", code)
    in_process_cancel_all(model)
    assert overlapping(delete, create(dataset)) == (None, "not_found")
    assert jobs(model) == 0


def in_process_cancel_all(ctx: AppContext) -> None:
    with ctx.db.write() as tx:
        for job in tx.session.scalars(select(tables.Job).where(tables.Job.state == "queued")):
            job.state = "cancelled"


def insert_decision(content: str, *, fails: bool = False) -> Request:
    """Insert a decision about a message, as another process does."""

    def request(ctx: AppContext) -> None:
        with ctx.db.write() as tx:
            insert_if_absent(
                tx,
                tables.Decision,
                id=new_id("dec"),
                router_id="rtr_1",
                router="desk",
                message_key="k",
                response={"from": content},
                created_at=tx.now,
            )
            if fails:
                raise Conflict("failed", code="conflict")

    return request


def write_decision(content: str) -> Request:
    """Record a decision about the same message; returns the stored one of the other process."""

    async def write(db: Database) -> Any:
        writer = DecisionWriter(db, 10)
        writer.start()
        try:
            row = DecisionRow(decision(), "rtr_1", "k", json.dumps({"from": content}))
            return await writer.write(row)
        finally:
            await writer.stop()

    return lambda ctx: asyncio.run(write(ctx.db))


def test_the_same_message_twice_at_once_has_one_decision(
    ctx: AppContext, overlapping: Callable[..., tuple[Any, Any]]
) -> None:
    assert overlapping(insert_decision("one"), write_decision("two")) == (None, {"from": "one"})
    with ctx.db.read() as session:
        assert list(session.scalars(select(tables.Decision.response))) == [{"from": "one"}]


def test_a_message_whose_first_decision_was_rolled_back_has_the_second_one(
    ctx: AppContext, overlapping: Callable[..., tuple[Any, Any]]
) -> None:
    failing = insert_decision("one", fails=True)
    first, second = overlapping(failing, write_decision("two"), hold="INSERT INTO decisions")
    assert (first, second) == ("conflict", None)
    with ctx.db.read() as session:
        assert list(session.scalars(select(tables.Decision.response))) == [{"from": "two"}]
