"""Prometheus metrics of this process."""

from __future__ import annotations

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram

PROCESS = CollectorRegistry()
FALLBACKS = Counter(
    "covey_routing_fallbacks",
    "Messages that went to the fallback because the version of the router is missing or cannot decide.",
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


@cache
def _counters(operation: str, status: int) -> tuple[Counter, Histogram]:
    """Return the counters of an operation. Looking them up by their labels takes several microseconds."""
    return REQUESTS.labels(operation, status), SECONDS.labels(operation)


def count_request(operation: str, status: int, seconds: float) -> None:
    """Count a request.

    Args:
        operation: id of the operation; ``none`` if no operation has the path of the request.
        status: status of the response; 0 if none was sent.
        seconds: time from the request to the end of the response.
    """
    requests, histogram = _counters(operation, status)
    requests.inc()
    histogram.observe(seconds)
