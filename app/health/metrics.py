"""The registry of ``GET /metrics``: counters of the API processes, and gauges of each collection."""

from __future__ import annotations

import os
from functools import lru_cache

from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from app.context import AppContext
from app.health.database_metrics import DatabaseCollector
from app.health.process_metrics import ProcessCollector, StorageCollector
from app.metrics import PROCESS


@lru_cache(maxsize=1)
def metrics_registry(ctx: AppContext) -> CollectorRegistry:
    """Return the registry. Its gauges read the job queue at every collection.

    If several API processes share their metrics (``app/server/shared_metrics.py``), counters are sums over
    all processes, including those that have ended.
    """
    registry = CollectorRegistry()
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        registry.register(PROCESS)
    registry.register(ProcessCollector())
    registry.register(StorageCollector(ctx))
    registry.register(DatabaseCollector(ctx))
    return registry
