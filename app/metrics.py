"""Prometheus counters of this process."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

PROCESS = CollectorRegistry()
REQUESTS = Counter("covey_requests", "Requests answered.", ["operation", "status"], registry=PROCESS)
SECONDS = Histogram("covey_request_seconds", "Time to answer.", ["operation"], registry=PROCESS)
