"""Reads the members of a zip within the limits on their number and size."""

from __future__ import annotations

import errno
import io
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from models.data.limits import IngestLimits
from models.data.readers.input_file import ByteReader, DecompressionGuard, GuardedStream, InputFile
from models.data.record import quoted
from models.errors import BadDataError

_MAGIC = b"PK\x03\x04"
_END = b"PK\x05\x06"
_END64 = b"PK\x06\x06"
_END_SIZE = 22
_MAX_COMMENT_BYTES = 2**16
_DIRECTORY_BYTES = 400  # for each member: a fixed part of 46 bytes, the name, and extras such as times
_SUPPORTED_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def is_zip(file: InputFile) -> bool:
    """Return whether a file begins like a zip. Does not consume any bytes."""
    return cast("io.BufferedReader", file.stream).peek(4).startswith(_MAGIC)


class ZipArchive:
    """The files in an open zip, without folders, hidden files and ``__MACOSX``.

    Attributes:
        names: names of the members in the order of the directory; a name can occur more than once.
    """

    def __init__(self, archive: zipfile.ZipFile, guard: DecompressionGuard) -> None:
        self._archive = archive
        self._guard = guard
        self._members = [info for info in archive.infolist() if not _is_system_file(info)]
        self.names = [info.filename for info in self._members]

    def signature(self, index: int) -> tuple[int, int]:
        """Return the size and CRC-32 of a member. Members with the same bytes have the same signature."""
        info = self._members[index]
        return info.file_size, info.CRC

    def open(self, index: int) -> BinaryIO:
        """Open a member. Its decompressed bytes count towards the limits of the whole zip.

        Raises:
            BadDataError: now or while reading: the member is encrypted or damaged, or its compression method
                is not supported.
        """
        info = self._members[index]
        what = f"the member {quoted(info.filename)} of the zip"
        if info.flag_bits & 1:
            raise BadDataError(f"{what} is encrypted; create the zip without a password")
        if info.compress_type not in _SUPPORTED_METHODS:
            raise BadDataError(f"{what} uses an unsupported compression method; use deflate")
        with _zip_errors_as_bad_data(f"{what} is damaged"):
            member = self._archive.open(info)
        plain = GuardedStream(cast("ByteReader", member), what, self._guard)
        return cast("BinaryIO", io.BufferedReader(plain, 2**16))


@contextmanager
def open_zip_archive(file: InputFile, limits: IngestLimits) -> Iterator[ZipArchive]:
    """Open a zip with random access.

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
            yield ZipArchive(archive, DecompressionGuard(lambda: size, limits))


def _too_many_members(limits: IngestLimits) -> BadDataError:
    return BadDataError(f"the zip has more members than the limit of {limits.zip_members:,}")


@contextmanager
def _zip_errors_as_bad_data(what: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, struct.error) as error:
        raise BadDataError(f"{what}: {error}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise BadDataError(f"{what}: an offset points before the beginning of the file") from error


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


def _is_system_file(info: zipfile.ZipInfo) -> bool:
    """Return whether a member is a folder, a hidden file or part of ``__MACOSX``."""
    parts = info.filename.split("/")
    is_file = bool(parts[-1])  # ZipInfo.is_dir fails on an empty name
    return not is_file or "__MACOSX" in parts or any(part.startswith(".") for part in parts)
