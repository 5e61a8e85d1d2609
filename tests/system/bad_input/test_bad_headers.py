"""Bad headers are rejected, and nothing changes."""

from __future__ import annotations

import gzip

import pytest
from bad_requests import (
    ALIAS,
    CONTENT,
    DATASETS,
    INVALID,
    JOBS,
    JSON,
    MALFORMED,
    MESSAGES,
    RAW,
    ROUTER,
    Known,
)
from contract import problem_of
from stack import BYTES

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("stack")]

HEADERS: list[tuple[str, str, str, bytes, dict[str, str], int, str]] = [
    (
        "text instead of JSON",
        "POST",
        DATASETS,
        b'{"name": "x"}',
        {"Content-Type": "text/plain"},
        415,
        "unsupported_media_type",
    ),
    (
        "a form instead of JSON",
        "POST",
        DATASETS,
        b"name=x",
        {"Content-Type": "application/x-www-form-urlencoded"},
        415,
        "unsupported_media_type",
    ),
    ("JSON without a content type", "POST", DATASETS, b'{"name": "x"}', {}, 415, "unsupported_media_type"),
    (
        "XML instead of JSON",
        "PUT",
        ROUTER,
        b"<a/>",
        {"Content-Type": "application/xml"},
        415,
        "unsupported_media_type",
    ),
    (
        "HTML instead of a message",
        "POST",
        MESSAGES,
        b"<p>",
        {"Content-Type": "text/html"},
        415,
        "unsupported_media_type",
    ),
    (
        "a form instead of a message",
        "POST",
        MESSAGES,
        b"a=b",
        {"Content-Type": "multipart/form-data; boundary=x"},
        415,
        "unsupported_media_type",
    ),
    (
        "a form instead of content",
        "PUT",
        CONTENT,
        b"--x--",
        {"Content-Type": "multipart/form-data; boundary=x"},
        415,
        "unsupported_media_type",
    ),
    (
        "compressed JSON",
        "POST",
        DATASETS,
        gzip.compress(b'{"name": "x"}'),
        {**JSON, "Content-Encoding": "gzip"},
        415,
        "unsupported_media_type",
    ),
    (
        "a compressed message",
        "POST",
        MESSAGES,
        gzip.compress(b"a: b\n\nc"),
        {**RAW, "Content-Encoding": "gzip"},
        415,
        "unsupported_media_type",
    ),
    (
        "a compressed artifact",
        "POST",
        "/v1/models/x/versions",
        gzip.compress(b"x"),
        {**BYTES, "Content-Encoding": "gzip"},
        415,
        "unsupported_media_type",
    ),
    (
        "an unsupported encoding",
        "PUT",
        CONTENT,
        b"x",
        {**BYTES, "Content-Encoding": "br"},
        415,
        "unsupported_media_type",
    ),
    (
        "two encodings",
        "PUT",
        CONTENT,
        b"x",
        {**BYTES, "Content-Encoding": "gzip, gzip"},
        415,
        "unsupported_media_type",
    ),
    ("not UTF-8", "POST", DATASETS, b'{"name": "\xff"}', JSON, 400, MALFORMED),
    (
        "an empty idempotency key",
        "POST",
        DATASETS,
        b'{"name": "x"}',
        {**JSON, "Idempotency-Key": ""},
        422,
        INVALID,
    ),
    (
        "an idempotency key that is too long",
        "POST",
        DATASETS,
        b'{"name": "x"}',
        {**JSON, "Idempotency-Key": "x" * 256},
        422,
        INVALID,
    ),
    (
        "an old revision",
        "PUT",
        ALIAS,
        b'{"version": 1}',
        {**JSON, "If-Match": '"77"'},
        412,
        "precondition_failed",
    ),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "code"),
    [pytest.param(*case[1:], id=case[0]) for case in HEADERS],
)
def test_a_bad_header_is_rejected(
    unchanged: Known, method: str, path: str, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    response = unchanged.stack.http.request(method, unchanged.fill(path), content=body, headers=headers)
    problem_of(response, status, code)


@pytest.mark.parametrize("value", ["-1", "x", "99999999999999999999"])
def test_an_invalid_event_id_is_rejected(unchanged: Known, value: str) -> None:
    job = unchanged.stack.call("GET", f"{JOBS}?limit=1", 200)["items"][0]["id"]
    headers = {"Accept": "text/event-stream", "Last-Event-ID": value}
    response = unchanged.stack.http.get(f"{JOBS}/{job}/events", headers=headers)
    problem_of(response, 422, INVALID, "/header/Last-Event-ID")


@pytest.mark.parametrize("bytes_range", ["bytes=999999999-", "bytes=x", "bytes=5-2"])
def test_an_invalid_range_is_rejected(unchanged: Known, bytes_range: str) -> None:
    response = unchanged.stack.http.get(
        "/v1/models/bad-input/versions/1/artifact", headers={"Range": bytes_range}
    )
    problem_of(response, 416, "range_not_satisfiable")


def test_a_range_request_returns_a_part_of_an_artifact(unchanged: Known) -> None:
    path = "/v1/models/bad-input/versions/1/artifact"
    whole = unchanged.stack.http.get(path)
    part = unchanged.stack.http.get(path, headers={"Range": "bytes=4-9"})
    assert part.status_code == 206
    assert part.content == whole.content[4:10]
