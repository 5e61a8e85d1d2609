"""Storage in a local folder, or in a folder that several machines share."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from app.storage.interface import FileInfo, StoredFile, check_same_bytes, validate_key
from models.serialization.fsync import fsync_folder


class LocalStorage:
    """Files in a folder. A new file is written to ``tmp``, flushed to the disk and renamed.

    Args:
        root: the folder, created if it does not exist.
    """

    check_seconds = 1.0

    def __init__(self, root: Path) -> None:
        self.root = root
        self._tmp = root / "tmp"
        self._tmp.mkdir(parents=True, exist_ok=True, mode=0o700)

    def check(self) -> None:
        """Write a few bytes and read them back.

        Raises:
            OSError: the folder is not readable and writable now.
        """
        written = secrets.token_bytes(8)
        with self.temporary_file() as path:
            path.write_bytes(written)
            check_same_bytes(written, path.read_bytes())

    def _path(self, key: str) -> Path:
        return self.root / validate_key(key)

    @contextmanager
    def create(self, key: str) -> Iterator[BinaryIO]:
        """Open a new file for writing. It appears under its key if the block ends without an error."""
        path = self._path(key)
        temporary = self._tmp / secrets.token_hex(12)
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.replace(path)
            fsync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)

    def put(self, key: str, path: Path) -> StoredFile:
        """Move a complete local file to its key."""
        target = self._path(key)
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        size = path.stat().st_size
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
        fsync_folder(target.parent)
        return StoredFile(key, sha256, size)

    def local(self, key: str) -> Path:
        """Return the path of a file.

        Raises:
            FileNotFoundError: the file does not exist.
        """
        path = self._path(key)
        if not path.is_file():
            raise FileNotFoundError(key)
        return path

    def delete(self, key: str) -> None:
        """Delete a file. It is no error if the file does not exist."""
        with suppress(FileNotFoundError):
            self._path(key).unlink()

    def files(self, folder: str) -> Iterator[FileInfo]:
        """List the files whose keys begin with ``<folder>/``.

        Files that are created or deleted during the listing may or may not be included.
        """
        try:
            entries = os.scandir(self.root / folder)
        except FileNotFoundError:
            return
        with entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    modified = datetime.fromtimestamp(entry.stat().st_mtime, UTC)
                    yield FileInfo(f"{folder}/{entry.name}", modified)

    def all_files(self) -> Iterator[FileInfo]:
        """List all files. Files that are created or deleted meanwhile may or may not be included."""
        for folder in sorted(self.root.iterdir()):
            if folder.is_dir() and folder != self._tmp:
                yield from self.files(folder.name)

    @contextmanager
    def temporary_file(self, suffix: str = "") -> Iterator[Path]:
        """Return a path on the disk of the storage for a file that is removed when the block ends."""
        path = self._tmp / (secrets.token_hex(12) + suffix)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)
