"""Prometheus metrics of this process."""

from __future__ import annotations

from functools import cache, lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

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


@lru_cache(maxsize=MAX_DECISION_COUNTERS + 1)
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
