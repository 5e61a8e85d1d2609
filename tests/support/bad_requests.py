"""Shared helpers for tests that send bad requests, and that check the stored state of the service."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias

from contract import problem_of
from stack import BYTES, Stack
from waiting import wait_for

WORKER_TABLES = {"workers", "stored_counters"}
"""Tables that change without a request: the workers write heartbeats."""

JSON = {"Content-Type": "application/json"}
RAW = {"Content-Type": "message/rfc822"}

DATASETS, JOBS, PREDICT = "/v1/datasets", "/v1/training-jobs", "/v1/models/bad-input/predict"
ROUTER, MESSAGES, MESSAGE_PARTS, ALIAS = (
    "/v1/routers/r",
    "/v1/routers/bad-input/messages",
    "/v1/routers/bad-input/message-parts",
    "/v1/models/bad-input/aliases/live",
)
CONTENT = "/v1/datasets/WAITING/content"
INVALID, MALFORMED, NOT_FOUND = "invalid_request", "malformed_request", "not_found"
DEEP = "[" * 100_000
LONG = "9" * 5000

Case: TypeAlias = tuple[str, str, str, str | None, int, str, str | None]
"""Name, method, path and body of a bad request; status, code and pointer of the response."""


@dataclass(frozen=True)
class Known:
    """Resources to which the requests of these tests refer.

    Attributes:
        stack: the service.
        text: id of a data set with texts.
        numbers: id of a data set with numeric features.
        waiting: id of a data set without content.
        model: name of a model that is trained on ``text``.
        numeric_model: name of a model that is trained on ``numbers``.
        router: name of a router of ``model``.
    """

    stack: Stack
    text: str
    numbers: str
    waiting: str
    model: str = "bad-input"
    numeric_model: str = "bad-input-numeric"
    router: str = "bad-input"

    def fill(self, text: str) -> str:
        """Replace placeholders in a path or a body with the ids of this run."""
        names = ("TEXT", self.text), ("NUMBERS", self.numbers), ("WAITING", self.waiting)
        for name, value in names:
            text = text.replace(name, value)
        return text


def stored_state(stack: Stack, *, history: bool = True) -> dict[str, list[Any]]:
    """Return the stored state of the service: the rows of its database and the files of its storage.

    Without ``history``, the state excludes jobs, because a job remains after its data set is deleted.
    """
    ignored = WORKER_TABLES if history else WORKER_TABLES | {"jobs", "job_events"}
    with closing(sqlite3.connect(f"file:{stack.data / 'covey.db'}?mode=ro", uri=True)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows: dict[str, list[Any]] = {
            name: sorted(map(repr, db.execute(f'SELECT * FROM "{name}"')))  # noqa: S608 - names from the database
            for name in names
            if name not in ignored
        }
    storage = stack.data / "storage"
    files = sorted(str(path.relative_to(storage)) for path in storage.rglob("*") if path.is_file())
    return {**rows, "files": files}


def expect_unchanged(stack: Stack, before: dict[str, list[Any]], *, history: bool = True) -> None:
    """Check that the stored state is the same as before. A worker can take a moment to delete its files."""

    def unchanged() -> bool | None:
        return stored_state(stack, history=history) == before or None

    try:
        wait_for(unchanged, what="the stored state of before")
    except TimeoutError:
        assert stored_state(stack, history=history) == before


def training(**changes: Any) -> str:
    request = {"model": "refused", "dataset_id": "TEXT", "learner": {"algorithm": "mp_boost", "rounds": 3}}
    return json.dumps({**request, **changes})


def predict(**changes: Any) -> str:
    return json.dumps({"instances": [{"text": "invoice"}], **changes})


def training_with_covering(value: Any) -> str:
    return training(learner={"algorithm": "adaboost_lc", "covering": value})


def expect_rejected(
    known: Known, method: str, path: str, body: str | None, status: int, code: str, pointer: str | None
) -> None:
    """Send a request, and check the problem that the API returns."""
    content = None if body is None else known.fill(body).encode()
    raw = method in ("PUT", "POST") and path.endswith(("/content", "/versions"))
    headers = BYTES if raw else JSON if content is not None else {}
    response = known.stack.http.request(method, known.fill(path), content=content, headers=headers)
    problem = problem_of(response, status, code, pointer)
    assert len(response.content) < 5000, "the response does not repeat the request"
    if status == 405:
        allowed = {
            DATASETS: "GET, HEAD, OPTIONS, POST",
            "/v1/datasets/TEXT": "DELETE, GET, HEAD, OPTIONS, PATCH",
            "/health/live": "GET, HEAD, OPTIONS",
        }
        assert response.headers["Allow"] == allowed[path]
    if pointer:
        assert pointer in problem["detail"] or problem["errors"][0]["message"] in problem["detail"]


def line(**changes: Any) -> bytes:
    """A line of JSON Lines with a valid example."""
    return json.dumps({"text": "a word", "labels": ["x"], **changes}).encode() + b"\n"


GOOD = line() * 3
