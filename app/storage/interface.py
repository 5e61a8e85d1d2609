"""What storage can do, wherever the files are.

Files lie under keys that the service itself makes; no key ever comes from a client. A file appears whole or
not at all, and one that is there is never written to again.
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

_KEY = re.compile(r"[a-z]+/[A-Za-z0-9_.-]+")


DISK_UNAVAILABLE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ESTALE,
)
"""Errors of the system that say nothing of what was asked, and may be gone the next time."""


@dataclass(frozen=True)
class StoredFile:
    """A file that has been stored.

    Attributes:
        key: its key.
        sha256: digest of its content, hexadecimal.
        size_bytes: its size.
    """

    key: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class Found:
    """A file that is there.

    Attributes:
        key: its key.
        modified: when it was last written to.
    """

    key: str
    modified: datetime


class StorageUnavailableError(OSError):
    """The storage does not answer, or refuses; what was asked of it may be asked again."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EIO, f"the storage does not do its work: {reason}")


class Storage(Protocol):
    """Where files live.

    Attributes:
        check_seconds: how long the outcome of a check is worth believing.
    """

    check_seconds: float

    def check(self) -> None:
        """Write a few bytes and read them back.

        Raises:
            OSError: that cannot be done now.
        """
        ...

    def create(self, key: str) -> AbstractContextManager[BinaryIO]:
        """A new file to write; it appears under its key when the block ends well."""
        ...

    def put(self, key: str, path: Path) -> StoredFile:
        """Store a finished local file under a key; the local file may be moved away."""
        ...

    def local(self, key: str) -> Path:
        """A local path to read the file from.

        Raises:
            FileNotFoundError: there is no such file.
        """
        ...

    def delete(self, key: str) -> None:
        """Remove a file; one that is gone already is no error."""
        ...

    def files(self, folder: str) -> Iterator[Found]:
        """The files whose keys begin with ``<folder>/``; of those that come or go meanwhile, any."""
        ...

    def all_files(self) -> Iterator[Found]:
        """All files; of those that come or go meanwhile, any."""
        ...

    def temporary_file(self, suffix: str = "") -> AbstractContextManager[Path]:
        """A path for a temporary local file, removed when the block ends; ``put`` takes it at no cost."""
        ...


def expect_same(written: bytes, read: bytes) -> None:
    """What was read must be what was written.

    Raises:
        OSError: it is not.
    """
    if read != written:
        raise OSError(errno.EIO, "the storage gives back other bytes than it took")


def checked(key: str) -> str:
    """The key, if it is one.

    >>> checked("datasets/ds_01.1.parquet")
    'datasets/ds_01.1.parquet'
    >>> checked("datasets/../covey.db")
    Traceback (most recent call last):
    ValueError: not a storage key: 'datasets/../covey.db'
    """
    if not _KEY.fullmatch(key):
        raise ValueError(f"not a storage key: {key!r}")
    return key
