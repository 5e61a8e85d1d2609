"""Helpers of the tests that send bad requests: what the requests refer to, and what the service keeps."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from contract import problem_of
from stack import Stack
from waiting import wait_for

OF_THE_WORKERS = {"workers"}
"""Tables that change by themselves: the workers' heartbeats."""

JSON = {"Content-Type": "application/json"}
RAW = {"Content-Type": "message/rfc822"}

DATASETS, JOBS, PREDICT = "/v1/datasets", "/v1/training-jobs", "/v1/models/bad-input/predict"
ROUTER, MESSAGES, ALIAS = (
    "/v1/routers/r",
    "/v1/routers/bad-input/messages",
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
    """What the requests of these tests refer to."""

    stack: Stack
    text: str
    numbers: str
    waiting: str
    model: str = "bad-input"
    numeric_model: str = "bad-input-numeric"
    router: str = "bad-input"
    training: dict[str, Any] = field(default_factory=dict)

    def fill(self, text: str) -> str:
        """A path or a body with the ids of this run."""
        names = ("TEXT", self.text), ("NUMBERS", self.numbers), ("WAITING", self.waiting)
        for name, value in names:
            text = text.replace(name, value)
        return text


def kept(stack: Stack, *, history: bool = True) -> dict[str, list[Any]]:
    """Everything that the service keeps: the rows of its database and the files of its storage.

    Without ``history`` jobs are left out, which stay when the data set that they read is deleted.
    """
    passed_over = OF_THE_WORKERS if history else OF_THE_WORKERS | {"jobs", "job_events"}
    with closing(sqlite3.connect(f"file:{stack.data / 'covey.db'}?mode=ro", uri=True)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows: dict[str, list[Any]] = {
            name: sorted(map(repr, db.execute(f'SELECT * FROM "{name}"')))  # noqa: S608 - its own names
            for name in names
            if name not in passed_over
        }
    storage = stack.data / "storage"
    files = sorted(str(path.relative_to(storage)) for path in storage.rglob("*") if path.is_file())
    return {**rows, "files": files}


def expect_kept(stack: Stack, before: dict[str, list[Any]], *, history: bool = True) -> None:
    """Everything is as before; the worker may need a moment to clear its files away."""

    def same() -> bool | None:
        return kept(stack, history=history) == before or None

    try:
        wait_for(same, what="the state of before")
    except TimeoutError:
        assert kept(stack, history=history) == before


def training(**changes: Any) -> str:
    request = {"model": "refused", "dataset_id": "TEXT", "learner": {"algorithm": "mp_boost", "rounds": 3}}
    return json.dumps({**request, **changes})


def predict(**changes: Any) -> str:
    return json.dumps({"instances": [{"text": "invoice"}], **changes})


def covering(spelled: Any) -> str:
    return training(learner={"algorithm": "adaboost_lc", "covering": spelled})


def expect_rejected(
    known: Known, method: str, path: str, body: str | None, status: int, code: str, pointer: str | None
) -> None:
    """Send a request, and check the problem that the API returns."""
    content = None if body is None else known.fill(body).encode()
    headers = JSON if content is not None else {}
    answer = known.stack.http.request(method, known.fill(path), content=content, headers=headers)
    problem = problem_of(answer, status, code, pointer)
    assert len(answer.content) < 5000, "what was sent is not sent back"
    if status == 405:
        takes = {DATASETS: "GET, POST", "/v1/datasets/TEXT": "DELETE, GET, PATCH", "/health/live": "GET"}
        assert answer.headers["Allow"] == takes[path]
    if pointer:
        assert pointer in problem["detail"] or problem["errors"][0]["message"] in problem["detail"]


def line(**changes: Any) -> bytes:
    """A line of JSON Lines with a valid example."""
    return json.dumps({"text": "a word", "labels": ["x"], **changes}).encode() + b"\n"


GOOD = line() * 3
