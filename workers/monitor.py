"""Metrics and health of a worker: its heartbeats, its broker, and its processes."""

from __future__ import annotations

import time
from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.health.process_metrics import sum_of_processes
from app.health.service import HEARTBEAT_SECONDS
from app.server.process_name import descendants
from workers.heartbeat import BrokerState, Heartbeat


class WorkerMonitor(Collector):
    """The state of a worker.

    Args:
        main_pid: id of the worker's main process.
        heartbeat: writes the heartbeats.
        relay: knows whether the broker is unavailable.
    """

    def __init__(self, main_pid: int, heartbeat: Heartbeat, relay: BrokerState) -> None:
        self._main_pid = main_pid
        self._heartbeat = heartbeat
        self._relay = relay
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Return the metrics. Those of processes are sums over the worker and its jobs."""
        yield GaugeMetricFamily(
            "covey_worker_heartbeat_age_seconds",
            "Time since the worker has last reached the database.",
            value=self._heartbeat.age(),
        )
        yield GaugeMetricFamily(
            "covey_worker_broker_unavailable_seconds",
            "Time since the worker has found the broker unavailable; 0 if it has not.",
            value=self._broker_seconds(),
        )
        yield from sum_of_processes([self._main_pid, *descendants(self._main_pid)])

    def reasons(self) -> dict[str, str]:
        """Return why the worker cannot run jobs now, by what fails."""
        reasons = {}
        if (age := self._heartbeat.age()) > HEARTBEAT_SECONDS:
            reasons["database"] = f"the worker has not reached the database for {age:.0f} s"
        if seconds := self._broker_seconds():
            reasons["broker"] = f"the broker has been unavailable for {seconds:.0f} s"
        return reasons

    def _broker_seconds(self) -> float:
        since = self._relay.unavailable_since
        return 0.0 if since is None else time.monotonic() - since
