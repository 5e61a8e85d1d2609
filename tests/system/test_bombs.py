"""The service handles decompression bombs and similar input in bounded memory and serves other clients."""

from __future__ import annotations

import base64
import io
import json
import re
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import bombs
import httpx
import pytest
from bombs import GIB, MIB
from contract import problem_of
from stack import Stack, departments
from waiting import LIMIT_SECONDS, wait_for
from zip_quine import zip_quine

pytestmark = [pytest.mark.faults, pytest.mark.system, pytest.mark.xdist_group("bombs")]

MAX_API_GROWTH = 512 * MIB
"""Limit for the additional memory of the API process: more than ten times the largest message."""
MAX_JOB_BYTES = 768 * MIB
"""Limit for the peak memory of a job process: the base of every job,
and more than ten times a record of 32 MiB."""


class BackgroundTraffic:
    """Sends predictions and health checks in the background, and measures the memory of every job process."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.n_responses = 0
        self.failures: list[str] = []
        self.job_bytes = 0
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=target) for target in (self._send_requests, self._measure_memory)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _send_requests(self) -> None:
        body = {"instances": [{"text": "my invoice is wrong"}]}
        with httpx.Client(base_url=self.stack.url, timeout=LIMIT_SECONDS, trust_env=False) as client:
            while not self._stopped.wait(0.02):
                prediction = client.post("/v1/models/bombed/predict", json=body)
                # Not readiness, which also judges how fast the disk and the workers respond.
                health = client.get("/health/live")
                self.failures += [
                    response.text[:500] for response in (prediction, health) if response.status_code != 200
                ]
                self.n_responses += 1

    def _measure_memory(self) -> None:
        while not self._stopped.wait(0.02):
            for worker in self.stack.worker_pids():
                for job in self.stack.job_pids(worker):
                    self.job_bytes = max(self.job_bytes, _peak(job))


def _peak(pid: int) -> int:
    """Return the peak memory of a process; 0 if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(match[1]) * 1024 if match else 0


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    """The shared stack, with a model and a router ``bombed``."""
    texts = stack.dataset(departments(40))
    assert stack.finished(stack.train(texts["id"], model="bombed")["id"])["state"] == "succeeded"
    stack.call("PUT", "/v1/routers/bombed", 200, json={"model": "bombed", "fallback": "front@example.org"})
    return stack


@contextmanager
def check_other_clients(stack: Stack) -> Iterator[BackgroundTraffic]:
    """Check that other clients get responses, and that no process uses too much memory."""
    (api,) = [pid for pid in stack.api_pids() if _peak(pid)]
    Path(f"/proc/{api}/clear_refs").write_text("5")  # resets the peak memory
    before = _peak(api)
    with BackgroundTraffic(stack) as traffic:
        yield traffic
        before_wait = traffic.n_responses
        wait_for(lambda: traffic.n_responses > before_wait or None, what="a response after the bomb")
    assert not traffic.failures, traffic.failures[:3]
    growth = _peak(api) - before
    assert growth < MAX_API_GROWTH, f"the API grew by {growth / MIB:.0f} MiB"
    assert traffic.job_bytes < MAX_JOB_BYTES, f"a job used {traffic.job_bytes / MIB:.0f} MiB"


def upload_and_delete(stack: Stack, content: bytes, headers: dict[str, str], **fields: Any) -> dict[str, Any]:
    """Upload content, wait until the data set is ready or failed, delete it, and return it."""
    dataset = stack.upload(content, headers, **fields)
    stack.call("DELETE", f"/v1/datasets/{dataset['id']}", 204)
    return dataset


GZIP, ZSTD = {"Content-Encoding": "gzip"}, {"Content-Encoding": "zstd"}

UPLOADS: list[tuple[str, Callable[[], bytes], dict[str, str], str, str]] = [
    (
        "10 GiB of gzip zeros",
        lambda: bombs.gzip_zeros(10 * GIB),
        GZIP,
        "jsonl",
        "expands to more than 200 times",
    ),
    ("10 GiB of zstd zeros", lambda: bombs.zstd_zeros(10 * GIB), ZSTD, "csv", "there is no column 'labels'"),
    (
        "gzip zeros without Content-Encoding",
        lambda: bombs.gzip_zeros(GIB),
        {},
        "svmlight",
        "expands to more than 200 times",
    ),
    (
        "zeros in gzip in gzip",
        lambda: bombs.gzip_twice(bombs.gzip_zeros(10 * GIB)),
        GZIP,
        "jsonl",
        "expands to more than 200 times",
    ),
    (
        "a line of 1 GiB",
        lambda: bombs.one_line(GIB),
        GZIP,
        "jsonl",
        "line 1: the line is longer than the limit of 33,554,432",
    ),
    (
        "a zip of 10 GiB of zeros",
        lambda: bombs.zip_of_zeros(10 * GIB),
        {},
        "eml_zip",
        "longer than|expands to more",
    ),
    (
        "a zip of one member 5,000 times",
        lambda: bombs.overlapping_zip(5000, 10 * MIB),
        {},
        "eml_zip",
        "expands to more than 200 times",
    ),
    (
        "2⁴⁰ as an index",
        lambda: b"1 1099511627776:1\n",
        {},
        "svmlight",
        "line 1: column 3: .*1099511627776",
    ),
    (
        "a million labels",
        lambda: b"".join(b"%d 1:1\n" % label for label in range(1_000_000)),
        {},
        "svmlight",
        "more than 20,000 labels",
    ),
    (
        "a million labels of one example",
        lambda: b",".join(b"%d" % label for label in range(1_000_000)) + b" 1:1\n",
        {},
        "svmlight",
        "more than 20,000 labels",
    ),
]


@pytest.mark.parametrize(
    ("make", "headers", "kind", "reason"), [pytest.param(*case[1:], id=case[0]) for case in UPLOADS]
)
def test_content_that_exceeds_a_limit_is_rejected(
    stack: Stack, make: Callable[[], bytes], headers: dict[str, str], kind: str, reason: str
) -> None:
    content = make()
    with check_other_clients(stack):
        dataset = upload_and_delete(stack, content, headers, format=kind)
    assert dataset["state"] == "failed", dataset
    assert dataset["error"]["code"] == "bad_data"
    assert re.search(reason, dataset["error"]["detail"]), dataset["error"]
    assert len(json.dumps(dataset)) < 10_000, "the response contains the content"


@pytest.mark.parametrize("make", [zip_quine, lambda: bombs.nested_zip(60)], ids=["quine", "60 levels"])
def test_a_zip_file_in_a_zip_file_is_not_extracted(stack: Stack, make: Callable[[], bytes]) -> None:
    with check_other_clients(stack):
        dataset = upload_and_delete(stack, make(), {}, format="eml_zip")
    assert dataset["state"] == "ready", dataset
    assert (dataset["n_examples"], dataset["n_labels"]) == (1, 1)


def test_the_zip_quine_contains_itself() -> None:
    with zipfile.ZipFile(io.BytesIO(zip_quine())) as archive:
        assert archive.read("a/q.eml") == zip_quine()


def nested_multiparts(levels: int) -> bytes:
    opening = b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (level, level)
        for level in range(levels)
    )
    return b"Subject: my invoice is wrong\n" + opening + b"Content-Type: text/plain\n\ndeep down\n"


MESSAGES: list[tuple[str, Callable[[], bytes], str]] = [
    ("1,500 nested multiparts", lambda: nested_multiparts(1500), "nested"),
    (
        "20,000 recipients",
        lambda: b"To: " + b", ".join(b"P <p%d@example.org>" % n for n in range(20_000)) + b"\n\nmy invoice",
        "header",
    ),
    ("24 MiB of open elements", lambda: b"Content-Type: text/html\n\n" + b"<ul><li>" * (3 * MIB), ""),
]


@pytest.mark.parametrize(("make", "defect"), [pytest.param(*case[1:], id=case[0]) for case in MESSAGES])
def test_a_message_that_exceeds_a_limit_is_routed_with_a_defect(
    stack: Stack, make: Callable[[], bytes], defect: str
) -> None:
    message = make()
    with check_other_clients(stack):
        decision = stack.call(
            "POST",
            "/v1/routers/bombed/messages",
            200,
            content=message,
            headers={"Content-Type": "message/rfc822"},
        )
    assert decision["message"]["truncated"]
    assert any(defect in text for text in decision["message"]["defects"]), decision["message"]


def test_a_data_set_of_messages_that_exceed_a_limit_is_ready(stack: Stack) -> None:
    raw = [base64.b64encode(make()).decode() for _, make, _ in MESSAGES[:2]]
    lines = [json.dumps({"raw_email": message, "labels": ["x"]}) for message in raw * 20]
    with check_other_clients(stack):
        dataset = upload_and_delete(stack, "\n".join(lines).encode(), {}, format="jsonl")
    assert dataset["state"] == "ready", dataset


def test_too_many_labels_in_a_request_are_rejected(stack: Stack) -> None:
    tree = {f"l{label}": "top" for label in range(90_000)}
    destinations = dict.fromkeys(tree, "front@example.org")
    router = {"model": "bombed", "fallback": "front@example.org", "destinations": destinations}
    with check_other_clients(stack):
        response = stack.http.post("/v1/datasets", json={"name": "tree", "label_tree": tree})
        problem_of(response, 413, "too_large", "/label_tree")
        response = stack.http.put("/v1/routers/many", json=router)
        problem_of(response, 413, "too_large", "/destinations")
        decision = stack.call(
            "POST",
            "/v1/routers/bombed/messages",
            200,
            content=b"Subject: x",
            headers={"Content-Type": "message/rfc822"},
        )
        path = f"/v1/decisions/{decision['decision_id']}/feedback"
        response = stack.http.post(path, json={"labels": [*tree]})
        problem_of(response, 413, "too_large", "/labels")
