"""Zip files, read member by member and never further than their caps."""

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
_LARGEST_COMMENT = 2**16
_DIRECTORY_BYTES = 400  # of one member in the directory: 46, its name, and times or other extras
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def is_zip(source: InputFile) -> bool:
    """Whether a file begins like a zip."""
    return cast("io.BufferedReader", source.stream).peek(4).startswith(_MAGIC)


class ZipArchive:
    """The members of an open zip that are files and not an operating system's litter.

    Attributes:
        names: of the members, in the order of the directory; a zip may hold two of the same name.
    """

    def __init__(self, archive: zipfile.ZipFile, growth: DecompressionGuard) -> None:
        self._archive = archive
        self._growth = growth
        self._members = [info for info in archive.infolist() if not _is_system_file(info)]
        self.names = [info.filename for info in self._members]

    def signature(self, index: int) -> tuple[int, int]:
        """Size and CRC-32 of a member, equal where two members are the same bytes."""
        info = self._members[index]
        return info.file_size, info.CRC

    def open(self, index: int) -> BinaryIO:
        """The decompressed bytes of a member, counted against the caps of the whole zip.

        Raises:
            BadDataError: now or while reading: it is encrypted, compressed in a rare way, or damaged.
        """
        info = self._members[index]
        name = quoted(info.filename)
        if info.flag_bits & 1:
            raise BadDataError(f"the member {name} of the zip is encrypted")
        if info.compress_type not in _READABLE:
            raise BadDataError(f"the member {name} of the zip is compressed otherwise than by deflate")
        with _zip_errors_as_bad_data(f"the member {name} of the zip is damaged"):
            member = self._archive.open(info)
        plain = GuardedStream(cast("ByteReader", member), f"the member {name} of the zip", self._growth)
        return cast("BinaryIO", io.BufferedReader(plain, 2**16))


@contextmanager
def open_zip_archive(source: InputFile, limits: IngestLimits) -> Iterator[ZipArchive]:
    """A zip with random access.

    Raises:
        BadDataError: not a zip, damaged, or with more members than allowed.
    """
    with source.seekable() as file:
        size = file.seek(0, io.SEEK_END)
        if _directory_bytes(file, size) > limits.zip_members * _DIRECTORY_BYTES:
            raise BadDataError(f"the zip has more than {limits.zip_members:,} members")
        with _zip_errors_as_bad_data("the zip is damaged or cut off"):
            archive = zipfile.ZipFile(file)
        with archive:
            if len(archive.infolist()) > limits.zip_members:
                raise BadDataError(f"the zip has more than {limits.zip_members:,} members")
            yield ZipArchive(archive, DecompressionGuard(lambda: size, limits))


@contextmanager
def _zip_errors_as_bad_data(what: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, struct.error) as error:
        raise BadDataError(f"{what}: {error}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise BadDataError(f"{what}: it points to a place before the file") from error


def _directory_bytes(file: BinaryIO, size: int) -> int:
    """What the zip's end says of the size of its directory, which zipfile takes into memory as a whole."""
    tail_size = min(size, _END_SIZE + _LARGEST_COMMENT)
    file.seek(size - tail_size)
    tail = file.read(tail_size)
    end = tail.rfind(_END)
    if end < 0 or len(tail) - end < _END_SIZE:
        raise BadDataError("the zip is cut off; upload the whole file")
    n_bytes = int.from_bytes(tail[end + 12 : end + 16], "little")
    end64 = tail.rfind(_END64, 0, end)
    if end64 >= 0 and len(tail) - end64 >= 48:
        n_bytes = max(n_bytes % 0xFFFFFFFF, int.from_bytes(tail[end64 + 40 : end64 + 48], "little"))
    return n_bytes


def _is_system_file(info: zipfile.ZipInfo) -> bool:
    parts = info.filename.split("/")
    is_file = bool(parts[-1])  # ZipInfo.is_dir stumbles over an empty name
    return not is_file or "__MACOSX" in parts or any(part.startswith(".") for part in parts)
