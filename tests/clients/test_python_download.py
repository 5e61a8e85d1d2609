"""The Python client downloads files, and continues after a broken connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from covey_client import ConnectionFailed, Progress, UnexpectedResponse, models
from either_client import Either, Service, problem

CONTENT = bytes(range(256)) * 40
BATCH = models.BatchPrediction.from_dict(
    {
        "id": "bp_1",
        "model": "helpdesk",
        "version": 1,
        "dataset_id": "ds_1",
        "format": "ndjson",
        "state": "succeeded",
        "priority": 0,
        "attempt": 1,
        "created_at": "2026-01-05T10:00:00Z",
    }
)


class Breaking(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body whose connection breaks after a number of bytes."""

    def __init__(self, content: bytes, n_bytes: int) -> None:
        self._content = content
        self._n_bytes = n_bytes

    def __iter__(self) -> Iterator[bytes]:
        if self._n_bytes:
            yield self._content[: self._n_bytes]
        if self._n_bytes < len(self._content):
            raise httpx.ReadError("reset")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk


def serve(*breaks: int, etag: str = "e") -> Service:
    """Return a service with the file, whose connections break after these numbers of bytes."""
    left = list(breaks)

    def respond(request: httpx.Request) -> httpx.Response:
        start = int(request.headers.get("Range", "bytes=0-")[6:-1])
        rest = CONTENT[start:]
        headers = {"Content-Length": str(len(rest)), "ETag": '"e"' if start == 0 else f'"{etag}"'}
        stream = Breaking(rest, left.pop(0) if left else len(rest))
        return httpx.Response(206 if start else 200, headers=headers, stream=stream)

    return Streamed(respond)


class Streamed(Service):
    """Returns the response as it is, with its stream."""

    def respond(self, request: httpx.Request) -> httpx.Response:
        """See ``Service``."""
        self.requests.append(request)
        response = self._responses[0]
        assert callable(response)
        return response(request)


def test_a_file_is_downloaded_although_the_connection_breaks(either: Either, tmp_path: Path) -> None:
    service, seen = serve(1000, 500), list[Progress]()
    path = either(service)("download", BATCH, tmp_path / "result", progress=seen.append)
    assert path.read_bytes() == CONTENT
    assert service.calls == ["GET /v1/batch-predictions/bp_1/result"] * 3
    assert [request.headers.get("Range") for request in service.requests] == [
        None,
        "bytes=1000-",
        "bytes=1500-",
    ]
    assert seen[-1] == Progress("downloading", len(CONTENT), len(CONTENT), "bytes")
    assert list(tmp_path.iterdir()) == [path]


def test_a_download_ends_if_nothing_arrives_any_more(either: Either, tmp_path: Path) -> None:
    target = tmp_path / "result"
    target.write_bytes(b"old")
    service = serve(1000, 0)
    with pytest.raises(ConnectionFailed, match="reset"):
        either(service)("download", BATCH, target)
    assert len(service.requests) == 2
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_two_files_are_not_mixed(either: Either, tmp_path: Path) -> None:
    with pytest.raises(UnexpectedResponse, match="not the file"):
        either(serve(1000, etag="other"))("download", BATCH, tmp_path / "result")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_a_problem(either: Either, tmp_path: Path) -> None:
    with pytest.raises(UnexpectedResponse):
        either(Service(httpx.Response(206)))("download", BATCH, tmp_path / "result")
    with pytest.raises(Exception, match="not_found"):
        either(Service(problem(404, "not_found")))("download", BATCH, tmp_path / "result")
