"""A random share of all messages waits for a review, whatever a version predicts."""

from __future__ import annotations

from typing import Any

import pytest
from contract import problem_of
from in_process_api import InProcessApi
from stack import departments

from app.routing import canary
from app.routing.review_sample import is_sampled
from app.routing.schemas import WeightedVersion

KEYS = [f"{i:064x}" for i in range(4000)]


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_a_message_is_drawn_with_the_probability_of_the_share(share: float) -> None:
    drawn = sum(is_sampled("rtr_1", key, share) for key in KEYS)
    assert abs(drawn / len(KEYS) - share) < 4 * (share * (1 - share) / len(KEYS)) ** 0.5


def test_all_or_none_can_be_drawn_and_a_larger_share_keeps_what_was_drawn() -> None:
    assert all(is_sampled("rtr_1", key, 1.0) for key in KEYS)
    assert not any(is_sampled("rtr_1", key, 0.0) for key in KEYS)
    small, large = ({key for key in KEYS if is_sampled("rtr_1", key, share)} for share in (0.1, 0.2))
    assert small < large


def test_routers_draw_independently_of_each_other_and_of_the_version_that_decides() -> None:
    versions = [WeightedVersion(version=number, weight=1) for number in (1, 2)]
    drawn = [key for key in KEYS if is_sampled("rtr_1", key, 0.25)]
    by_first = sum(canary.choose("rtr_1", key, versions) == 1 for key in drawn)
    other = sum(is_sampled("rtr_2", key, 0.25) for key in drawn)
    assert abs(by_first / len(drawn) - 0.5) < 4 * (0.25 / len(drawn)) ** 0.5
    assert abs(other / len(drawn) - 0.25) < 4 * (0.1875 / len(drawn)) ** 0.5


def put_router(service: InProcessApi, **fields: Any) -> Any:
    body = {"model": "m", "fallback": "front@example.org", "keep_messages": "review", **fields}
    return service.call("PUT", "/v1/routers/desk", 200, json=body)


def route(service: InProcessApi, subject: str, text: str = "my invoice is wrong") -> Any:
    body = {"email": {"subject": subject, "text": text}}
    return service.call("POST", "/v1/routers/desk/message-parts", 200, json=body)


def found(service: InProcessApi, query: str) -> set[str]:
    items = service.call("GET", f"/v1/routers/desk/decisions?{query}", 200)["items"]
    return {item["message"]["subject"] for item in items}


def test_a_message_of_the_sample_is_routed_and_waits_for_its_labels(service: InProcessApi) -> None:
    service.train(service.dataset(departments(60)), learner={"algorithm": "svm"}, decision={"kind": "auto"})
    assert put_router(service)["review_sample"] == 0.02
    put_router(service, review_sample=0)
    assert route(service, "not drawn")["sampled"] is False
    put_router(service, review_sample=1)
    assert route(service, "not drawn")["sampled"] is False, "the same message keeps its decision"
    drawn = route(service, "drawn")
    assert (drawn["disposition"], drawn["sampled"], drawn["message_kept"]) == ("routed", True, True)
    assert drawn["departments"], "it is delivered as any other"
    put_router(service, review_sample=1, review_below=1)
    both = route(service, "drawn and doubted")
    assert (both["disposition"], both["sampled"]) == ("review", True)
    put_router(service, review_sample=0, review_below=1)
    assert route(service, "doubted")["disposition"] == "review"
    unknown = route(service, "xyzzy", "plugh")
    assert (unknown["disposition"], unknown["sampled"], unknown["message_kept"]) == ("fallback", False, True)
    put_router(service, review_sample=1)
    assert route(service, "", "")["disposition"] == "fallback"

    everything = {"", "xyzzy", "drawn", "drawn and doubted", "doubted"}
    assert found(service, "review=any&feedback=none") == everything
    assert found(service, "review=fallback&feedback=none") == {"", "xyzzy"}
    assert found(service, "review=sample&feedback=none") == {"", "drawn", "drawn and doubted"}
    assert found(service, "review=doubt") == {"drawn and doubted", "doubted"}
    feedback = f"/v1/decisions/{drawn['decision_id']}/feedback"
    service.call("POST", feedback, 200, json={"labels": [drawn["departments"][0]["label"]]})
    assert found(service, "review=sample&feedback=none") == {"", "drawn and doubted"}
    problem_of(service.send("GET", "/v1/routers/desk/decisions?review=all"), 422, "invalid_request")
    for share in (-0.1, 1.1):
        body = {"model": "m", "fallback": "front@example.org", "review_sample": share}
        response = service.send("PUT", "/v1/routers/desk", json=body)
        problem_of(response, 422, "invalid_request", "/review_sample")
