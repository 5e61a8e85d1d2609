"""Storage in a local folder, or in one that several machines share."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from app.storage.interface import Found, StoredFile, checked, expect_same
from models.serialization.fsync import fsync_folder


class LocalStorage:
    """Files in a folder. One is written aside, flushed to the disk and renamed.

    Args:
        root: the folder; made when missing.
    """

    check_seconds = 1.0

    def __init__(self, root: Path) -> None:
        self.root = root
        self._tmp = root / "tmp"
        self._tmp.mkdir(parents=True, exist_ok=True, mode=0o700)

    def check(self) -> None:
        """Write a few bytes and read them back.

        Raises:
            OSError: that cannot be done now.
        """
        written = secrets.token_bytes(8)
        with self.temporary_file() as path:
            path.write_bytes(written)
            expect_same(written, path.read_bytes())

    def _path(self, key: str) -> Path:
        return self.root / checked(key)

    @contextmanager
    def create(self, key: str) -> Iterator[BinaryIO]:
        """A new file to write; it appears under its key when the block ends well."""
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
        """Store a finished local file under a key; the local file is moved."""
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
        """The path of a file.

        Raises:
            FileNotFoundError: there is no such file.
        """
        path = self._path(key)
        if not path.is_file():
            raise FileNotFoundError(key)
        return path

    def delete(self, key: str) -> None:
        """Remove a file; one that is gone already is no error."""
        with suppress(FileNotFoundError):
            self._path(key).unlink()

    def files(self, folder: str) -> Iterator[Found]:
        """The files whose keys begin with ``<folder>/``; of those that come or go meanwhile, any."""
        try:
            entries = os.scandir(self.root / folder)
        except FileNotFoundError:
            return
        with entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    modified = datetime.fromtimestamp(entry.stat().st_mtime, UTC)
                    yield Found(f"{folder}/{entry.name}", modified)

    def all_files(self) -> Iterator[Found]:
        """All files; of those that come or go meanwhile, any."""
        for folder in sorted(self.root.iterdir()):
            if folder.is_dir() and folder != self._tmp:
                yield from self.files(folder.name)

    @contextmanager
    def temporary_file(self, suffix: str = "") -> Iterator[Path]:
        """A path for a temporary file on the storage's own disk, removed when the block ends."""
        path = self._tmp / (secrets.token_hex(12) + suffix)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)
