"""Reading and predicting need no writable database, so they work on a full disk."""

from __future__ import annotations

import threading
from typing import Any

from api_process import client_of
from contract import DOCUMENT
from in_process import dataset, work
from sqlalchemy import event, exc
from stack import departments

from app.context import AppContext
from app.http.paging import Page
from app.keys import service as keys
from app.keys.schemas import ApiKeyCreate

FULL = exc.OperationalError("", {}, Exception("database or disk is full"))


def test_no_reading_operation_writes(ctx: AppContext) -> None:
    key = keys.create(ctx.db, ApiKeyCreate(name="admin", scopes=["admin"]))
    dataset_id = dataset(ctx, departments(24))
    refused: list[str] = []

    def refuse_writes(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        # The thread of app.keys.uses tries again later.
        if threading.current_thread().name == "key-uses":
            raise FULL
        if not statement.startswith(("SELECT", "PRAGMA shrink_memory")) and statement != "BEGIN":
            refused.append(statement)
            raise FULL

    with client_of(ctx, key.secret) as client:
        request = {
            "model": "m",
            "dataset_id": dataset_id,
            "learner": {"algorithm": "mp_boost", "rounds": 2},
        }
        job = client.request("POST", "/v1/training-jobs", json=request).json()["id"]
        work(ctx)
        router = client.request("PUT", "/v1/routers/m", json={"model": "m", "fallback": "front"})
        assert router.status_code == 200, router.text
        decision = client.request(
            "POST", "/v1/routers/m/messages", json={"email": {"text": "an invoice"}}
        ).json()
        names = {
            "dataset_id": dataset_id,
            "job_id": job,
            "name": "m",
            "version": "1",
            "alias": "live",
            "decision_id": decision["decision_id"],
        }
        event.listen(client.app.state.context.db.engine, "before_cursor_execute", refuse_writes)
        statuses = {}
        for path, methods in DOCUMENT["paths"].items():
            if "get" in methods and path != "/health/ready":  # no worker runs
                concrete = path
                for name, value in names.items():
                    concrete = concrete.replace(f"{{{name}}}", value)
                response = client.get(concrete.replace("{", "").replace("}", ""))
                statuses[path] = response.status_code
                assert response.status_code < 500, (path, response.text)
        instances = {"instances": [{"text": "an invoice"}]}
        predicted = client.request("POST", "/v1/models/m/predict", json=instances)
        assert predicted.status_code == 200, predicted.text
        assert refused == []
        event.remove(client.app.state.context.db.engine, "before_cursor_execute", refuse_writes)
    assert sum(status == 200 for status in statuses.values()) > 15, statuses
    listed = keys.page(ctx.db, Page(10, None))
    assert listed.items[0].last_used_at is not None, "the use of the key is written when the API stops"
