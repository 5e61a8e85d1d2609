"""The Python client streams what it uploads."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import threading
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from covey_client import AsyncCovey, Covey, Progress
from either_client import Blocking, Either, Service, dataset, json_response

CREATED = json_response(201, dataset("awaiting_content"))
ACCEPTED = json_response(202, dataset("ingesting"))


def uploaded(either: Either, source: Any, **options: Any) -> tuple[httpx.Request, dict[str, Any], bytes]:
    """Upload, and return the request of the content, the data set that was created, and the content."""
    service = Service(CREATED, ACCEPTED)
    either(service)("upload", source, wait=False, **options)
    return service.requests[1], httpx.Response(200, content=service.bodies[0]).json(), service.bodies[1]


def test_a_file_is_sent_with_its_name_size_and_encoding(either: Either, tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}"))
    request, body, content = uploaded(either, path)
    assert body == {"name": "d.jsonl.gz"}
    assert content == path.read_bytes()
    assert request.headers["Content-Encoding"] == "gzip"
    assert request.headers["Content-Length"] == str(len(content))
    assert request.headers["Content-Type"] == "application/octet-stream"
    assert "Transfer-Encoding" not in request.headers


def test_examples_are_sent_as_json_lines(either: Either) -> None:
    examples = ({"text": str(number), "labels": []} for number in range(3))
    _, body, content = uploaded(either, examples, body={"name": "mine", "label_tree": {"a": "b"}})
    assert body == {"name": "mine", "label_tree": {"a": "b"}}
    assert content.splitlines() == [b'{"text": "%d", "labels": []}' % number for number in range(3)]


def test_an_open_file_is_sent_from_its_position(either: Either) -> None:
    file = io.BytesIO(b"head,tail")
    file.seek(5)
    assert uploaded(either, file, body={"name": "mine"})[2] == b"tail"


def test_a_file_that_is_open_for_text_is_refused(either: Either) -> None:
    with pytest.raises(TypeError, match='with mode "rb"'):
        uploaded(either, io.StringIO("text"), body={"name": "mine"})


def test_a_folder_of_mail_is_sent_as_a_zip(either: Either, tmp_path: Path) -> None:
    files = {
        f"{label}/{number}.eml": b"Subject: %d\n\n" % number * 50 for label in "ab" for number in range(3)
    }
    for name, content in files.items():
        path = tmp_path / "mail" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    seen: list[Progress] = []
    _, body, content = uploaded(either, tmp_path / "mail", progress=seen.append)
    assert body == {"name": "mail", "format": "eml_zip"}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == files
    total = sum(map(len, files.values()))
    assert seen[-1] == Progress("uploading", total, total, "bytes")


class Streaming(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Reads the parts of an upload one by one, and lets a test look at the source after each."""

    def __init__(self, look: Any) -> None:
        self._look = look

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Read the body."""
        if request.method == "PUT":
            assert isinstance(request.stream, httpx.SyncByteStream)
            for part in request.stream:
                self._look(part)
        return httpx.Response(202 if request.method == "PUT" else 201, json=dataset("ingesting"))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Read the body."""
        if request.method == "PUT":
            assert isinstance(request.stream, httpx.AsyncByteStream)
            async for part in request.stream:
                self._look(part)
        return httpx.Response(202 if request.method == "PUT" else 201, json=dataset("ingesting"))


@pytest.mark.parametrize("blocking", [True, False])
def test_no_more_is_read_than_was_sent(blocking: bool) -> None:
    produced, sent, largest = 0, 0, 0

    def examples() -> Iterator[dict[str, Any]]:
        nonlocal produced
        for number in range(20_000):
            line = {"text": f"{number:05} " + "x" * 80, "labels": []}
            produced += 112
            yield line

    def look(part: bytes) -> None:
        nonlocal sent, largest
        sent += len(part)
        largest = max(largest, produced - sent)

    async def upload() -> None:
        async with AsyncCovey(transport=Streaming(look)) as covey:
            await covey.upload(examples(), {"name": "mine"}, wait=False)

    if blocking:
        Covey(transport=Streaming(look)).upload(examples(), {"name": "mine"}, wait=False)
    else:
        asyncio.run(upload())
    assert sent > 2_000_000
    assert largest < 512 * 1024


def test_a_pipe_is_sent_without_a_size(either: Either, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"{}",))
    writer.start()
    request, _, content = uploaded(either, path)
    writer.join()
    assert content == b"{}"
    assert "Content-Length" not in request.headers


def test_a_missing_file_and_a_wrong_example_are_errors_of_the_caller(either: Either, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        uploaded(either, tmp_path / "missing")
    with pytest.raises(TypeError, match="an example must be a dictionary, not str"):
        uploaded(either, ["text"], body={"name": "mine"})


def test_an_asynchronous_iterator_is_streamed() -> None:
    async def parts() -> AsyncIterator[bytes]:
        for number in range(3):
            await asyncio.sleep(0)
            yield b"part %d\n" % number

    service = Service(CREATED, ACCEPTED)

    async def upload() -> None:
        async with AsyncCovey(transport=httpx.MockTransport(service.respond)) as covey:
            await covey.upload(parts(), {"name": "mine"}, wait=False)

    asyncio.run(upload())
    assert service.bodies[1] == b"part 0\npart 1\npart 2\n"


def test_a_blocking_client_refuses_an_asynchronous_iterator() -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"part"

    with pytest.raises(TypeError, match="only AsyncCovey"):
        uploaded(Blocking, parts(), body={"name": "mine"})
