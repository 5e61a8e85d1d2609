"""Bodies and content over a limit are rejected."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import pytest
from bad_requests import (
    CONTENT,
    DATASETS,
    GOOD,
    JSON,
    RAW,
    expect_unchanged,
    line,
    stored_state,
)
from contract import problem_of
from stack import BYTES, Stack
from waiting import wait_for

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("stack")]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A service with small limits."""
    limits = {
        "COVEY_MAX_BODY_BYTES": "3000",
        "COVEY_MAX_UPLOAD_BYTES": "20000",
        "COVEY_MAX_EXAMPLES": "50",
        "COVEY_MAX_LABELS": "10",
        "COVEY_MAX_MESSAGE_BYTES": "2000",
        "COVEY_WORKER_CONCURRENCY": "1",
    }
    stack = Stack(tmp_path_factory.mktemp("small") / "data", limits).start()
    yield stack
    stack.stop()


def chunks(content: bytes) -> Iterator[bytes]:
    """Yield content in pieces, so that the request has no declared length."""
    for start in range(0, len(content), 500):
        yield content[start : start + 500]


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(
    ("method", "path", "size"),
    [
        pytest.param("POST", DATASETS, 3001, id="JSON"),
        pytest.param("PUT", CONTENT, 20_001, id="content"),
        pytest.param("POST", "/v1/models/x/versions", 20_001, id="artifact"),
    ],
)
def test_a_body_over_the_limit_is_rejected(
    small: Stack, method: str, path: str, size: int, declared: bool
) -> None:
    waiting = small.call("POST", DATASETS, 201, json={"name": "waiting"})
    before = stored_state(small)
    body = b"{" + b" " * (size - 1)
    response = small.http.request(
        method,
        path.replace("WAITING", waiting["id"]),
        content=body if declared else chunks(body),
        headers=JSON if path == DATASETS else BYTES,
    )
    problem = problem_of(response, 413, "too_large")
    assert "limit of" in problem["detail"]
    expect_unchanged(small, before)
    small.call("DELETE", f"/v1/datasets/{waiting['id']}", 204)


def test_a_body_at_the_limit_is_accepted(small: Stack) -> None:
    body = b'{"name": "x"' + b" " * 2987 + b"}"
    assert len(body) == 3000
    created = small.call("POST", DATASETS, 201, content=chunks(body), headers=JSON)
    small.call("DELETE", f"/v1/datasets/{created['id']}", 204)


@pytest.mark.parametrize(
    ("content", "limit"),
    [
        pytest.param(gzip.compress(GOOD * 1500), "80,000", id="decompressed bytes"),
        pytest.param(line() * 51, "50", id="examples"),
        pytest.param(b"".join(line(labels=[f"l{i}"]) for i in range(11)), "10", id="labels"),
    ],
)
def test_content_over_a_limit_fails_and_names_the_limit(small: Stack, content: bytes, limit: str) -> None:
    failed = small.upload(content, format="jsonl")
    assert failed["state"] == "failed"
    error = json.dumps(failed["error"])
    assert limit in error or limit.replace(",", "") in error, error
    small.call("DELETE", f"/v1/datasets/{failed['id']}", 204)
    storage = small.data / "storage"
    wait_for(
        lambda: not any(path.is_file() for path in storage.rglob("*/*")) or None, what="an empty storage"
    )


def test_a_message_over_the_limit_is_truncated_and_routed(small: Stack) -> None:
    examples = [{"text": f"{word} word", "labels": [word]} for word in ("late", "wrong") for _ in range(8)]
    dataset = small.dataset(examples)
    assert small.finished(small.train(dataset["id"], model="m")["id"])["state"] == "succeeded"
    small.call("PUT", "/v1/routers/r", 200, json={"model": "m", "fallback": "front"})
    message = b"Subject: late\n\nlate " + b"x " * 5000
    decision = small.call("POST", "/v1/routers/r/messages", 200, content=message, headers=RAW)
    assert decision["message"]["truncated"] is True
    assert decision["message"]["defects"]
