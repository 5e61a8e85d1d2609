"""The bytes of a file, decompressed on the way and never more of them than allowed."""

from __future__ import annotations

import gzip
import io
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import zstandard

from models.data.limits import IngestLimits
from models.errors import BadDataError

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_RATIO_COUNTS_FROM = 16 * 2**20
_MAX_LAYERS = 2  # a compressed file sent under a compressing Content-Encoding
_ZSTD_INPUT = 1024  # zstd makes at most 128 KiB of 4 bytes, so one read of this size stays at 32 MiB
_ZSTD_WINDOW = 2**27  # what the zstd command accepts by default


@dataclass(frozen=True)
class InputFile:
    """A file to read, once, from its beginning.

    Attributes:
        stream: its decompressed bytes.
        scratch: folder for a temporary copy where a format cannot be read in order.
    """

    stream: BinaryIO
    scratch: Path

    @contextmanager
    def seekable(self) -> Iterator[BinaryIO]:
        """The file with random access: itself where it has that, else a copy on disk."""
        if self.stream.seekable():
            yield self.stream
            return
        with tempfile.TemporaryFile(dir=self.scratch) as copy:
            shutil.copyfileobj(self.stream, copy, 2**20)
            copy.seek(0)
            yield cast("BinaryIO", copy)


def open_input_file(
    stream: BinaryIO,
    scratch: Path,
    limits: IngestLimits,
    progress: Callable[[int], None] | None = None,
) -> InputFile:
    """A file whose gzip or zstd compression, told by its first bytes, is taken off while it is read.

    Args:
        stream: the bytes as they came.
        scratch: folder for temporary copies.
        limits: caps on bytes and on the ratio of decompression.
        progress: told how many bytes of ``stream`` have been read so far.

    Raises:
        BadDataError: while reading: a damaged or cut off stream, or more bytes than allowed.
    """
    counted = _CountingStream(stream, progress)
    opened: io.BufferedReader[Any] = io.BufferedReader(counted, 2**18)
    for _ in range(_MAX_LAYERS):
        magic = opened.peek(4)
        if magic.startswith(_GZIP):
            unzipped = cast("ByteReader", gzip.GzipFile(fileobj=opened, mode="rb"))
            plain = GuardedStream(
                unzipped, "the gzip stream", DecompressionGuard(lambda: counted.n_read, limits)
            )
        elif magic.startswith(_ZSTD):
            plain = GuardedStream(
                _ZstdReader(opened), "the zstd stream", DecompressionGuard(lambda: counted.n_read, limits)
            )
        else:
            break
        opened = io.BufferedReader(plain, 2**18)
    return InputFile(opened, scratch)


def read_at_most(stream: BinaryIO, most: int) -> bytes:
    """The first bytes of a stream, in memory for them alone: streams make room for all that is asked for.

    >>> read_at_most(io.BytesIO(b"abc"), 2)
    b'ab'
    """
    parts = []
    while most > 0 and (part := stream.read(min(most, 2**16))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


class ByteReader(Protocol):
    """Whatever bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; none at the end."""
        ...


class _CountingStream(io.RawIOBase):
    """Counts what has been read; keeps random access where there is some."""

    def __init__(self, stream: BinaryIO, progress: Callable[[int], None] | None) -> None:
        self._stream = stream
        self._progress = progress
        self.n_read = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._stream.seekable()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: Any, /) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self.n_read += len(data)
        if self._progress is not None:
            self._progress(self.n_read)
        return len(data)


class DecompressionGuard:
    """How many bytes have come out of a compressed file, and how many may.

    Args:
        compressed: bytes of the compressed file read so far.
        limits: caps on bytes and ratio.
    """

    def __init__(self, compressed: Callable[[], int], limits: IngestLimits) -> None:
        self._compressed = compressed
        self._limits = limits
        self._n_bytes = 0

    def add(self, n_bytes: int) -> None:
        """Count bytes that have come out.

        Raises:
            BadDataError: more than ``limits.decompressed_bytes``, or past the first 16 MiB more than
                ``limits.ratio`` bytes for one.
        """
        self._n_bytes += n_bytes
        limits = self._limits
        if self._n_bytes > limits.decompressed_bytes:
            raise BadDataError(
                f"the file has more than {limits.decompressed_bytes:,} bytes after decompression"
            )
        if self._n_bytes > _RATIO_COUNTS_FROM and self._n_bytes > limits.ratio * max(self._compressed(), 1):
            raise BadDataError(
                f"the file grows more than {limits.ratio} times by decompression; upload it uncompressed"
            )


class GuardedStream(io.RawIOBase):
    """Decompressed bytes, counted; damage is told as bad data.

    Args:
        stream: what decompresses.
        what: what it decompresses, for messages.
        growth: counts for the whole file.
    """

    def __init__(self, stream: ByteReader, what: str, growth: DecompressionGuard) -> None:
        self._stream = stream
        self._what = what
        self._growth = growth

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read the next bytes.

        Raises:
            BadDataError: the stream is cut off or damaged, or grows out of bounds.
        """
        try:
            data = self._stream.read(len(buffer))
        except EOFError as error:
            raise BadDataError(f"{self._what} is cut off; upload the whole file") from error
        except (gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, zstandard.ZstdError) as error:
            raise BadDataError(f"{self._what} is damaged: {error}") from error
        self._growth.add(len(data))
        buffer[: len(data)] = data
        return len(data)


class _ZstdReader:
    """Reads zstd frames, one after another, and knows when the last is cut off."""

    def __init__(self, source: ByteReader) -> None:
        self._source = source
        self._frame: Any = None
        self._ready = b""

    def read(self, size: int) -> bytes:
        while not self._ready:
            chunk = self._source.read(_ZSTD_INPUT)
            if not chunk:
                if self._frame is not None:
                    raise EOFError
                return b""
            self._ready = self._decompressed(chunk)
        data, self._ready = self._ready[:size], self._ready[size:]
        return data

    def _decompressed(self, chunk: bytes) -> bytes:
        parts = []
        while chunk:
            if self._frame is None:
                self._frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
            parts.append(self._frame.decompress(chunk))
            if not self._frame.eof:
                break
            chunk = self._frame.unused_data
            self._frame = None
        return b"".join(parts)
