"""The ingestion of invalid content fails with the line of the error, and leaves no files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
import zstandard
from bad_requests import (
    DEEP,
    GOOD,
    JOBS,
    LONG,
    Known,
    line,
    training,
)
from contract import problem_of
from stack import BYTES, Stack
from waiting import wait_for

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("stack")]

CONTENTS: list[tuple[str, bytes, dict[str, str], int | None]] = [
    ("truncated JSON", GOOD + b'{"text": "a', {}, 4),
    ("labels in one string", line() + line(labels="x,y"), {}, 2),
    ("a label that is a fraction", line(labels=[1.5]), {}, 1),
    ("NaN", b'{"features": {"a": 1}, "labels": ["x"]}\n{"features": {"a": NaN}, "labels": ["x"]}\n', {}, 2),
    ("Infinity", b'{"features": {"a": Infinity}, "labels": ["x"]}\n', {}, 1),
    ("1e999", b'{"features": {"a": 1e999}, "labels": ["x"]}\n', {}, 1),
    ("an empty file", b"", {}, None),
    ("a file of white space", b"\n \r\n\n", {}, None),
    ("not UTF-8", GOOD + b'{"text": "\xff\xfe", "labels": ["x"]}\n', {}, 4),
    ("UTF-16 that is cut short", GOOD.decode().encode("utf-16")[:-21], {}, None),
    ("deep brackets", GOOD + DEEP.encode() + b"\n", {}, 4),
    ("half a surrogate pair", GOOD + rb'{"text": "\ud800", "labels": ["x"]}' + b"\n", {}, 4),
    ("half a surrogate pair in a label", GOOD + rb'{"text": "a", "labels": ["\ud800"]}' + b"\n", {}, 4),
    ("NUL in a label", GOOD + rb'{"text": "a", "labels": ["\u0000"]}' + b"\n", {}, 4),
    (
        "a number of 5,000 digits",
        line() + b'{"features": {"a": ' + LONG.encode() + b'}, "labels": []}\n',
        {},
        2,
    ),
    ("a repeated field", GOOD + b'{"text": "a", "text": "b", "labels": ["x"]}\n', {}, 4),
    ("an unknown field", GOOD + line(colour="red"), {}, 4),
    ("two kinds", GOOD + b'{"features": {"a": 1}, "labels": ["x"]}\n', {}, 4),
    ("a repeated id", line(id="a") + line(id="b") + line(id="a"), {}, 3),
    ("a list", b'["a"]\n', {}, 1),
    ("an unknown split", line(split="fold"), {}, 1),
    ("mail that is not base64", b'{"raw_email": "*", "labels": ["x"]}\n', {}, 1),
    ("gzip cut short", gzip.compress(GOOD * 200)[:-20], {"Content-Encoding": "gzip"}, None),
    ("zstd cut short", zstandard.compress(GOOD * 200)[:-5], {"Content-Encoding": "zstd"}, None),
    ("not gzip", GOOD, {"Content-Encoding": "gzip"}, None),
    ("zstd that is gzip", gzip.compress(GOOD), {"Content-Encoding": "zstd"}, None),
    ("a gzip bomb", gzip.compress(bytes(48 * 2**20)), {"Content-Encoding": "gzip"}, None),
    ("a zstd bomb", zstandard.compress(bytes(48 * 2**20)), {"Content-Encoding": "zstd"}, None),
]


@pytest.mark.parametrize(
    ("content", "headers", "line_number"), [pytest.param(*case[1:], id=case[0]) for case in CONTENTS]
)
def test_invalid_content_fails_with_its_line(
    cleared: Known, content: bytes, headers: dict[str, str], line_number: int | None
) -> None:
    stack = cleared.stack
    failed = stack.upload(content, headers, format="jsonl")
    path = f"/v1/datasets/{failed['id']}"
    try:
        assert failed["state"] == "failed", failed
        assert "n_examples" not in failed
        assert "sha256" not in failed
        error = failed["error"]
        assert error["code"] == "bad_data"
        assert error["type"] == "urn:covey:problem:bad_data"
        assert error["status"] == 422
        assert "Traceback" not in json.dumps(error)
        if line_number is not None:
            assert error["records"][0]["line"] == line_number
            assert error["records"][0]["reason"]
            assert len(json.dumps(error)) < 10_000
        problem_of(stack.http.get(f"{path}/examples"), 409, "dataset_not_ready")
        assert stack.call("GET", f"{path}/labels", 200) == {"items": []}
        response = stack.http.post(JOBS, json=json.loads(training(dataset_id=failed["id"])))
        problem_of(response, 409, "dataset_not_ready", "/dataset_id")
    finally:
        # This also deletes the upload and every unfinished file of the worker.
        stack.call("DELETE", path, 204)


def test_bad_records_are_listed_up_to_twenty(cleared: Known) -> None:
    content = b"".join(line(labels=[1.5]) if i % 2 else line() for i in range(100))
    failed = cleared.stack.upload(content, format="jsonl")
    assert [record["line"] for record in failed["error"]["records"]] == list(range(2, 42, 2))
    cleared.stack.call("DELETE", f"/v1/datasets/{failed['id']}", 204)


def test_a_failed_data_set_accepts_other_content(cleared: Known) -> None:
    stack = cleared.stack
    failed = stack.upload(b"{", format="jsonl")
    path = f"/v1/datasets/{failed['id']}"
    stack.call("PUT", f"{path}/content", 202, content=GOOD, headers=BYTES)
    settled = ready(stack, path)
    assert settled["state"] == "ready"
    assert "error" not in settled
    problem_of(stack.http.put(f"{path}/content", content=GOOD, headers=BYTES), 409, "dataset_has_content")
    stack.call("DELETE", path, 204)


def ready(stack: Stack, path: str) -> dict[str, Any]:
    def ingested() -> dict[str, Any] | None:
        dataset: dict[str, Any] = stack.call("GET", path, 200)
        return None if dataset["state"] == "ingesting" else dataset

    return wait_for(ingested, what=path)


ENCODINGS: list[tuple[str, Callable[[bytes], bytes], dict[str, str]]] = [
    ("CRLF", lambda content: content.replace(b"\n", b"\r\n"), {}),
    ("a byte order mark", lambda content: b"\xef\xbb\xbf" + content, {}),
    ("no last line break", lambda content: content.rstrip(b"\n"), {}),
    ("empty lines", lambda content: content.replace(b"\n", b"\n\n"), {}),
    ("gzip", gzip.compress, {"Content-Encoding": "gzip"}),
    ("zstd", zstandard.compress, {"Content-Encoding": "ZSTD"}),
    ("gzip without a header", gzip.compress, {}),
    ("identity", bytes, {"Content-Encoding": "identity"}),
]


@pytest.mark.parametrize(("encode", "headers"), [pytest.param(*case[1:], id=case[0]) for case in ENCODINGS])
def test_all_supported_encodings_of_content_are_accepted(
    cleared: Known, encode: Callable[[bytes], bytes], headers: dict[str, str]
) -> None:
    stack = cleared.stack
    dataset = stack.upload(
        encode(line(text="né", labels=["x, y", '"', "🦉"]) + GOOD), headers, format="jsonl"
    )
    path = f"/v1/datasets/{dataset['id']}"
    assert dataset["state"] == "ready", dataset
    assert (dataset["n_examples"], dataset["n_labels"]) == (4, 4)
    first = stack.call("GET", f"{path}/examples?limit=1", 200)["items"][0]
    assert first["text"] == "né"
    assert first["labels"] == sorted(["x, y", '"', "🦉"])
    stack.call("DELETE", path, 204)
