"""Every operation that reads executes a bounded number of statements, which indexes serve.

The operations come from the OpenAPI document, so that no new one is forgotten.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from sqlalchemy import event, text

from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.ids import new_id
from app.keys import service as keys
from app.keys.schemas import ApiKeyCreate
from app.main import create_app

NOW = datetime(2026, 1, 1, tzinfo=UTC)

MOST_STATEMENTS = 5
"""Largest number of statements of an operation, without those that find the API key."""

MORE_STATEMENTS = {"experiments_get_report": 8, "health_metrics": 12, "routers_get_report": 6}

WITHOUT_STATEMENTS = {"learners_list", "health_live"}

UNPAGED = {"datasets_list_examples", "experiments_list_errors"}
"""Lists that do not come from rows."""

SMALL_TABLES = "workers|webhooks|routers|stored_counters"
"""Tables with few rows."""
QUERY = {"limit": 500, "configuration": 0}
"""Values of query parameters."""

NAMES = {
    "models": "m",
    "routers": "desk",
}
"""Value of ``{name}`` by the first part of the path."""


def insert(db: Database, n: int, first: int = 0) -> dict[str, str]:
    """Insert ``n`` rows that each list can return, with all their parts. Return values of path parameters."""
    ids: dict[str, str] = {}
    with db.write() as tx:
        add = tx.session.add
        if not first:
            add(tables.Model(name="m", last_version=100, created_at=NOW))
            tx.session.flush()
        for number in range(first + 1, first + n + 1):
            dataset = tables.Dataset(
                id=new_id("ds"), name="d", state="awaiting_content", options={}, created_at=NOW
            )
            add(dataset)
            tx.session.flush()
            jobs = [
                tables.Job(
                    id=new_id("job"),
                    kind=kind,
                    state="failed",
                    spec=SPEC | {"dataset_id": dataset.id},
                    dataset_id=dataset.id,
                    model="m",
                    due_at=NOW,
                    created_at=NOW,
                    **CLAIM_ORDER,
                )
                for kind in ("train", "evaluate", "experiment", "batch_prediction")
            ]
            tx.session.add_all(jobs)
            tx.session.flush()
            train, evaluate, plan, predict = jobs
            ids.setdefault("dataset_id", dataset.id)
            ids.setdefault("job_id", train.id)
            add(tables.Model(name=f"m{number:03}", last_version=1, created_at=NOW))
            tx.session.flush()
            for model, version in (("m", number), (f"m{number:03}", 1)):
                add(
                    tables.ModelVersion(
                        model=model,
                        version=version,
                        artifact_key=f"artifacts/{model}-{version}.covey",
                        artifact_sha256="0" * 64,
                        artifact_bytes=3,
                        training_job_id=train.id,
                        dataset_id=dataset.id,
                        description=DESCRIPTION,
                        created_at=NOW,
                    )
                )
                tx.session.flush()
                add(
                    tables.ModelAlias(
                        model=model, alias=f"a{version:03}", version=version, revision=1, updated_at=NOW
                    )
                )
            add(
                tables.AliasChange(
                    model="m", alias="a001", revision=number, reason="put", to_version=number, changed_at=NOW
                )
            )
            tx.session.flush()
            evaluation = tables.Evaluation(
                id=new_id("evl"),
                model="m",
                version=1,
                job_id=evaluate.id,
                of_training=False,
                dataset_id=dataset.id,
                request={"dataset_id": dataset.id, "part": "all"},
                content={"all": PART},
                created_at=NOW,
            )
            own = tables.Evaluation(
                id=new_id("evl"),
                model="m",
                version=number,
                job_id=train.id,
                of_training=True,
                dataset_id=dataset.id,
                request={},
                content={"train": PART},
                created_at=NOW,
            )
            tx.session.add_all([evaluation, own])
            ids.setdefault("evaluation_id", evaluation.id)
            batch_prediction = tables.BatchPrediction(
                id=new_id("bp"),
                model="m",
                version=1,
                dataset_id=dataset.id,
                request={"model": "m", "dataset_id": dataset.id, "format": "ndjson"},
                job_id=predict.id,
                result_key="artifacts/m-1.covey",
                result={"documents": 1, "failed_documents": 0, "sha256": "0" * 64, "size_bytes": 3},
                created_at=NOW,
            )
            add(batch_prediction)
            ids.setdefault("batch_prediction_id", batch_prediction.id)
            experiment = tables.Experiment(
                id=new_id("exp"),
                dataset_id=dataset.id,
                request=EXPERIMENT | {"dataset_id": dataset.id},
                state="running",
                job_id=plan.id,
                created_at=NOW,
            )
            add(experiment)
            tx.session.flush()
            ids.setdefault("experiment_id", experiment.id)
            user = tables.User(
                id=new_id("usr"),
                issuer="https://id.example",
                subject=str(number),
                name="Ann",
                role="reader",
                created_at=NOW,
                last_sign_in_at=NOW,
            )
            add(user)
            ids.setdefault("user_id", user.id)
            router = tables.Router(
                name="desk" if number == 1 else f"desk{number}",
                id="rtr_1" if number == 1 else new_id("rtr"),
                model="m",
                alias="a001",
                config={"model": "m", "version": "a001", "fallback": "front@example.org"},
                created_at=NOW,
                updated_at=NOW,
            )
            decision = tables.Decision(
                id=new_id("dec"),
                router_id="rtr_1",
                router="desk",
                message_key=f"key{number}",
                response=DECISION,
                created_at=NOW,
                disposition="routed",
                model="m",
                version=1,
                feedback=["a"],
                feedback_state="corrected",
                unknown_words=0.5,
            )
            tx.session.add_all([router, decision])
            ids.setdefault("decision_id", decision.id)
            webhook = tables.Webhook(
                id=new_id("wh"),
                url="https://hooks.invalid/",
                events=["job.ended"],
                secret="whsec_",  # noqa: S106 - no secret
                created_at=NOW,
                decisions_read_to=NOW,
            )
            add(webhook)
            tx.session.flush()
            ids.setdefault("webhook_id", webhook.id)
            add(
                tables.WebhookDelivery(
                    id=new_id("msg"),
                    webhook_id=ids["webhook_id"],
                    event="job.ended",
                    data={},
                    state="delivered",
                    due_at=NOW,
                    created_at=NOW,
                )
            )
            add(
                tables.ApiKey(
                    id=new_id("key"), name="k", secret_sha256=f"{number}", scopes=[], created_at=NOW
                )
            )
        return ids


def insert_parts(db: Database, ids: dict[str, str], n: int, first: int = 0) -> None:
    """Insert ``n`` parts of each resource that the requests name."""
    with db.write() as tx:
        for number in range(first + 1, first + n + 1):
            job = tables.Job(
                id=new_id("job"),
                kind="cell",
                state="failed",
                spec={},
                due_at=NOW,
                created_at=NOW,
                error=ERROR,
                **CLAIM_ORDER,
            )
            tx.session.add(job)
            tx.session.flush()
            tx.session.add_all(
                [
                    tables.DatasetLabel(
                        dataset_id=ids["dataset_id"], position=number, label=f"{number}", count=1
                    ),
                    tables.JobEvent(job_id=ids["job_id"], seq=number, at=NOW, type="phase", detail={}),
                    tables.CurvePoint(job_id=ids["job_id"], step=number, measures={}),
                    tables.ExperimentCell(
                        experiment_id=ids["experiment_id"], configuration=0, fold=number, job_id=job.id
                    ),
                ]
            )


CLAIM_ORDER: dict[str, int] = {"priority": 0, "claim_order": 2000}
ERROR: dict[str, Any] = {
    "type": "urn:covey:problem:bad_data",
    "title": "Bad data",
    "status": 422,
    "code": "bad_data",
    "detail": "it failed",
}
SPEC = {
    "model": "m",
    "learner": {"algorithm": "naive_bayes"},
}
PARAMETERS = {
    "labels": ["a"],
    "learner": {"algorithm": "naive_bayes"},
    "features": {"kind": "text"},
    "decision": {"kind": "sign"},
}
DESCRIPTION: dict[str, Any] = {
    **PARAMETERS,
    "closed_under_ancestors": False,
    "seed": 0,
    "metrics": None,
    "facts": {},
    "warnings": [],
    "dataset_sha256": None,
    "software": {},
    "timings": {},
}
PART: dict[str, Any] = {"measures": {}, "labels": [], "histograms": [], "worst": [], "warnings": []}
EXPERIMENT: dict[str, Any] = {
    "split": {"kind": "folds", "folds": 50},
    "configurations": [
        {name: PARAMETERS[name] for name in ("learner", "features", "decision")} | {"name": "c"}
    ],
}
DECISION: dict[str, Any] = {
    "decision_id": "dec_1",
    "router": "desk",
    "model": "m",
    "version": 1,
    "disposition": "routed",
    "departments": [],
    "destinations": [],
    "ranking": [],
    "message": {"automated": False, "defects": [], "truncated": False},
}


@contextmanager
def recorded(db: Database) -> Iterator[list[tuple[str, Any]]]:
    """Record the statements that the database executes, with their parameters."""
    statements: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        # The catalog looks for changes in the background at any time.
        if not statement.startswith(("BEGIN", "PRAGMA")) and "catalog_revisions" not in statement:
            statements.append((statement, parameters))

    event.listen(db.engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(db.engine, "before_cursor_execute", note)


@pytest.fixture
def read_all(
    ctx: AppContext, database: Database, monkeypatch: pytest.MonkeyPatch
) -> Callable[[dict[str, str]], dict[str, list[tuple[str, Any]]]]:
    """Returns a function that calls every GET operation, and returns its statements by operation."""
    # The use of a key is recorded in the background at any time.
    monkeypatch.setattr("app.main.LastUsed.start", lambda _: None)
    monkeypatch.setattr("app.main.LastUsed.stop", lambda _: None)
    secret = keys.create(database, ApiKeyCreate(name="test", scopes=["admin"])).secret
    with ctx.storage.create("artifacts/m-1.covey") as file:
        file.write(b"abc")

    async def run(ids: dict[str, str]) -> dict[str, list[tuple[str, Any]]]:
        app = create_app(ctx.settings)
        result = {}
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app=app),
                base_url="http://127.0.0.1",
                headers={"Authorization": f"Bearer {secret}"},
            ) as client,
        ):
            db: Database = app.state.context.db
            for path, operations in app.openapi()["paths"].items():
                if "get" not in operations:
                    continue
                operation = operations["get"]
                url = path
                for parameter in re.findall(r"\{(\w+)\}", path):
                    url = url.replace(f"{{{parameter}}}", _value(parameter, path, ids))
                names = {p["name"] for p in operation.get("parameters", [])}
                params = {name: value for name, value in QUERY.items() if name in names}
                with recorded(db) as statements:
                    response = await client.get(url, params=params)
                expected = {
                    "datasets_list_examples": 409,
                    "models_list_pivots": 503,
                    "routers_get_thresholds": 503,
                    "decisions_get_message": 404,  # the message is not kept
                    "health_ready": 503,
                }
                status = expected.get(operation["operationId"], 200)
                assert response.status_code == status, (url, response.text)
                result[operation["operationId"]] = statements
        return result

    return lambda ids: asyncio.run(run(ids))


def _value(parameter: str, path: str, ids: dict[str, str]) -> str:
    if parameter == "name":
        return NAMES[path.split("/")[2]]
    return {"version": "1", "alias": "a001", **ids}[parameter]


def test_no_operation_executes_more_statements_for_more_rows(
    database: Database, read_all: Callable[[dict[str, str]], dict[str, list[tuple[str, Any]]]]
) -> None:
    ids = insert(database, 2)
    insert_parts(database, ids, 2)
    few = read_all(ids)
    insert(database, 10, first=2)
    insert_parts(database, ids, 10, first=2)
    many = read_all(ids)
    assert few.keys() == many.keys()
    for operation, statements in many.items():
        executed = "\n".join(statement for statement, _ in statements)
        assert len(statements) <= len(few[operation]), f"{operation} executes\n{executed}"
        most = MORE_STATEMENTS.get(operation, MOST_STATEMENTS)
        assert len(statements) <= most, f"{operation} executes\n{executed}"
        assert bool(statements) == (operation not in WITHOUT_STATEMENTS), operation


@pytest.mark.parametrize("kind_of_database", ["postgresql"], indirect=True)
def test_indexes_serve_every_statement_of_every_operation(
    database: Database, read_all: Callable[[dict[str, str]], dict[str, list[tuple[str, Any]]]]
) -> None:
    ids = insert(database, 2)
    insert_parts(database, ids, 2)
    for operation, statements in read_all(ids).items():
        for statement, parameters in statements:
            if not statement.startswith("SELECT") or "FROM" not in statement:
                continue
            with database.read() as session:
                # Otherwise PostgreSQL reads such small tables as a whole.
                session.execute(text("SET LOCAL enable_seqscan = off"))
                session.execute(text("SET LOCAL enable_sort = off"))
                plan = "\n".join(
                    row[0] for row in session.connection().exec_driver_sql(f"EXPLAIN {statement}", parameters)
                )
            if not re.search(f"Seq Scan on ({SMALL_TABLES})", plan):
                assert "Seq Scan" not in plan, f"{operation} executes\n{statement}\n{plan}"
            if operation.endswith("list") or "_list_" in operation:
                assert not re.search(r"^ *(->)? *Sort", plan.split("\n")[1] if "Limit" in plan else ""), (
                    f"{operation} sorts\n{statement}\n{plan}"
                )
