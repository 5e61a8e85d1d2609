"""Prometheus metrics of this process."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

PROCESS = CollectorRegistry()
FALLBACKS = Counter(
    "covey_routing_fallbacks",
    "Messages that went to the fallback because the version of the router cannot be loaded.",
    ["router"],
    registry=PROCESS,
)
DECISION_GROUPS = Histogram(
    "covey_decision_group_size",
    "Decisions that are committed together.",
    registry=PROCESS,
    buckets=(1, 2, 4, 8, 16, 32, 64, 128),
)
REQUESTS = Counter("covey_requests", "Number of requests.", ["operation", "status"], registry=PROCESS)
SECONDS = Histogram(
    "covey_request_seconds", "Time from request to response.", ["operation"], registry=PROCESS
)
