"""The content of an upload as a stream of bytes, which is never in memory as a whole."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from covey_client._runtime import AsyncRuntime, BlockingRuntime
from covey_client.mail_folder import total_size, zip_folder

CHUNK_BYTES = 256 * 1024
"""Size of the parts in which content is read and sent."""

ENCODINGS = {".gz": "gzip", ".zst": "zstd"}
"""`Content-Encoding` of compressed files, by the end of their name."""


class HasToDict(Protocol):
    """An object of the generated client, such as ``Example``."""

    def to_dict(self) -> dict[str, Any]:
        """Return the object as JSON."""


Record = Mapping[str, Any] | HasToDict | bytes
"""An example, or a part of a file."""

Source = str | PathLike[str] | bytes | BinaryIO | Iterable[Record] | AsyncIterable[Record]
"""What can be uploaded: a file or folder of mail by its path, bytes, a file that is open for reading bytes,
examples that are sent as JSON Lines, or parts of a file."""

Count = Callable[[int], None]


class Content:
    """The body of an upload.

    Args:
        source: where the bytes come from.
        report: receives the number of bytes of the source that were sent.

    Attributes:
        size: number of bytes of the body; None if it is not known before the end.
        total: number of bytes of the source; None if it is not known before the end.
        encoding: the `Content-Encoding`; None for none.
        is_mail_folder: whether the source is a folder, which is sent as a zip.
        name: name of the file or folder; None if there is none.
        reads_files: whether reading may wait for a disk.
        parts: the parts of a source that is an asynchronous iterator; None for others.
    """

    def __init__(self, source: Source, report: Count) -> None:
        self._report = report
        self._started = False
        self._sent = 0
        self.size: int | None = None
        self.total: int | None = None
        self.encoding: str | None = None
        self.is_mail_folder = False
        self.name: str | None = None
        self.reads_files = True
        self.parts: AsyncIterable[Record] | None = None
        if isinstance(source, str | PathLike):
            self._open_path(Path(source))
        elif isinstance(source, bytes):
            self._set_bytes(source)
        elif isinstance(source, AsyncIterable):
            self._can_restart = False
            self.parts = source
        elif hasattr(source, "read"):
            self._set_file(cast("BinaryIO", source))
        else:
            self._set_records(source)

    @property
    def is_consumed(self) -> bool:
        """Whether the content was read, and cannot be read again."""
        return self._started and not self._can_restart

    def start(self) -> None:
        """Begin to read, from the start."""
        if self.is_consumed:
            raise RuntimeError("the content can only be read once")
        self._started = True
        self._sent = 0

    def chunks(self) -> Generator[bytes]:
        """Return the bytes of a source that is no asynchronous iterator."""
        return self._open(self.count)

    def count(self, n_bytes: int) -> None:
        """Count bytes of the source that were sent."""
        self._sent += n_bytes
        self._report(self._sent)

    def _open_path(self, path: Path) -> None:
        self.name = path.name
        self._can_restart = True
        if path.is_dir():
            self.is_mail_folder = True
            self.total = total_size(path)
            self._open = partial(zip_folder, path)
            return
        if path.is_file():
            self.size = self.total = path.stat().st_size
        else:  # a pipe, such as /dev/stdin
            path.stat()  # raises FileNotFoundError
            self._can_restart = False
        self.encoding = ENCODINGS.get(path.suffix.lower())
        self._open = partial(_read_path, path)

    def _set_bytes(self, content: bytes) -> None:
        self.size = self.total = len(content)
        self._can_restart = True
        self.reads_files = False
        self._open = partial(_read_bytes, content)

    def _set_file(self, file: BinaryIO) -> None:
        self._can_restart = file.seekable()
        start = file.tell() if self._can_restart else None
        self._open = partial(_read_file, file, start)

    def _set_records(self, records: Iterable[Record]) -> None:
        self._can_restart = iter(records) is not records  # a list, not a generator
        self.reads_files = False  # the caller's code runs in the caller's thread
        self._open = partial(_read_records, records)


class AsyncBody:
    """Content as the body of a request of an asynchronous client."""

    def __init__(self, content: Content, runtime: AsyncRuntime) -> None:
        self._content = content
        self._runtime = runtime

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the bytes, from the start."""
        content = self._content
        content.start()
        if content.parts is not None:
            async for part in content.parts:
                chunk = to_bytes(part)
                yield chunk
                content.count(len(chunk))
            return
        with closing(content.chunks()) as chunks:
            read = partial(next, chunks, None)
            while (chunk := await self._runtime.call(read) if content.reads_files else read()) is not None:
                yield chunk


class Body:
    """Content as the body of a request of a blocking client."""

    def __init__(self, content: Content, _runtime: BlockingRuntime) -> None:
        if content.parts is not None:
            raise TypeError("only AsyncCovey can upload an asynchronous iterator")
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes, from the start."""
        self._content.start()
        with closing(self._content.chunks()) as chunks:
            yield from chunks


def _read_path(path: Path, count: Count) -> Generator[bytes]:
    with path.open("rb") as file:
        yield from _read_file(file, None, count)


def _read_file(file: BinaryIO, start: int | None, count: Count) -> Generator[bytes]:
    if start is not None:
        file.seek(start)
    while chunk := file.read(CHUNK_BYTES):
        if not isinstance(chunk, bytes):
            raise TypeError('open the file for reading bytes, with mode "rb"')
        yield chunk
        count(len(chunk))


def _read_bytes(content: bytes, count: Count) -> Generator[bytes]:
    for start in range(0, len(content), CHUNK_BYTES):
        yield content[start : start + CHUNK_BYTES]
        count(min(CHUNK_BYTES, len(content) - start))


def _read_records(records: Iterable[Record], count: Count) -> Generator[bytes]:
    parts: list[bytes] = []
    n_bytes = 0
    for record in records:
        parts.append(to_bytes(record))
        n_bytes += len(parts[-1])
        if n_bytes >= CHUNK_BYTES:
            yield b"".join(parts)
            count(n_bytes)
            parts, n_bytes = [], 0
    yield b"".join(parts)
    count(n_bytes)


def to_bytes(record: Record) -> bytes:
    r"""Return a part of a file as it is, and an example as a line of JSON.

    >>> to_bytes({"text": "Where is my parcel?", "labels": ["shipping"]})
    b'{"text": "Where is my parcel?", "labels": ["shipping"]}\n'
    """
    if isinstance(record, bytes):
        return record
    if not isinstance(record, Mapping) and not hasattr(record, "to_dict"):
        raise TypeError(f"an example must be a dictionary, not {type(record).__name__}")
    fields = record if isinstance(record, Mapping) else record.to_dict()
    return json.dumps(fields, allow_nan=False).encode() + b"\n"
