"""Model versions in memory, shared by the threads of one process.

Versions are immutable, so what is loaded is never stale; which version an alias names is asked of the
database with every request. The arrays are maps of the artifact's file: processes share its pages.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from app.db.tables import ModelVersion
from app.storage import Storage
from models import artifact
from models.pipeline import Pipeline


class LoadedModels:
    """Keeps the versions used last.

    Args:
        storage: where artifacts are.
        capacity: how many versions to keep.
    """

    def __init__(self, storage: Storage, capacity: int) -> None:
        self._storage = storage
        self._capacity = capacity
        self._lock = threading.Lock()
        self._loading: dict[str, threading.Lock] = {}
        self._pipelines: OrderedDict[str, Pipeline] = OrderedDict()

    def get(self, version: ModelVersion) -> Pipeline:
        """The version's pipeline, loaded and verified where it is not in memory yet.

        Raises:
            ArtifactError: the file is damaged.
            FileNotFoundError: the file is gone.
        """
        key = version.artifact_key
        with self._lock:
            if key in self._pipelines:
                self._pipelines.move_to_end(key)
                return self._pipelines[key]
            loading = self._loading.setdefault(key, threading.Lock())
        # One thread reads the file; the others that want it wait, and requests for other versions go on.
        with loading:
            with self._lock:
                if key in self._pipelines:
                    return self._pipelines[key]
            pipeline = artifact.load(self._storage.local(key))
            with self._lock:
                self._pipelines[key] = pipeline
                self._loading.pop(key, None)
                while len(self._pipelines) > self._capacity:
                    self._pipelines.popitem(last=False)
            return pipeline
