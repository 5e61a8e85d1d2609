"""An LRU cache of model versions in memory, shared by the threads of one process.

Versions are immutable, so a cached version is never out of date. Aliases are not cached: every request reads
the version of an alias from the database. The arrays of a version are memory maps of its artifact, so
processes share the pages of the file.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from app.db.tables import ModelVersion
from app.storage import Storage
from models import artifact
from models.pipeline import Pipeline


class LoadedModels:
    """Loads versions on first use and keeps the most recently used ones.

    Args:
        storage: storage of the artifacts.
        capacity: maximum number of versions in memory.
    """

    def __init__(self, storage: Storage, capacity: int) -> None:
        self._storage = storage
        self._capacity = capacity
        self._lock = threading.Lock()
        self._loading: dict[str, threading.Lock] = {}
        self._pipelines: OrderedDict[str, Pipeline] = OrderedDict()

    def get(self, version: ModelVersion) -> Pipeline:
        """Return the pipeline of a version; load and verify it if it is not in memory.

        Raises:
            ArtifactError: the file is damaged.
            FileNotFoundError: the file does not exist.
        """
        key = version.artifact_key
        with self._lock:
            if key in self._pipelines:
                self._pipelines.move_to_end(key)
                return self._pipelines[key]
            loading = self._loading.setdefault(key, threading.Lock())
        # One thread loads the file. Only threads that need the same version wait for it.
        with loading:
            with self._lock:
                if key in self._pipelines:
                    return self._pipelines[key]
            try:
                pipeline = artifact.load(self._storage.local(key))
            except BaseException:
                with self._lock:
                    self._loading.pop(key, None)
                raise
            with self._lock:
                self._pipelines[key] = pipeline
                self._loading.pop(key, None)
                while len(self._pipelines) > self._capacity:
                    self._pipelines.popitem(last=False)
            return pipeline
