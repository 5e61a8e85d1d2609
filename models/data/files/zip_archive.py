"""Reads the members of a zip within the limits on their number and size."""

from __future__ import annotations

import errno
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from models.data.files.input_file import (
    ByteReader,
    DecompressionGuard,
    GuardedStream,
    InputFile,
    read_at_most,
)
from models.data.files.zip_names import NameEncoding, decode_names
from models.data.limits import IngestLimits
from models.data.record import quoted
from models.errors import BadDataError

_MAGIC = b"PK\x03\x04"
_END = b"PK\x05\x06"
_END64 = b"PK\x06\x06"
_END_SIZE = 22
_MAX_COMMENT_BYTES = 2**16
_DIRECTORY_BYTES = 400  # for each member: a fixed part of 46 bytes, the name, and extras such as times
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,  # zipfile raises it for what it cannot read, such as strong encryption
    ValueError,
    EOFError,
    struct.error,
    OSError,
)
_HEADER_BYTES = 30
_USUAL_EXTRA_BYTES = 64
_SMALL_BYTES = 2**20
"""Compressed size up to which a member is decompressed at once."""
_SYSTEM_FILES = frozenset({".DS_Store", "Thumbs.db", "ehthumbs.db", "desktop.ini", "Icon\r"})
_SUPPORTED_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def is_zip(file: InputFile) -> bool:
    """Return whether a file begins like a zip. Does not consume any bytes."""
    return cast("io.BufferedReader", file.stream).peek(4).startswith(_MAGIC)


class ZipArchive:
    """The files in an open zip, without folders and the files that operating systems add.

    Attributes:
        names: decoded names of the members in the order of the directory; a name can occur more than once.
        n_system_files: number of files such as ``__MACOSX/...``, ``.DS_Store`` and ``Thumbs.db``.
        warnings: warnings about the encoding of the names.
    """

    def __init__(
        self,
        archive: zipfile.ZipFile,
        file: BinaryIO,
        limits: IngestLimits,
        encoding: NameEncoding | None,
    ) -> None:
        self._archive = archive
        self._file = file
        self._limits = limits
        self._size = file.seek(0, io.SEEK_END)
        names, self.warnings = decode_names(archive.infolist(), encoding)
        files = [
            (name, info)
            for name, info in zip(names, archive.infolist(), strict=True)
            if name and not name.endswith("/")
        ]
        kept = [(name, info) for name, info in files if not _is_system_file(name)]
        self.names = [name for name, _ in kept]
        self._members = [info for _, info in kept]
        self.n_system_files = len(files) - len(kept)
        self.begin_pass()

    def begin_pass(self) -> None:
        """Begin to count the decompressed bytes, for the next pass over the members."""
        self._guard = DecompressionGuard(lambda: self._size, self._limits)

    def signature(self, index: int) -> tuple[int, int]:
        """Return the size and CRC-32 of a member. Members with the same bytes have the same signature."""
        info = self._members[index]
        return info.file_size, info.CRC

    def position(self, index: int) -> int:
        """Return the position of a member in the file."""
        return self._members[index].header_offset

    def read(self, index: int, max_bytes: int) -> bytes:
        """Return a member, or its first ``max_bytes`` bytes if it is longer.

        The standard library takes many times longer to open a small member.

        Raises:
            BadDataError: the member is encrypted or damaged, or its compression method is not supported.
        """
        info = self._check(index)
        if info.compress_size > _SMALL_BYTES or max_bytes <= 0:
            with self.open(index) as member:
                return read_at_most(member, max_bytes)
        try:
            content = self._read(info, max_bytes)
        except _DAMAGE as error:
            raise _as_bad_data(f"{self._describe(index)} is damaged", error) from error
        self._guard.count(len(content))
        return content

    def _read(self, info: zipfile.ZipInfo, max_bytes: int) -> bytes:
        # The compressed bytes follow a header, a copy of the name and extra fields.
        start = _HEADER_BYTES + len(info.filename) + _USUAL_EXTRA_BYTES
        n_needed = min(info.compress_size, max_bytes + max_bytes // 8 + _USUAL_EXTRA_BYTES)
        self._file.seek(info.header_offset)
        data = self._file.read(start + n_needed)
        if len(data) < _HEADER_BYTES or not data.startswith(_MAGIC):
            raise zipfile.BadZipFile("its header is missing")
        start = _HEADER_BYTES + int.from_bytes(data[26:28], "little") + int.from_bytes(data[28:30], "little")
        if len(data) < start + n_needed:
            data += self._file.read(start + n_needed - len(data))
        compressed = data[start : start + n_needed]
        if len(compressed) < n_needed:
            raise EOFError("the zip ends too early")
        if info.compress_type == zipfile.ZIP_STORED:
            content, is_complete = compressed[:max_bytes], info.compress_size <= max_bytes
        else:
            decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
            content, is_complete = decompressor.decompress(compressed, max_bytes), decompressor.eof
            if not is_complete and len(content) < max_bytes and n_needed == info.compress_size:
                raise EOFError("the compressed data is truncated")
        if is_complete and (len(content) != info.file_size or zlib.crc32(content) != info.CRC):
            raise zipfile.BadZipFile("the checksum is wrong")
        return content

    def open(self, index: int) -> BinaryIO:
        """Open a member. Its decompressed bytes count towards the limits of the whole zip.

        Raises:
            BadDataError: now or while reading: the member is encrypted or damaged, or its compression method
                is not supported.
        """
        info = self._check(index)
        what = self._describe(index)
        with _zip_errors_as_bad_data(f"{what} is damaged"):
            member = self._archive.open(info)
        plain = GuardedStream(cast("ByteReader", member), what, self._guard)
        return cast("BinaryIO", io.BufferedReader(plain, 2**16))

    def _describe(self, index: int) -> str:
        return f"the member {quoted(self.names[index])} of the zip"

    def _check(self, index: int) -> zipfile.ZipInfo:
        info = self._members[index]
        if info.flag_bits & 1:
            raise BadDataError(f"{self._describe(index)} is encrypted; create the zip without a password")
        if info.compress_type not in _SUPPORTED_METHODS:
            raise BadDataError(f"{self._describe(index)} uses an unsupported compression method; use deflate")
        return info


@contextmanager
def open_zip_archive(
    file: InputFile, limits: IngestLimits, encoding: NameEncoding | None = None
) -> Iterator[ZipArchive]:
    """Open a zip with random access.

    Args:
        file: the zip.
        limits: limits on its members and their size.
        encoding: the encoding of names without the UTF-8 flag; None guesses it.

    Raises:
        BadDataError: the file is not a zip, is damaged, or has more members than the limit.
    """
    with file.open_seekable() as seekable:
        size = seekable.seek(0, io.SEEK_END)
        if _directory_size(seekable, size) > limits.zip_members * _DIRECTORY_BYTES:
            raise _too_many_members(limits)
        with _zip_errors_as_bad_data("the zip is damaged or truncated"):
            archive = zipfile.ZipFile(seekable)
        with archive:
            if len(archive.infolist()) > limits.zip_members:
                raise _too_many_members(limits)
            yield ZipArchive(archive, seekable, limits, encoding)


def _too_many_members(limits: IngestLimits) -> BadDataError:
    return BadDataError(f"the zip has more members than the limit of {limits.zip_members:,}")


@contextmanager
def _zip_errors_as_bad_data(what: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise _as_bad_data(what, error) from error


def _as_bad_data(what: str, error: Exception) -> Exception:
    """Return the error for the user; the error itself if the cause is not the file."""
    if isinstance(error, OSError):
        if error.errno != errno.EINVAL:
            return error
        return BadDataError(f"{what}: an offset points before the beginning of the file")
    return BadDataError(f"{what}: {error}")


def _directory_size(file: BinaryIO, size: int) -> int:
    """Return the size of the directory as the end record states it.

    The zipfile module loads the whole directory into memory, so its size is checked first.
    """
    tail_size = min(size, _END_SIZE + _MAX_COMMENT_BYTES)
    file.seek(size - tail_size)
    tail = file.read(tail_size)
    end = tail.rfind(_END)
    if end < 0 or len(tail) - end < _END_SIZE:
        raise BadDataError("the zip is truncated; upload the complete file")
    n_bytes = int.from_bytes(tail[end + 12 : end + 16], "little")
    end64 = tail.rfind(_END64, 0, end)
    if end64 >= 0 and len(tail) - end64 >= 48:
        n_bytes = max(n_bytes % 0xFFFFFFFF, int.from_bytes(tail[end64 + 40 : end64 + 48], "little"))
    return n_bytes


def _is_system_file(name: str) -> bool:
    """Return whether macOS or Windows has added a file to a folder or zip."""
    folders, _, base = name.rpartition("/")
    return base.startswith("._") or base in _SYSTEM_FILES or "__MACOSX" in folders.split("/")
