"""Prometheus metrics: the counters of the API and gauges of the job queue."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.context import AppContext
from app.db import tables
from app.db.session import database_now
from app.health.service import check_readiness
from app.metrics import PROCESS
from app.version import __version__

RECENT_SECONDS = 3600.0
"""Time after its end for which a job counts as recent."""

MAX_RECENT_JOBS = 10_000
"""Maximum number of recent jobs that are read, the last ones first."""


class _JobQueueCollector(Collector):
    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def collect(self) -> Iterable[Metric]:
        yield _build_info()
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
        yield GaugeMetricFamily(
            "covey_broker_unavailable_seconds",
            "Time since a worker has found the broker unavailable, in seconds; 0 if it has not.",
            value=state.broker_seconds,
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
            recent = _recent_jobs(session)
            webhooks = _webhooks(session)
        yield jobs
        yield from recent
        yield from webhooks


def _build_info() -> Metric:
    family = GaugeMetricFamily(
        "covey_build_info", "The release of this process; always 1.", labels=["version", "python"]
    )
    family.add_metric([__version__, platform.python_version()], 1)
    return family


def _recent_jobs(session: Session) -> list[Metric]:
    """Return number and durations of the jobs that ended recently. Jobs run in processes without metrics."""
    job = tables.Job
    since = database_now(session) - timedelta(seconds=RECENT_SECONDS)
    durations: dict[tuple[str, str], list[float]] = {}
    for kind, state, started, finished in session.execute(
        select(job.kind, job.state, job.started_at, job.finished_at)
        .where(job.finished_at >= since)
        .order_by(job.finished_at.desc())
        .limit(MAX_RECENT_JOBS)
    ):
        seconds = 0.0 if started is None or finished is None else (finished - started).total_seconds()
        durations.setdefault((kind, state), []).append(seconds)
    number = GaugeMetricFamily(
        "covey_recent_jobs", "Jobs that ended in the last hour.", labels=["kind", "state"]
    )
    mean = GaugeMetricFamily(
        "covey_recent_job_mean_seconds",
        "Mean time from first start to end of the jobs that ended in the last hour.",
        labels=["kind", "state"],
    )
    longest = GaugeMetricFamily(
        "covey_recent_job_max_seconds",
        "Longest time from first start to end of the jobs that ended in the last hour.",
        labels=["kind", "state"],
    )
    for labels, ended in sorted(durations.items()):
        number.add_metric(labels, len(ended))
        mean.add_metric(labels, sum(ended) / len(ended))
        longest.add_metric(labels, max(ended))
    return [number, mean, longest]


def _webhooks(session: Session) -> list[Metric]:
    states = {"enabled": 0, "failing": 0, "disabled": 0}
    for failing_since, disabled_at in session.execute(
        select(tables.Webhook.failing_since, tables.Webhook.disabled_at)
    ):
        is_failing = "enabled" if failing_since is None else "failing"
        states["disabled" if disabled_at is not None else is_failing] += 1
    family = GaugeMetricFamily("covey_webhooks", "Webhooks by state.", labels=["state"])
    for state, number in states.items():
        family.add_metric([state], number)
    pending = session.scalar(select(func.count()).where(tables.WebhookDelivery.state == "pending")) or 0
    return [
        family,
        GaugeMetricFamily(
            "covey_webhook_pending_deliveries", "Events that webhooks have not accepted yet.", value=pending
        ),
    ]


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
    registry.register(_JobQueueCollector(ctx))
    return registry
