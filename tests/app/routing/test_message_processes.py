"""API processes that record decisions in one database, and that are killed around the commit."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import fork_server
import held_api
import httpx
import in_process
import pytest
from message_routing import message_routing
from production import free_port
from sqlalchemy import select
from waiting import LIMIT_SECONDS, wait_for

from app.context import AppContext
from app.db import tables
from app.routing import service
from app.routing.schemas import RouterPut
from app.training import service as training
from app.training.schemas import TrainingJobCreate
from models.mail import read_message


@pytest.fixture
def ctx_with_router(ctx: AppContext) -> AppContext:
    examples = [
        {"text": f"{word} {n}", "labels": [word]}
        for n in range(4)
        for word in ("invoice", "shipment", "offer")
    ]
    body = {"model": "m", "dataset_id": in_process.dataset(ctx, examples)}
    training.create(
        ctx,
        TrainingJobCreate.model_validate({**body, "learner": {"algorithm": "naive_bayes"}}),
        in_process.WITHOUT_KEY,
    )
    in_process.work(ctx)
    service.put(ctx.db, "desk", RouterPut(model="m", fallback="front@example.org"))
    return ctx


def message(words: str) -> bytes:
    return f"Message-ID: <{words}@example.org>\r\nSubject: {words}\r\n\r\n{words}".encode()


class Api:
    """A running API process."""

    def __init__(self, process: fork_server.Command, url: str) -> None:
        self._process = process
        self._url = url

    def send(self, words: str) -> dict[str, Any]:
        """Route a message, and return the decision."""
        response = httpx.post(
            f"{self._url}/v1/routers/desk/messages",
            content=message(words),
            headers={"Content-Type": "message/rfc822"},
            timeout=LIMIT_SECONDS,
            trust_env=False,
        )
        assert response.status_code == 200, response.text
        decision: dict[str, Any] = response.json()
        return decision

    def is_live(self) -> bool:
        assert self._process.poll() is None
        with suppress(httpx.TransportError):
            return httpx.get(f"{self._url}/health/live", trust_env=False).status_code == 200
        return False

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def api(ctx: AppContext) -> Iterator[Api]:
    """Run an API process until the block ends; see ``held_api``."""
    port = free_port()
    settings = {
        "COVEY_DATA_DIR": ctx.settings.data_dir,
        "COVEY_DATABASE_URL": ctx.settings.resolved_database_url(),
    }
    environment = {**os.environ, **{name: str(value) for name, value in settings.items()}}
    with Path(os.devnull).open("wb") as log:
        process = fork_server.start([held_api.__file__, "api", "--port", str(port)], environment, log, log)
    started = Api(process, f"http://127.0.0.1:{port}")
    try:
        wait_for(lambda: started.is_live() or None, what="the API")
        yield started
    finally:
        started.kill()


def decisions(ctx: AppContext) -> dict[str, dict[str, Any]]:
    """The recorded decisions by the subject of the message."""
    with ctx.db.read() as session:
        found = list(session.scalars(select(tables.Decision.response)))
    by_subject = {decision["message"]["subject"]: decision for decision in found}
    assert len(by_subject) == len(found)
    return by_subject


def test_a_message_has_one_decision_in_two_processes_also_if_they_are_killed(
    ctx_with_router: AppContext,
) -> None:
    ctx = ctx_with_router
    with ThreadPoolExecutor(16) as pool, api(ctx) as one, api(ctx) as two:
        same = [pool.submit(process.send, "shipment") for _ in range(4) for process in (one, two)]
        different = [pool.submit((one, two)[n % 2].send, f"offer {n}") for n in range(8)]
        assert len({future.result(LIMIT_SECONDS)["decision_id"] for future in same}) == 1
        assert len({future.result(LIMIT_SECONDS)["decision_id"] for future in different}) == 8
        assert len(decisions(ctx)) == 9

        # Killed before the commit: the message will get a new decision.
        lost = pool.submit(one.send, "hold before")
        with pytest.raises(TimeoutError):
            lost.result(0.2)
        one.kill()
        with pytest.raises(httpx.TransportError):
            lost.result(LIMIT_SECONDS)
        assert "hold before" not in decisions(ctx)

        # Killed after the commit: the message will get the recorded decision.
        lost = pool.submit(two.send, "hold after")
        committed = wait_for(lambda: decisions(ctx).get("hold after"), what="the commit")
        assert not lost.done()
        two.kill()
        with pytest.raises(httpx.TransportError):
            lost.result(LIMIT_SECONDS)
    with message_routing(ctx) as routing:
        before, after = (
            json.loads(routing.route("desk", read_message(message(words)), explain=None))
            for words in ("hold before", "hold after")
        )
    assert after == committed
    assert decisions(ctx)["hold before"] == before
    assert len(decisions(ctx)) == 11
