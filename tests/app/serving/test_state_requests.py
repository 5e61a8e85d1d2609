"""Requests and the snapshot of their process: no SQL, and what a client has seen is in the next response."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import in_process
import pytest
from in_process_api import InProcessApi
from sqlalchemy import event
from starlette.types import Message, Receive, Scope, Send

from app.api.catalog_expiry import CatalogExpiry
from app.db.session import Database
from app.registry import aliases
from app.registry import service as registry
from app.registry.schemas import AliasPut
from app.serving import state

PREDICT = "/v1/models/m/predict"
BODY = {"instances": [{"text": "my invoice is wrong"}]}
MESSAGES = "/v1/routers/desk/messages"


@pytest.fixture
def api(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> InProcessApi:
    """The API with two versions of a model and a router. It looks for changes only if a request needs it."""
    monkeypatch.setattr(state, "POLL_SECONDS", 3600.0)
    service: InProcessApi = request.getfixturevalue("service")
    dataset = service.dataset()
    service.train(dataset)
    service.train(dataset)
    put_router(service, "old@example.org")
    return service


def put_router(api: InProcessApi, fallback: str) -> None:
    api.call("PUT", "/v1/routers/desk", 200, json={"model": "m", "fallback": fallback})


def predicted_version(api: InProcessApi, version: int | str = "live") -> int:
    number: int = api.call("POST", PREDICT, 200, json={**BODY, "version": version})["version"]
    return number


def routed_to(api: InProcessApi, n: int) -> list[str]:
    """Route the n-th message. It has no text, so it goes to the fallback."""
    mail = f"Message-ID: <{n}@example.org>\r\n\r\n.".encode()
    headers = {"Content-Type": "message/rfc822"}
    destinations: list[str] = api.call("POST", MESSAGES, 200, content=mail, headers=headers)["destinations"]
    return destinations


@contextmanager
def recorded_statements(db: Database) -> Iterator[list[str]]:
    statements: list[str] = []

    def record(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("BEGIN"):
            statements.append(statement)

    event.listen(db.engine, "before_cursor_execute", record)
    yield statements
    event.remove(db.engine, "before_cursor_execute", record)


def test_a_prediction_executes_no_statement_and_a_message_only_that_of_its_decision(
    api: InProcessApi,
) -> None:
    predicted_version(api, 2)
    routed_to(api, 0)
    with recorded_statements(api.ctx.db) as statements:
        for version in ("live", 1, 2, 2):
            predicted_version(api, version)
    assert len(statements) == 2, "version 1 is read by its number once, with the revisions"
    with recorded_statements(api.ctx.db) as statements:
        for _ in range(3):
            predicted_version(api)
            predicted_version(api, 1)
    assert statements == []
    with recorded_statements(api.ctx.db) as statements:
        for n in range(1, 4):
            routed_to(api, n)
    assert [statement.split()[:3] for statement in statements] == [["INSERT", "INTO", "decisions"]] * 3


def test_a_request_sees_the_changes_of_the_requests_before_it(api: InProcessApi) -> None:
    for version in (2, 1, 2):
        api.call("PUT", "/v1/models/m/aliases/live", 200, json={"version": version})
        assert predicted_version(api) == version
    for n, fallback in enumerate(("new@example.org", "newer@example.org")):
        put_router(api, fallback)
        assert routed_to(api, n) == [fallback]
    api.call("DELETE", "/v1/routers/desk", 204)
    mail = {"content": b"\r\n.", "headers": {"Content-Type": "message/rfc822"}}
    api.call("POST", MESSAGES, 404, **mail)
    put_router(api, "again@example.org")
    assert routed_to(api, 9) == ["again@example.org"]
    key = api.call("POST", "/v1/api-keys", 201, json={"name": "test", "scopes": ["predict"]})
    headers = {"Authorization": f"Bearer {key['secret']}"}
    api.call("POST", PREDICT, 200, json=BODY, headers=headers)
    fresh = api.call("POST", f"/v1/api-keys/{key['id']}/rotate", 200, json={"grace_seconds": 0})
    api.call("POST", PREDICT, 401, json=BODY, headers=headers)
    headers = {"Authorization": f"Bearer {fresh['secret']}"}
    api.call("POST", PREDICT, 200, json=BODY, headers=headers)
    api.call("DELETE", f"/v1/api-keys/{key['id']}", 204)
    api.call("POST", PREDICT, 401, json=BODY, headers=headers)
    api.call("DELETE", "/v1/routers/desk", 204)
    api.call("DELETE", "/v1/models/m", 204)
    api.call("POST", PREDICT, 404, json=BODY)


def test_a_client_that_sees_a_training_succeed_gets_its_version_from_the_same_process(
    api: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    (dataset,) = api.call("GET", "/v1/datasets", 200)["items"]
    body = {
        "dataset_id": dataset["id"],
        "model": "m",
        "learner": {"algorithm": "naive_bayes"},
        "promote": "always",
    }
    job = api.call("POST", "/v1/training-jobs", 202, json=body)
    assert predicted_version(api) == 1
    with other_process(api) as worker:
        in_process.work(replace(api.ctx, db=worker))
    assert predicted_version(api) == 1, "the process does not know about the version yet"
    assert api.call("GET", f"/v1/training-jobs/{job['id']}", 200)["state"] == "succeeded"
    assert predicted_version(api) == 3


def test_a_number_that_another_process_has_deleted_is_found_until_the_next_check(api: InProcessApi) -> None:
    assert predicted_version(api, 2) == 2
    with other_process(api) as worker:
        registry.delete_version(replace(api.ctx, db=worker), "m", 2)
        aliases.put(worker, "m", "spare", AliasPut(version=1), None)
    assert predicted_version(api, "spare") == 1, "a request for something unknown waits for a check"
    api.call("POST", PREDICT, 404, json={**BODY, "version": 2})


@contextmanager
def other_process(api: InProcessApi) -> Iterator[Database]:
    """The database as another process uses it."""
    db = Database(api.ctx.db.engine.url.render_as_string())
    yield db
    db.close()


@pytest.mark.parametrize(("path", "expires"), [("/v1/models", 3), ("/health/ready", 0), ("/metrics", 0)])
def test_every_message_of_a_response_expires_the_snapshot_except_health(path: str, expires: int) -> None:
    """An event stream is one response that shows many changes."""
    sent: list[tuple[str, int]] = []
    expired: list[None] = []

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start"})
        await send({"type": "http.response.body", "more_body": True})
        await send({"type": "http.response.body"})

    async def send(message: Message) -> None:
        sent.append((message["type"], len(expired)))

    async def receive() -> Message:
        raise AssertionError

    state = SimpleNamespace(catalog=SimpleNamespace(expire=lambda: expired.append(None)))
    scope = {"type": "http", "path": path, "app": SimpleNamespace(state=state)}
    asyncio.run(CatalogExpiry(app)(scope, receive, send))
    assert len(expired) == expires
    # Before the client can read the message.
    assert [n for _, n in sent] == ([1, 2, 3] if expires else [0, 0, 0])
