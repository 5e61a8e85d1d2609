"""Compressed files: detected by content, and limited while they are read."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from models.data.files.input_file import open_input_file, read_at_most
from models.data.limits import IngestLimits
from models.errors import BadDataError

TEXT = b"".join(b"line %d of a file\n" % i for i in range(100_000))


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def read(content: bytes, folder: Path, limits: IngestLimits | None = None) -> bytes:
    return open_input_file(io.BytesIO(content), folder, limits or IngestLimits()).stream.read()


@pytest.mark.parametrize(
    "content",
    [
        TEXT,
        gzip.compress(TEXT),
        gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:]),
        zstd(TEXT),
        zstd(TEXT[:10]) + zstd(b"") + zstd(TEXT[10:]),
        zstandard.ZstdCompressor().compressobj().compress(b"") + zstd(TEXT),
        gzip.compress(zstd(TEXT)),
        zstd(gzip.compress(TEXT)),
    ],
)
def test_files_are_decompressed(content: bytes, tmp_path: Path) -> None:
    assert read(content, tmp_path) == TEXT


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_truncated_and_damaged_streams_are_rejected(name: str, tmp_path: Path) -> None:
    whole = gzip.compress(TEXT) if name == "gzip" else zstd(TEXT)
    for length in (5, 12, len(whole) // 2, len(whole) - 1):
        with pytest.raises(BadDataError, match=f"{name} stream is"):
            read(whole[:length], tmp_path)
    damaged = bytearray(whole)
    damaged[len(whole) // 2 : len(whole) // 2 + 40] = bytes(40)
    with pytest.raises(BadDataError, match=f"{name} stream is damaged"):
        read(bytes(damaged), tmp_path)
    with pytest.raises(BadDataError, match=f"{name} stream is damaged"):
        read(whole + b"more", tmp_path)


def bomb(name: str, n_bytes: int) -> bytes:
    """Return compressed zeros, compressed one mebibyte at a time."""
    out = io.BytesIO()
    if name == "gzip":
        with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as file:
            for _ in range(n_bytes // 2**20):
                file.write(bytes(2**20))
    else:
        with zstandard.ZstdCompressor().stream_writer(out, closefd=False) as writer:
            for _ in range(n_bytes // 2**20):
                writer.write(bytes(2**20))
    return out.getvalue()


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_decompression_bombs_are_stopped(name: str, tmp_path: Path) -> None:
    content = bomb(name, 256 * 2**20)
    file = open_input_file(io.BytesIO(content), tmp_path, IngestLimits())
    n_read = 0
    with pytest.raises(BadDataError, match="expands to more than 200 times"):  # noqa: PT012 - counts the bytes before the error
        while data := file.stream.read(2**16):
            n_read += len(data)
    assert n_read <= 2**26


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
def test_decompressed_bytes_are_limited(compress: object, tmp_path: Path) -> None:
    content = compress(TEXT)  # type: ignore[operator]
    assert read(content, tmp_path, IngestLimits(decompressed_bytes=len(TEXT))) == TEXT
    with pytest.raises(BadDataError, match="limit of 1,000 bytes after decompression"):
        read(content, tmp_path, IngestLimits(decompressed_bytes=1000))


def test_random_access_copies_only_streams_that_are_not_seekable(tmp_path: Path) -> None:
    for content in (TEXT, gzip.compress(TEXT)):
        file = open_input_file(io.BytesIO(content), tmp_path, IngestLimits())
        with file.open_seekable() as seekable:
            seekable.seek(-5, io.SEEK_END)
            assert seekable.read() == TEXT[-5:]
            seekable.seek(0)
            assert seekable.read(6) == TEXT[:6]
    assert list(tmp_path.iterdir()) == []


def test_read_at_most_allocates_only_what_it_reads(tmp_path: Path) -> None:
    stream = open_input_file(io.BytesIO(gzip.compress(b"few")), tmp_path, IngestLimits()).stream
    tracemalloc.start()
    try:
        assert read_at_most(stream, 2**26) == b"few"
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
