"""An LRU cache of model versions in memory, shared by the threads of one process.

Versions are immutable, so a cached version is never out of date. The arrays of a version are memory maps of
its artifact, so processes share the pages of the file.

Threads of this module load the files, because a slow storage can take any length of time. Requests wait for
them only so long and in limited number, so that requests that need no file always find a free thread.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.db import open_sessions
from app.errors import NotReady
from app.metrics import MODEL_LOADS
from app.serving import loaded_version
from app.serving.loaded_version import LoadedVersion
from app.storage import MissingFileError, Storage, StorageUnavailableError
from models.errors import ArtifactError

MAX_LOADING = 4
"""Number of versions that are loaded at the same time."""

MAX_QUEUED = 16
"""Number of versions that are loaded or wait to be loaded."""

MAX_WAITING = 16
"""Number of requests that wait for versions. The API has 40 threads for requests."""

WAIT_SECONDS = 10.0
"""How long a request waits. The version continues to load, so a later request finds it in memory."""


class VersionReference(Protocol):
    """The identity of a version: a row of the database has it, and an entry of a snapshot."""

    @property
    def model(self) -> str:
        """Name of the model."""
        ...

    @property
    def version(self) -> int:
        """Number of the version."""
        ...

    @property
    def artifact_key(self) -> str:
        """Key of the artifact in the storage."""
        ...


class ArtifactUnavailable(NotReady):
    """The artifact of a version is missing or damaged, until it is restored.

    Args:
        version: the version.
        reason: what is wrong with the artifact.
    """

    def __init__(self, version: VersionReference, reason: str) -> None:
        super().__init__(
            f"version {version.version} of {version.model} cannot be loaded, because its artifact {reason}; "
            "restore the file from a backup, or use another version",
            code="artifact_unavailable",
            retry_after=60,
        )
        self.version = version


@dataclass(slots=True)
class _Entry:
    """A version in memory.

    Attributes:
        version: the version.
        last_use: the number of its last use, counted over all versions.
    """

    version: LoadedVersion
    last_use: int


class LoadedModels:
    """Load versions on first use and keep the most recently used ones.

    Args:
        storage: storage of the artifacts.
        capacity: maximum number of versions in memory.
    """

    def __init__(self, storage: Storage, capacity: int) -> None:
        self.capacity = capacity
        self._storage = storage
        self._lock = threading.Lock()
        self._waiting = 0
        self._loading: dict[str, Future[LoadedVersion]] = {}
        self._turns = threading.Semaphore(MAX_LOADING)
        self._entries: dict[str, _Entry] = {}
        self._uses = itertools.count()
        self._damaged: OrderedDict[str, tuple[_FileIdentity, str]] = OrderedDict()

    def loaded(self, version: VersionReference) -> LoadedVersion | None:
        """Return a version if it is in memory. Neither waits nor takes a lock."""
        entry = self._entries.get(version.artifact_key)
        if entry is None:
            return None
        entry.last_use = next(self._uses)
        return entry.version

    def peek(self, version: VersionReference) -> LoadedVersion | None:
        """Return a version if it is in memory, without counting as a use."""
        entry = self._entries.get(version.artifact_key)
        return None if entry is None else entry.version

    def is_loaded(self, version: VersionReference) -> bool:
        """Return whether a version is in memory, without counting as a use."""
        return self.peek(version) is not None

    def start(self, versions: Iterable[VersionReference]) -> list[Future[LoadedVersion]]:
        """Start to load versions. Versions beyond the number that may wait are not loaded."""
        loading: list[Future[LoadedVersion]] = []
        with self._lock, suppress(NotReady):
            loading.extend(map(self._start, versions))
        return loading

    def get(self, version: VersionReference) -> LoadedVersion:
        """Return a version; load and verify it, and wait for it, if it is not in memory.

        Raises:
            ArtifactUnavailable: the file is damaged.
            MissingFileError: the file does not exist.
            NotReady: the storage is too slow.
            StorageUnavailableError: the storage is unavailable.
        """
        if (found := self.loaded(version)) is not None:
            return found
        open_sessions.refuse_if_any("loading a version")
        with self._lock:
            if self._waiting >= MAX_WAITING:
                raise _too_slow(version)
            loading = self._start(version)
            self._waiting += 1
        try:
            wait((loading,), WAIT_SECONDS)
        finally:
            with self._lock:
                self._waiting -= 1
        if not loading.done():
            raise _too_slow(version)
        try:
            return loading.result()
        except ArtifactError as error:
            raise ArtifactUnavailable(version, f"is damaged ({error})") from error

    def _start(self, version: VersionReference) -> Future[LoadedVersion]:
        """Start to load a version, unless it is loading. The caller holds the lock.

        Raises:
            NotReady: too many versions are loading.
        """
        key = version.artifact_key
        loading: Future[LoadedVersion] | None = self._loading.get(key)
        if loading is not None:
            return loading
        loading = Future()
        if (found := self.loaded(version)) is not None:  # loaded since the caller looked
            loading.set_result(found)
            return loading
        if len(self._loading) >= MAX_QUEUED:
            raise _too_slow(version)
        try:
            threading.Thread(target=self._load, args=(key, loading), name=f"load-{key}", daemon=True).start()
        except RuntimeError as error:  # the process has too many threads
            raise _too_slow(version) from error
        self._loading[key] = loading
        return loading

    def damaged(self) -> dict[str, str]:
        """Return what is wrong with the artifacts that could not be loaded last time, by storage key."""
        with self._lock:
            return {key: reason for key, (_, reason) in self._damaged.items()}

    def _load(self, key: str, loading: Future[LoadedVersion]) -> None:
        started = time.perf_counter()
        try:
            with self._turns:
                version = self._read(key)
        except BaseException as error:  # noqa: BLE001 - the requests that wait get it
            MODEL_LOADS.labels("failed").observe(time.perf_counter() - started)
            with self._lock:
                self._loading.pop(key)
            loading.set_exception(error)
            return
        MODEL_LOADS.labels("loaded").observe(time.perf_counter() - started)
        with self._lock:
            self._loading.pop(key)
            self._entries[key] = _Entry(version, next(self._uses))
            while len(self._entries) > self.capacity:
                del self._entries[min(self._entries, key=lambda key: self._entries[key].last_use)]
        loading.set_result(version)

    def _read(self, key: str) -> LoadedVersion:
        path = self._storage.local(key)
        try:
            identity = _identity(path)
            with self._lock:
                damaged, reason = self._damaged.pop(key, (None, ""))
            # Verifying a large file takes seconds, so the same file is not verified again for every message.
            if damaged != identity:
                try:
                    return loaded_version.load(path)
                except ArtifactError as error:
                    reason = str(error)
        except FileNotFoundError as error:
            raise MissingFileError(key) from error
        except OSError as error:
            raise StorageUnavailableError(str(error), error.strerror or type(error).__name__) from error
        with self._lock:
            self._damaged[key] = (identity, reason)
            while len(self._damaged) > self.capacity:
                self._damaged.popitem(last=False)
        raise ArtifactError(reason)


_FileIdentity = tuple[int, int, int, int]


def _identity(path: Path) -> _FileIdentity:
    """Return values that change if a file is replaced or written."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _too_slow(version: VersionReference) -> NotReady:
    return NotReady(
        f"version {version.version} of {version.model} is still being loaded, because the storage is slow or "
        "many versions are requested; try again",
        code="storage_unavailable",
        retry_after=5,
    )
