"""Counters of this process and gauges of the ledger, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from app.context import AppContext
from app.db import tables
from app.health.service import readiness
from app.metrics import PROCESS


class _JobQueueCollector(Collector):
    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def collect(self) -> Iterable[Metric]:
        found = readiness(self._ctx)
        yield GaugeMetricFamily("covey_ready", "Whether the service is ready.", value=float(found.ready))
        yield GaugeMetricFamily("covey_workers", "Workers heard of lately.", value=found.workers)
        yield GaugeMetricFamily(
            "covey_queue_seconds", "How long the oldest waiting job has waited.", value=found.queue_seconds
        )
        if not found.database:
            return
        jobs = GaugeMetricFamily("covey_jobs", "Jobs by kind and state.", labels=["kind", "state"])
        with self._ctx.db.read() as session:
            for kind, state, count in session.execute(
                select(tables.Job.kind, tables.Job.state, func.count()).group_by(
                    tables.Job.kind, tables.Job.state
                )
            ):
                jobs.add_metric([kind, state], count)
        yield jobs


@lru_cache(maxsize=1)
def service_registry(ctx: AppContext) -> CollectorRegistry:
    """The process's own counters, and the ledger as it is when it is asked."""
    PROCESS.register(_JobQueueCollector(ctx))
    return PROCESS
