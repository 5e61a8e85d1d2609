"""Prometheus metrics: the counters of the API and gauges of the job queue."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from app.context import AppContext
from app.db import tables
from app.health.service import check_readiness
from app.metrics import PROCESS


class _JobQueueCollector(Collector):
    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def collect(self) -> Iterable[Metric]:
        state = check_readiness(self._ctx)
        yield GaugeMetricFamily("covey_ready", "Whether the service is ready.", value=float(state.ready))
        yield GaugeMetricFamily(
            "covey_workers", "Workers that have sent a heartbeat in the last 15 seconds.", value=state.workers
        )
        yield GaugeMetricFamily(
            "covey_queue_seconds",
            "Waiting time of the oldest job that is due, in seconds.",
            value=state.queue_seconds,
        )
        if not state.database:
            return
        jobs = GaugeMetricFamily("covey_jobs", "Jobs by kind and state.", labels=["kind", "state"])
        with self._ctx.db.read() as session:
            for kind, job_state, count in session.execute(
                select(tables.Job.kind, tables.Job.state, func.count()).group_by(
                    tables.Job.kind, tables.Job.state
                )
            ):
                jobs.add_metric([kind, job_state], count)
        yield jobs


@lru_cache(maxsize=1)
def metrics_registry(ctx: AppContext) -> CollectorRegistry:
    """Return the registry. Its gauges read the job queue at every collection.

    If several API processes share their metrics (see ``app/cli/shared_metrics.py``), counters are sums over
    all processes, including those that have ended.
    """
    registry = PROCESS
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    registry.register(_JobQueueCollector(ctx))
    return registry
