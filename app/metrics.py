"""Prometheus metrics of this process."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from sqlalchemy import Engine, event

PROCESS = CollectorRegistry()
FALLBACKS = Counter(
    "covey_routing_fallbacks",
    "Messages that went to the fallback because the version of the router is missing or cannot decide.",
    ["router"],
    registry=PROCESS,
)
ROUTER_PROBLEMS = Gauge(
    "covey_router_problems",
    "Reasons why all messages of a router go to the fallback: lost versions, and unreachable targets.",
    registry=PROCESS,
    multiprocess_mode="mostrecent",
)
KEPT_MESSAGES = Counter(
    "covey_kept_messages",
    "Messages that a router keeps: kept, or not_kept if their file could not be written.",
    ["outcome"],
    registry=PROCESS,
)
DATABASE_CONNECTIONS = Gauge(
    "covey_database_connections_in_use",
    "Connections of the API to the database that are in use.",
    registry=PROCESS,
    multiprocess_mode="livesum",
)
SHADOW_DECISIONS = Counter(
    "covey_shadow_decisions",
    "Decisions of shadow versions: agreed if they have exactly the departments of the router.",
    ["router", "agreement"],
    registry=PROCESS,
)
DECISION_GROUPS = Histogram(
    "covey_decision_group_size",
    "Decisions that are committed together.",
    registry=PROCESS,
    buckets=(1, 2, 4, 8, 16, 32, 64, 128),
)
DECISIONS = Counter(
    "covey_decisions",
    "New decisions.",
    ["router", "model", "version", "disposition"],
    registry=PROCESS,
)
FEEDBACK = Counter(
    "covey_feedback",
    "Feedback that agrees with the predicted labels, or corrects them.",
    ["router", "outcome"],
    registry=PROCESS,
)
FEEDBACK_PROBABILITY = Histogram(
    "covey_feedback_set_probability",
    "Predicted probability that the labels are right, of decisions with feedback.",
    ["router", "outcome"],
    registry=PROCESS,
    buckets=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
)
MODEL_LOADS = Histogram(
    "covey_model_load_seconds",
    "Time to load a version of a model into memory.",
    ["outcome"],
    registry=PROCESS,
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100),
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


MAX_DECISION_COUNTERS = 1000
"""Maximum number of combinations of labels of ``DECISIONS``. New versions beyond it count as ``other``."""


@cache
def _decision_counter(router: str, model: str, version: str, disposition: str) -> Counter:
    if _decision_counter.cache_info().currsize >= MAX_DECISION_COUNTERS:
        version = "other"
    return DECISIONS.labels(router, model, version, disposition)


def count_decision(router: str, model: str, version: int | None, disposition: str) -> None:
    """Count a new decision.

    Args:
        router: name of the router.
        model: name of the model.
        version: number of the version that decided; None if none did.
        disposition: what happens with the message.
    """
    name = "none" if version is None else str(version)
    _decision_counter(router, model, name, disposition).inc()


def count_feedback(router: str, outcome: str, set_probability: float | None) -> None:
    """Count feedback on a decision.

    Args:
        router: name of the router.
        outcome: ``agreed`` or ``corrected``.
        set_probability: the predicted probability that the labels are right; None if there is none.
    """
    FEEDBACK.labels(router, outcome).inc()
    if set_probability is not None:
        FEEDBACK_PROBABILITY.labels(router, outcome).observe(set_probability)


ERRORS = (500, 503)
"""Statuses of responses that an administrator is alerted to."""


def create_counters(operations: Iterable[str]) -> None:
    """Create the counters of this process with the value 0: the first event is then an increase, too.

    Args:
        operations: ids of the operations of the API.
    """
    for operation in operations:
        for status in ERRORS:
            REQUESTS.labels(operation, status)
    for outcome in ("kept", "not_kept"):
        KEPT_MESSAGES.labels(outcome)
    for outcome in ("loaded", "failed"):
        MODEL_LOADS.labels(outcome)
    DATABASE_CONNECTIONS.set(0)


def create_router_counters(router: str, model: str, versions: Iterable[int]) -> None:
    """Create the counters of a router with the value 0.

    Args:
        router: name of the router.
        model: name of its model.
        versions: numbers of the versions that decide.
    """
    FALLBACKS.labels(router)
    for agreement in ("agreed", "disagreed"):
        SHADOW_DECISIONS.labels(router, agreement)
    for outcome in ("agreed", "corrected"):
        FEEDBACK.labels(router, outcome)
        FEEDBACK_PROBABILITY.labels(router, outcome)
    for version in versions:
        for disposition in ("routed", "review", "fallback"):
            _decision_counter(router, model, str(version), disposition)


def count_connections(engine: Engine) -> None:
    """Count the connections of an engine that are in use."""
    event.listen(engine, "checkout", lambda *_: DATABASE_CONNECTIONS.inc())
    event.listen(engine, "checkin", lambda *_: DATABASE_CONNECTIONS.dec())
