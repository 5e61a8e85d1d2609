"""The interface that every storage implements, and its errors.

Keys of files are created by the service; no key ever comes from a client. A file appears only when it is
complete, and never changes afterwards.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol

_KEY = re.compile(r"[a-z]+(/\d{4}-\d\d-\d\d)?/[A-Za-z0-9_.-]+")
"""A folder, for many files a folder for each day in it, and the name of the file."""

UNAVAILABLE_ERRNOS = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE),  # full or damaged
        *(errno.EROFS, errno.EACCES, errno.EPERM),  # not writable now, as after an error of the disk
        *(errno.ENODEV, errno.ENXIO, errno.EREMOTEIO, errno.ESTALE, errno.ENOTCONN, errno.ESHUTDOWN),  # gone
        *(errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH),
        *(errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EAGAIN, errno.EINTR, errno.EBUSY),
    }
)
"""Error numbers that do not depend on the request, so that the same request may succeed later."""


@dataclass(frozen=True)
class StoredFile:
    """A file that has just been stored.

    Attributes:
        key: its key.
        sha256: SHA-256 digest of its content, hexadecimal.
        size_bytes: its size.
    """

    key: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class FileInfo:
    """An entry of a listing.

    Attributes:
        key: key of the file.
        modified: time of the last write.
    """

    key: str
    modified: datetime


@dataclass(frozen=True)
class StorageState:
    """The result of a check.

    Attributes:
        now: the time by the clock of the storage, which sets ``FileInfo.modified``.
        free_bytes: space for new files; None if there is no limit that the storage knows.
    """

    now: datetime
    free_bytes: int | None = None


class StorageUnavailableError(OSError):
    """The storage does not respond, or refuses a request. The request can be repeated later.

    Args:
        reason: what is wrong, for the log.
        public_reason: what is wrong, without any address; readiness shows it to all clients.
    """

    def __init__(self, reason: str, public_reason: str = "it does not answer") -> None:
        super().__init__(errno.EIO, f"the storage is unavailable: {reason}")
        self.public_reason = public_reason


class MissingFileError(FileNotFoundError):
    """The storage is available, but does not contain the file."""

    def __init__(self, key: str) -> None:
        super().__init__(errno.ENOENT, "the storage does not contain the file", key)
        self.key = key


class Storage(Protocol):
    """A store of files under keys.

    Every method raises ``StorageUnavailableError`` if the storage cannot be used now, and
    ``SessionOpenError`` if the calling thread has a database session open.

    Attributes:
        check_seconds: time for which the result of a check can be reused.
    """

    check_seconds: float

    def initialize(self, *, must_contain_files: bool = False) -> None:
        """Prepare the storage for its first use. Do nothing if it was prepared before.

        Args:
            must_contain_files: whether a storage without files is not the right one.

        Raises:
            StorageUnavailableError: the storage cannot be written, or contains no files.
        """
        ...

    def is_initialized(self) -> bool:
        """Return whether the storage was prepared, and so is not the empty place of an absent storage.

        Raises:
            StorageUnavailableError: the storage cannot be read.
        """
        ...

    def check(self) -> StorageState:
        """Write a few bytes and read them back. Return the state of the storage.

        Raises:
            StorageUnavailableError: the storage is not readable and writable now.
        """
        ...

    def create(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Open a new file for writing. It appears under its key if the block ends without an error."""
        ...

    def put(self, key: str, path: Path) -> StoredFile:
        """Store a complete local file under a key. The local file may be moved instead of copied."""
        ...

    def local(self, key: str) -> Path:
        """Return a local path from which the file can be read.

        Raises:
            MissingFileError: the file does not exist.
        """
        ...

    def size(self, key: str) -> int:
        """Return the size of a file in bytes, without reading the file.

        Raises:
            MissingFileError: the file does not exist.
        """
        ...

    def delete(self, key: str) -> None:
        """Delete a file. It is no error if the file does not exist."""
        ...

    def files(self, folder: str) -> Iterator[FileInfo]:
        """List the files whose keys begin with ``<folder>/``.

        Files that are created or deleted during the listing may or may not be included.
        """
        ...

    def days(self, folder: str) -> list[str]:
        """Return the folders of days in a folder, such as ``messages/2026-11-30``, the oldest first."""
        ...

    def all_files(self) -> Iterator[FileInfo]:
        """List all files. Files that are created or deleted at the same time may or may not be included."""
        ...

    def temporary_file(self, suffix: str = "") -> AbstractContextManager[Path]:
        """Return a path for a local file that is removed when the block ends, and that ``put`` can move."""
        ...


def check_same_bytes(written: bytes, read: bytes) -> None:
    """Check that a storage returned the bytes that were written.

    Raises:
        StorageUnavailableError: the bytes differ.
    """
    if read != written:
        message = "it returns other bytes than were written"
        raise StorageUnavailableError(message, message)


def validate_key(key: str) -> str:
    """Return the key if it is valid.

    >>> validate_key("datasets/ds_01.1.parquet")
    'datasets/ds_01.1.parquet'
    >>> validate_key("messages/2026-11-30/dec_01.zst")
    'messages/2026-11-30/dec_01.zst'
    >>> validate_key("datasets/../covey.db")
    Traceback (most recent call last):
    ValueError: not a storage key: 'datasets/../covey.db'
    """
    if not _KEY.fullmatch(key):
        raise ValueError(f"not a storage key: {key!r}")
    return key
