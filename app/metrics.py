"""Prometheus metrics of this process."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

PROCESS = CollectorRegistry()
REQUESTS = Counter("covey_requests", "Number of requests.", ["operation", "status"], registry=PROCESS)
SECONDS = Histogram(
    "covey_request_seconds", "Time from request to response.", ["operation"], registry=PROCESS
)
