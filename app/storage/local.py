"""Storage in a local folder, or in a folder that several machines share.

A marker file in the folder tells it from the empty folder on which it is mounted. Without the marker, nothing
is written, and the storage counts as unavailable.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from app.db import open_sessions
from app.storage.interface import (
    UNAVAILABLE_ERRNOS,
    FileInfo,
    MissingFileError,
    StorageState,
    StorageUnavailableError,
    StoredFile,
    check_same_bytes,
    validate_key,
)
from models.serialization.fsync import fsync_folder

MARKER = "covey-storage"
"""Name of the marker file."""

MARKER_TEXT = """\
This folder is the storage of Covey. Do not delete this file: without it, Covey assumes that the storage is
not mounted, and writes nothing here.
"""

NOT_MOUNTED = (
    f"its folder does not contain the file {MARKER}; mount the storage, or run `covey migrate` if this is "
    "the right folder"
)
EMPTY = (
    "its folder contains no files, but the database refers to files; mount the storage, or create the file "
    f"{MARKER} in the folder if the files are lost"
)


_MOVES = 3
"""How often a file is moved to a folder that another process may be removing because it is empty."""


class LocalStorage:
    """Files in a folder. A new file is written to ``tmp``, flushed to the disk and renamed.

    Args:
        root: the folder. ``initialize`` creates it; nothing else does.
    """

    check_seconds = 1.0

    def __init__(self, root: Path) -> None:
        self.root = root

    def initialize(self, *, must_contain_files: bool = False) -> None:
        """Create the folder and its marker if they do not exist.

        Args:
            must_contain_files: whether a folder without files is not the storage.

        Raises:
            StorageUnavailableError: the folder cannot be written, or contains no files.
        """
        with _converted_errors():
            if must_contain_files and not self._contains_files():
                raise StorageUnavailableError(f"{self.root}: {EMPTY}", EMPTY)
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            marker = self.root / MARKER
            if not marker.exists():
                with suppress(FileExistsError), marker.open("x") as file:
                    file.write(MARKER_TEXT)
                    file.flush()
                    os.fsync(file.fileno())
                fsync_folder(self.root)

    def is_initialized(self) -> bool:
        """Return whether the folder has its marker.

        Raises:
            StorageUnavailableError: the folder cannot be read.
        """
        with _converted_errors():
            return (self.root / MARKER).exists()

    def check(self) -> StorageState:
        """Write a few bytes and read them back. Return the state of the storage.

        Raises:
            StorageUnavailableError: the folder is not readable and writable now.
        """
        written = secrets.token_bytes(8)
        with self.temporary_file() as path, _converted_errors():
            path.write_bytes(written)
            check_same_bytes(written, path.read_bytes())
            modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            return StorageState(modified, shutil.disk_usage(self.root).free)

    @contextmanager
    def create(self, key: str) -> Iterator[BinaryIO]:
        """Open a new file for writing. It appears under its key if the block ends without an error."""
        path = self._path(key)
        with self.temporary_file() as temporary:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            with _converted_errors():
                self._move(temporary, path)

    def put(self, key: str, path: Path) -> StoredFile:
        """Move a complete local file to its key."""
        target = self._path(key)
        open_sessions.refuse_if_any("a call to the storage")
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        size = path.stat().st_size
        with _converted_errors():
            self._require_marker()
            self._move(path, target)
        return StoredFile(key, sha256, size)

    def local(self, key: str) -> Path:
        """Return the path of a file.

        Raises:
            MissingFileError: the file does not exist.
        """
        path = self._path(key)
        with _converted_errors():
            if path.is_file():
                return path
            self._require_marker()
        raise MissingFileError(key)

    def size(self, key: str) -> int:
        """Return the size of a file in bytes.

        Raises:
            MissingFileError: the file does not exist.
        """
        path = self.local(key)
        with _converted_errors():
            return path.stat().st_size

    def delete(self, key: str) -> None:
        """Delete a file. It is no error if the file does not exist."""
        path = self._path(key)
        with _converted_errors():
            self._require_marker()
            with suppress(FileNotFoundError):
                path.unlink()
            if path.parent.parent != self.root:
                with suppress(OSError):  # other files are in the folder of the day
                    path.parent.rmdir()

    def files(self, folder: str) -> Iterator[FileInfo]:
        """List the files whose keys begin with ``<folder>/``.

        Files that are created or deleted during the listing may or may not be included.
        """
        with _converted_errors():
            self._require_marker()
            try:
                entries = os.scandir(self.root / folder)
            except FileNotFoundError:
                return
            with entries:
                for entry in entries:
                    key = f"{folder}/{entry.name}"
                    if entry.is_dir():
                        yield from self.files(key)
                        continue
                    with suppress(FileNotFoundError):
                        yield FileInfo(key, datetime.fromtimestamp(entry.stat().st_mtime, UTC))

    def days(self, folder: str) -> list[str]:
        """Return the folders of days in a folder, such as ``messages/2026-11-30``, the oldest first."""
        with _converted_errors():
            self._require_marker()
            try:
                with os.scandir(self.root / folder) as entries:
                    return sorted(f"{folder}/{entry.name}" for entry in entries if entry.is_dir())
            except FileNotFoundError:
                return []

    def all_files(self) -> Iterator[FileInfo]:
        """List all files. Files that are created or deleted at the same time may or may not be included."""
        with _converted_errors():
            self._require_marker()
            folders = sorted(path for path in self.root.iterdir() if path.is_dir() and path != self._tmp)
        for folder in folders:
            yield from self.files(folder.name)

    @contextmanager
    def temporary_file(self, suffix: str = "") -> Iterator[Path]:
        """Return a path on the disk of the storage for a file that is removed when the block ends.

        Raises:
            StorageUnavailableError: also if the block cannot write the file because its folder has vanished.
        """
        path = self._tmp / (secrets.token_hex(12) + suffix)
        with _converted_errors():
            self._require_marker()
            self._tmp.mkdir(exist_ok=True, mode=0o700)
        try:
            yield path
        except OSError as error:
            if error.errno in UNAVAILABLE_ERRNOS or isinstance(error, MissingFileError):
                raise
            with _converted_errors():
                self._require_marker()
            raise
        finally:
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _move(self, source: Path, target: Path) -> None:
        """Move a complete file to its place, also if the folder of its day is removed at this moment."""
        folder = target.parent
        for attempt in range(_MOVES):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                source.replace(target)
                break
            except FileNotFoundError:
                if attempt == _MOVES - 1 or not source.exists():
                    raise
        fsync_folder(folder)
        if folder.parent != self.root:
            fsync_folder(folder.parent)

    @property
    def _tmp(self) -> Path:
        return self.root / "tmp"

    def _path(self, key: str) -> Path:
        return self.root / validate_key(key)

    def _contains_files(self) -> bool:
        folders = [path for path in self.root.iterdir() if path != self._tmp] if self.root.is_dir() else []
        return any(path.is_file() for folder in folders if folder.is_dir() for path in folder.rglob("*"))

    def _require_marker(self) -> None:
        if not (self.root / MARKER).exists():
            raise StorageUnavailableError(f"{self.root}: {NOT_MOUNTED}", NOT_MOUNTED)


@contextmanager
def _converted_errors() -> Iterator[None]:
    """Refuse the call inside a transaction, and raise every error of the file system as a storage error.

    What these calls do does not depend on a request, so an error means that the folder cannot be used now.
    """
    open_sessions.refuse_if_any("a call to the storage")
    try:
        yield
    except StorageUnavailableError:
        raise
    except OSError as error:
        raise StorageUnavailableError(str(error), error.strerror or type(error).__name__) from error
