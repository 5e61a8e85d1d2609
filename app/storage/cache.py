"""A cache of files from a bucket on the local disk, shared by all processes of a machine.

An entry is not evicted while a process uses it: each process holds a shared lock on the files that it opened
most recently. Only unlocked entries are evicted, the least recently used first. The system releases the locks
of a process that dies.
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

MAX_LOCKED = 32
"""Number of entries that a process keeps locked. A job needs one or two; API processes open files at once."""

ABANDONED_SECONDS = 86_400.0
"""Age at which a temporary file is removed, because its process must have died."""


class LocalCache:
    """Cached files in a folder of limited size.

    Args:
        root: the folder, created if it does not exist.
        capacity: maximum size in bytes. Entries in use are never evicted, so the cache can exceed it.
    """

    def __init__(self, root: Path, capacity: int) -> None:
        self._tmp = root / "tmp"
        self._entries = root / "copies"
        self._capacity = capacity
        self._locked: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()
        for folder in (self._tmp, self._entries):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def get(self, name: str, size: int, download: Callable[[Path], None]) -> Path:
        """Return the path of an entry. Download the file if it is not in the cache.

        Args:
            name: name of the entry. Different contents must have different names.
            size: size of the content, in bytes.
            download: writes the content to a path.

        Raises:
            OSError: the downloaded file has another size.
        """
        path = self._entries / name
        if self._lock_entry(path, size):
            os.utime(path)
            return path
        self._make_room(size)
        with self.temporary_file() as temporary:
            download(temporary)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
                if (received := os.fstat(file.fileno()).st_size) != size:
                    raise OSError(f"received {received} of {size} bytes of {name}")
            while not self._lock_entry(path, size):
                # Another process may have created the entry first, or may evict it at this moment.
                with suppress(FileExistsError):
                    os.link(temporary, path)
        return path

    @contextmanager
    def temporary_file(self, suffix: str = "") -> Iterator[Path]:
        """Return a path on the disk of the cache for a file that is removed when the block ends."""
        path = self._tmp / (secrets.token_hex(12) + suffix)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def _lock_entry(self, path: Path, size: int) -> bool:
        """Lock an entry against eviction. Return False if no complete entry exists."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        status = os.fstat(descriptor)
        if status.st_nlink == 0 or status.st_size != size:
            os.close(descriptor)
            if status.st_nlink:  # truncated: the machine went down just after the entry was created
                path.unlink(missing_ok=True)
            return False
        with self._lock:
            previous = self._locked.pop(path.name, None)
            self._locked[path.name] = descriptor
            _, oldest = self._locked.popitem(last=False) if len(self._locked) > MAX_LOCKED else ("", None)
        for unlocked in (previous, oldest):
            if unlocked is not None:
                os.close(unlocked)
        return True

    def _make_room(self, size: int) -> None:
        """Evict unused entries until a file of this size fits, or until all entries are in use."""
        entries = []
        for path in self._entries.iterdir():
            with suppress(FileNotFoundError):
                status = path.stat()
                entries.append((status.st_mtime, status.st_size, path))
        total = sum(n_bytes for _, n_bytes, _ in entries) + size
        for _, n_bytes, path in sorted(entries):
            if total <= self._capacity:
                break
            if _evict(path):
                total -= n_bytes
        for path in self._tmp.iterdir():
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                    path.unlink()


def _evict(path: Path) -> bool:
    """Remove an entry unless a process has locked it. Return whether it is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The file may have been replaced since it was opened. Remove only the one that is locked.
        with suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                path.unlink()
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
