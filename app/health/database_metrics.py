"""Gauges and counters of the database: jobs, reviews, retention, backups and webhooks.

They are the same for every process. Without the database, they are absent instead of 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.context import AppContext
from app.db import counters, tables
from app.db.counters import CounterValue
from app.db.session import database_now
from app.health.service import check_readiness
from app.ids import time_of
from app.jobs.kinds import KINDS
from app.jobs.queue import FINISHED
from app.jobs.run_counts import DURATIONS, durations_of
from app.maintenance.retention import COUNTED
from app.routing.decision_search import needs_review

STATES = ("queued", "running", *FINISHED)
"""The states of jobs."""

MAX_REVIEWS = 100_000
"""Maximum number of waiting reviews that are counted, for all routers together."""


class DatabaseCollector(Collector):
    """Read the database at every collection.

    Args:
        ctx: the application context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        state = check_readiness(self._ctx)
        yield GaugeMetricFamily("covey_ready", "Whether the service is ready.", value=float(state.ready))
        if not state.database:
            return
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
        with self._ctx.db.read() as session:
            families = [
                _jobs(session),
                *_reviews(session),
                *_webhooks(session),
            ]
            counted = counters.read(session)
        yield from families
        yield _durations(counted["job"])
        yield from _maintenance(counted)


def _jobs(session: Session) -> Metric:
    job = tables.Job
    numbers = {(kind, state): 0 for kind in KINDS for state in STATES}
    for kind, state, number in session.execute(
        select(job.kind, job.state, func.count()).group_by(job.kind, job.state)
    ):
        numbers[kind, state] = number
    family = GaugeMetricFamily("covey_jobs", "Jobs by kind and state.", labels=["kind", "state"])
    for labels, number in numbers.items():
        family.add_metric(labels, number)
    return family


def _durations(counted: Mapping[str, CounterValue]) -> Metric:
    family = HistogramMetricFamily(
        "covey_job_seconds", "Time from the first start to the end of a job.", labels=["kind", "state"]
    )
    durations = durations_of(counted)
    for kind in KINDS:
        for state in FINISHED:
            of_state = durations.get((kind, state), {})
            buckets: list[tuple[str, float]] = []
            number, total = 0, 0.0
            for bucket in DURATIONS:
                number += of_state[bucket].number if bucket in of_state else 0
                total += of_state[bucket].total if bucket in of_state else 0.0
                buckets.append((bucket, number))
            family.add_metric([kind, state], buckets, total)
    return family


def _reviews(session: Session) -> list[Metric]:
    """Return how many messages of each router wait for a review, and how long the oldest one has waited."""
    decision = tables.Decision
    waiting = GaugeMetricFamily(
        "covey_reviews_waiting",
        f"Messages that wait for a review. Of all routers, the first {MAX_REVIEWS:,} are counted.",
        labels=["router"],
    )
    oldest = GaugeMetricFamily(
        "covey_oldest_review_seconds",
        "Time for which the oldest message has waited for a review; 0 if none waits.",
        labels=["router"],
    )
    queue = (
        select(decision.router_id, decision.id)
        .where(needs_review(), decision.feedback_state.is_(None))
        .order_by(decision.router_id, decision.id)
        .limit(MAX_REVIEWS)
        .subquery()
    )
    rows = session.execute(
        select(queue.c.router_id, func.count(), func.min(queue.c.id)).group_by(queue.c.router_id)
    )
    waiting_of = {router_id: (number, first) for router_id, number, first in rows}
    now = database_now(session)
    for router_id, name in session.execute(select(tables.Router.id, tables.Router.name)):
        number, first = waiting_of.get(router_id, (0, None))
        waiting.add_metric([name], number)
        oldest.add_metric([name], 0.0 if first is None else max((now - time_of(first)).total_seconds(), 0.0))
    return [waiting, oldest]


def _maintenance(counted: Mapping[counters.Name, Mapping[str, CounterValue]]) -> list[Metric]:
    deleted = CounterMetricFamily(
        "covey_retention_deleted", "Rows and files that retention has deleted.", labels=["what"]
    )
    numbers = counted["retention_deleted"]
    for what in COUNTED:
        deleted.add_metric([what], numbers[what].number if what in numbers else 0)
    return [
        deleted,
        GaugeMetricFamily(
            "covey_last_retention_timestamp_seconds",
            "Time of the last complete pass of retention, in seconds since 1970; 0 if there was none.",
            value=_last(counted["retention_pass"]),
        ),
        GaugeMetricFamily(
            "covey_last_backup_timestamp_seconds",
            "Time at which the last `covey backup` was complete, in seconds since 1970; 0 if there was none.",
            value=_last(counted["backup"]),
        ),
    ]


def _last(counted: Mapping[str, CounterValue]) -> float:
    return max((value.updated_at.timestamp() for value in counted.values()), default=0.0)


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
