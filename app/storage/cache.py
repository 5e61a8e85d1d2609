"""Local copies of files that live elsewhere, shared by all processes of a machine.

A copy stays while a process uses it: each process holds a lock on the last files that it asked for, and only
copies on which there is no lock make room for others, the one that was asked for longest ago first. A
process that dies lets go of its locks by that.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HELD = 32
"""How many files a process holds; a job needs one or two, an API process opens what it asks for at once."""

ABANDONED_SECONDS = 86_400.0
"""A temporary file that has not been written to for so long has lost its process."""


class LocalCache:
    """Copies in a folder of limited size.

    Args:
        root: the folder; made when missing.
        capacity: its size in bytes. Files in use count, and are never removed, so that it can be exceeded.
    """

    def __init__(self, root: Path, capacity: int) -> None:
        self._tmp = root / "tmp"
        self._copies = root / "copies"
        self._capacity = capacity
        self._held: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()
        for folder in (self._tmp, self._copies):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def get(self, name: str, size: int, download: Callable[[Path], None]) -> Path:
        """The path of a copy, made now where there is none.

        Args:
            name: of the copy; another content has another name.
            size: of the content, in bytes.
            download: writes the content to a path.

        Raises:
            OSError: what was downloaded has another size.
        """
        path = self._copies / name
        if self._hold(path, size):
            os.utime(path)
            return path
        self._make_room(size)
        with self.temporary_file() as temporary:
            download(temporary)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
                if (found := os.fstat(file.fileno()).st_size) != size:
                    raise OSError(f"{found} bytes came of {size} bytes of {name}")
            while not self._hold(path, size):
                # Another process may have been quicker, or may make room in just this moment.
                with suppress(FileExistsError):
                    os.link(temporary, path)
        return path

    @contextmanager
    def temporary_file(self, suffix: str = "") -> Iterator[Path]:
        """A path for a temporary file on the copies' disk, removed when the block ends."""
        path = self._tmp / (secrets.token_hex(12) + suffix)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def _hold(self, path: Path, size: int) -> bool:
        """Keep a copy from being removed; gives False where there is no whole one."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        status = os.fstat(descriptor)
        if status.st_nlink == 0 or status.st_size != size:
            os.close(descriptor)
            if status.st_nlink:  # cut off: the machine has gone down just after it was made
                path.unlink(missing_ok=True)
            return False
        with self._lock:
            before = self._held.pop(path.name, None)
            self._held[path.name] = descriptor
            _, oldest = self._held.popitem(last=False) if len(self._held) > HELD else ("", None)
        for let_go in (before, oldest):
            if let_go is not None:
                os.close(let_go)
        return True

    def _make_room(self, size: int) -> None:
        """Remove copies that nobody uses until one of this size fits, or all are in use."""
        copies = []
        for path in self._copies.iterdir():
            with suppress(FileNotFoundError):
                status = path.stat()
                copies.append((status.st_mtime, status.st_size, path))
        taken = sum(bytes_ for _, bytes_, _ in copies) + size
        for _, bytes_, path in sorted(copies):
            if taken <= self._capacity:
                break
            if _remove_unused(path):
                taken -= bytes_
        for path in self._tmp.iterdir():
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                    path.unlink()


def _remove_unused(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Only this very file: it may have been replaced since it was opened.
        with suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                path.unlink()
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
