"""Opens an uploaded file: decompresses gzip and zstd on the fly and enforces the limits on size.

A decompression bomb is a small compressed file that expands to an enormous one. :class:`DecompressionGuard`
counts the decompressed bytes and stops the reader at the limits.
"""

from __future__ import annotations

import gzip
import io
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from models.data.limits import IngestLimits
from models.errors import BadDataError
from models.extras import require

try:
    import zstandard
except ModuleNotFoundError:
    zstandard = None  # type: ignore[assignment]

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_RATIO_MIN_BYTES = 16 * 2**20
_MAX_LAYERS = 2  # a compressed file that is sent with a Content-Encoding
_ZSTD_INPUT = 1024  # zstd can expand 4 bytes to 128 KiB, so that one read of this size yields at most 32 MiB
_ZSTD_WINDOW = 2**27  # the default maximum of the zstd command
_DAMAGE: tuple[type[Exception], ...] = (gzip.BadGzipFile, zipfile.BadZipFile, zlib.error)
if zstandard is not None:
    _DAMAGE = (*_DAMAGE, zstandard.ZstdError)


@dataclass(frozen=True)
class InputFile:
    """A file to read once, from the beginning.

    Attributes:
        stream: its decompressed bytes.
        temp_folder: folder for a temporary copy, for formats that need random access.
        companions: functions that open further files of the format that are in the same zip.
    """

    stream: BinaryIO
    temp_folder: Path
    companions: Sequence[Callable[[], BinaryIO]] = ()

    def peek_start(self) -> bytes:
        """Return some bytes at the beginning of the file, usually 64 KiB or more, without consuming them."""
        return cast("io.BufferedReader", self.stream).peek(2**16)

    @contextmanager
    def open_seekable(self) -> Iterator[BinaryIO]:
        """Open the file with random access: the stream itself if it is seekable, else a copy on disk."""
        if self.stream.seekable():
            yield self.stream
            return
        with tempfile.TemporaryFile(dir=self.temp_folder) as copy:
            shutil.copyfileobj(self.stream, copy, 2**20)
            copy.seek(0)
            yield cast("BinaryIO", copy)


def open_input_file(
    stream: BinaryIO,
    temp_folder: Path,
    limits: IngestLimits,
    progress: Callable[[int], None] | None = None,
) -> InputFile:
    """Open a file. Detects gzip and zstd from the first bytes and decompresses while reading.

    Args:
        stream: the bytes of the file.
        temp_folder: folder for temporary copies.
        limits: limits on the decompressed bytes and the compression ratio.
        progress: receives the number of bytes of ``stream`` read so far.

    Raises:
        BadDataError: while reading: the stream is damaged or truncated, or exceeds a limit.
    """
    counting = _CountingStream(stream, progress)
    opened: io.BufferedReader[Any] = io.BufferedReader(counting, 2**18)
    for _ in range(_MAX_LAYERS):
        magic = opened.peek(4)
        if magic.startswith(_GZIP):
            decompressor, what = cast("ByteReader", gzip.GzipFile(fileobj=opened, mode="rb")), "gzip"
        elif magic.startswith(_ZSTD):
            decompressor, what = _ZstdReader(opened), "zstd"
        else:
            break
        guard = DecompressionGuard(lambda: counting.n_read, limits)
        opened = io.BufferedReader(GuardedStream(decompressor, f"the {what} stream", guard), 2**18)
    return InputFile(opened, temp_folder)


def read_at_most(stream: BinaryIO, max_bytes: int) -> bytes:
    """Read the first bytes of a stream in small steps, so that memory grows only with what is read.

    A single ``read(max_bytes)`` would allocate ``max_bytes`` at once.

    >>> read_at_most(io.BytesIO(b"abc"), 2)
    b'ab'
    """
    parts = []
    while max_bytes > 0 and (part := stream.read(min(max_bytes, 2**16))):
        parts.append(part)
        max_bytes -= len(part)
    return b"".join(parts)


class ByteReader(Protocol):
    """An object from which bytes can be read."""

    def read(self, size: int, /) -> bytes:
        """Read up to ``size`` bytes; return no bytes at the end."""
        ...


class _CountingStream(io.RawIOBase):
    """Counts the bytes that are read. Seekable if the wrapped stream is."""

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
    """Counts decompressed bytes and enforces the limits on them.

    Args:
        n_compressed: returns the number of compressed bytes read so far.
        limits: limits on the decompressed bytes and the compression ratio.
    """

    def __init__(self, n_compressed: Callable[[], int], limits: IngestLimits) -> None:
        self._n_compressed = n_compressed
        self._limits = limits
        self._n_bytes = 0

    def count(self, n_bytes: int) -> None:
        """Count decompressed bytes.

        Raises:
            BadDataError: the total exceeds ``limits.decompressed_bytes``, or exceeds 16 MiB and
                ``limits.compression_ratio`` times the compressed bytes.
        """
        self._n_bytes += n_bytes
        limits = self._limits
        if self._n_bytes > limits.decompressed_bytes:
            raise BadDataError(
                f"the file is larger than the limit of {limits.decompressed_bytes:,} bytes after "
                "decompression; upload a smaller file"
            )
        ratio_limit = limits.compression_ratio * max(self._n_compressed(), 1)
        if self._n_bytes > _RATIO_MIN_BYTES and self._n_bytes > ratio_limit:
            raise BadDataError(
                f"the file expands to more than {limits.compression_ratio} times its compressed size; "
                "upload it uncompressed"
            )


class GuardedStream(io.RawIOBase):
    """A decompressed stream that enforces the limits and reports damage as :class:`BadDataError`.

    Args:
        stream: the decompressor.
        what: what is decompressed, for error texts.
        guard: counts the bytes of the whole file.
    """

    def __init__(self, stream: ByteReader, what: str, guard: DecompressionGuard) -> None:
        self._stream = stream
        self._what = what
        self._guard = guard

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read the next bytes.

        Raises:
            BadDataError: the stream is truncated or damaged, or exceeds a limit.
        """
        try:
            data = self._stream.read(len(buffer))
        except EOFError as error:
            raise BadDataError(f"{self._what} is truncated; upload the complete file") from error
        except _DAMAGE as error:
            raise BadDataError(f"{self._what} is damaged: {error}") from error
        self._guard.count(len(data))
        buffer[: len(data)] = data
        return len(data)


class _ZstdReader:
    """Decompresses consecutive zstd frames, and detects a truncated last frame."""

    def __init__(self, stream: ByteReader) -> None:
        require(zstandard, "zstandard", "reading zstd files")
        self._stream = stream
        self._frame: Any = None
        self._buffer = b""

    def read(self, size: int) -> bytes:
        while not self._buffer:
            chunk = self._stream.read(_ZSTD_INPUT)
            if not chunk:
                if self._frame is not None:
                    raise EOFError
                return b""
            self._buffer = self._decompress(chunk)
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def _decompress(self, chunk: bytes) -> bytes:
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
