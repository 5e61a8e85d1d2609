"""Routers that split their messages between several versions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from contract import problem_of
from httpx import Response
from hypothesis import given
from hypothesis import strategies as st
from in_process_api import InProcessApi
from waiting import wait_for

from app.db import tables
from app.routing import canary
from app.routing.schemas import WeightedVersion
from models.mail import read_message

MAIL = {"Content-Type": "message/rfc822"}
BOTH = [{"version": "live", "weight": 1}, {"version": 2, "weight": 1}]


def weighted(*weights: int) -> list[WeightedVersion]:
    return [WeightedVersion(version=i + 1, weight=weight) for i, weight in enumerate(weights)]


@given(st.text(max_size=20), st.text(max_size=20), st.lists(st.integers(0, 100), min_size=1, max_size=5))
def test_a_key_always_gets_the_same_version_with_a_weight(router: str, key: str, weights: list[int]) -> None:
    weights[-1] += 1
    chosen = canary.choose(router, key, weighted(*weights))
    assert chosen == canary.choose(router, key, weighted(*weights))
    assert isinstance(chosen, int)
    assert weights[chosen - 1] > 0


@pytest.mark.parametrize("weights", [(90, 10), (1, 1, 1), (999_999, 1)])
def test_versions_get_their_share_of_the_messages(weights: tuple[int, ...]) -> None:
    n = 20_000
    counts = Counter(canary.choose("rtr_1", f"<{i}@example.org>", weighted(*weights)) for i in range(n))
    for number, weight in enumerate(weights, start=1):
        share = weight / sum(weights)
        assert abs(counts[number] - n * share) <= 5 * (n * share * (1 - share)) ** 0.5


def test_a_larger_weight_of_the_last_version_moves_no_key_away_from_it() -> None:
    keys = [f"<{i}@example.org>" for i in range(500)]
    before = {key for key in keys if canary.choose("rtr_1", key, weighted(90, 10)) == 2}
    after = {key for key in keys if canary.choose("rtr_1", key, weighted(80, 20)) == 2}
    assert before < after
    others = {key for key in keys if canary.choose("rtr_2", key, weighted(90, 10)) == 2}
    assert not others <= after  # routers choose independently of each other


@pytest.mark.parametrize(
    ("head", "sender"),
    [
        ("From: Ann <Ann@Example.org>", "ann@example.org"),
        ("From: nobody\r\nSender: list@example.org", "list@example.org"),
        ("Subject: x", None),
    ],
)
def test_the_sender_of_a_message_is_its_address(head: str, sender: str | None) -> None:
    mail = read_message(f"{head}\r\n\r\nHello\r\n".encode())
    assert mail.sender == sender
    assert mail.sender_domain == (sender or "").partition("@")[2]


def put(service: InProcessApi, **fields: Any) -> Response:
    return service.send("PUT", "/v1/routers/r", json={"model": "m", "fallback": "desk", **fields})


def route(service: InProcessApi, number: int, sender: str = "") -> Any:
    head = f"From: {sender or number}@example.org\r\nMessage-ID: <{number}@example.org>"
    content = f"{head}\r\n\r\nmy invoice is wrong {number}\r\n".encode()
    return service.call("POST", "/v1/routers/r/messages", 200, content=content, headers=MAIL)


@pytest.fixture
def two_versions(service: InProcessApi) -> InProcessApi:
    """The API with the versions 1, which is live, and 2 of the model m."""
    dataset = service.dataset()
    service.train(dataset)
    service.train(dataset)
    return service


def test_messages_are_split_and_a_message_always_gets_the_same_version(two_versions: InProcessApi) -> None:
    service = two_versions
    created = put(service, versions=BOTH)
    assert created.is_success, created.text
    assert created.json()["versions"] == BOTH
    assert "version" not in created.json()
    decisions = [route(service, i) for i in range(24)]
    assert {decision["version"] for decision in decisions} == {1, 2}
    for decision in decisions:  # the same message gets the same version also without its decision
        service.call("DELETE", f"/v1/decisions/{decision['decision_id']}", 204)
    assert [route(service, i)["version"] for i in range(24)] == [d["version"] for d in decisions]
    thresholds = service.call("GET", "/v1/routers/r/thresholds", 200)["versions"]
    assert [item["version"] for item in thresholds] == [1, 2]


def test_all_messages_of_a_sender_get_the_same_version(two_versions: InProcessApi) -> None:
    assert put(two_versions, versions=BOTH, sticky_by="sender").is_success
    of_senders = {
        sender: {route(two_versions, 10 * sender + j, f"s{sender}")["version"] for j in range(2)}
        for sender in range(30)
    }
    assert all(len(versions) == 1 for versions in of_senders.values())
    assert set.union(*of_senders.values()) == {1, 2}


def test_what_a_router_splits_its_messages_between_cannot_be_deleted(two_versions: InProcessApi) -> None:
    service = two_versions
    service.call("PUT", "/v1/models/m/aliases/candidate", 200, json={"version": 2})
    versions = [{"version": "candidate", "weight": 1}, {"version": 1, "weight": 1}]
    assert put(service, versions=versions).is_success
    service.call("DELETE", "/v1/models/m/aliases/live", 204)
    service.train(service.dataset(), promote="never")
    service.call("PUT", "/v1/models/m/aliases/candidate", 200, json={"version": 3})
    for path, code in (
        ("", "model_in_use"),
        ("/versions/1", "version_in_use"),
        ("/aliases/candidate", "alias_in_use"),
    ):
        problem = problem_of(service.send("DELETE", f"/v1/models/m{path}"), 409, code)
        assert "router r" in problem["detail"]
    assert put(service, version=2).is_success  # replaces all references
    service.call("DELETE", "/v1/models/m/versions/1", 204)
    service.call("DELETE", "/v1/models/m/aliases/candidate", 204)
    assert put(service, versions=[{"version": 2, "weight": 1}]).is_success
    service.call("DELETE", "/v1/routers/r", 204)
    service.call("DELETE", "/v1/models/m", 204)


def test_another_version_replaces_one_that_cannot_decide(two_versions: InProcessApi) -> None:
    service = two_versions
    assert put(service, versions=BOTH).is_success
    before = {i: route(service, i)["version"] for i in range(30)}
    assert set(before.values()) == {1, 2}
    with service.ctx.db.read() as session:
        key = session.get_one(tables.ModelVersion, ("m", 2)).artifact_key
    service.forget_versions()
    service.storage.local(key).unlink()
    of_second = [i for i, version in before.items() if version == 2]
    for i in of_second[:3]:
        service.call("DELETE", f"/v1/decisions/{route(service, i)['decision_id']}", 204)
        decision = route(service, i)
        assert (decision["version"], decision["disposition"]) == (1, "routed")
    assert put(service, versions=BOTH[:1]).is_success


def test_an_alias_of_a_split_stays_on_versions_that_the_router_can_use(two_versions: InProcessApi) -> None:
    service = two_versions
    rejected = put(service, versions=BOTH, review_below=0.5)
    problem_of(rejected, 422, "invalid_request", "/review_below")
    service.train(service.dataset(), decision={"kind": "auto"}, promote="always")
    assert put(service, versions=[{"version": "live", "weight": 1}], review_below=0.5).is_success
    moved = service.send("PUT", "/v1/models/m/aliases/live", json={"version": 1})
    problem_of(moved, 409, "version_not_calibrated")


@pytest.mark.parametrize(
    ("fields", "pointer", "reason"),
    [
        ({"versions": BOTH, "version": 1}, "", "not both"),
        ({"versions": [{"version": 1, "weight": 0}]}, "", "no version has a weight above 0"),
        ({"versions": [BOTH[0], BOTH[0]]}, "", "twice"),
        ({"sticky_by": "sender"}, "", "needs versions"),
        ({"versions": [BOTH[0], {"version": 9, "weight": 1}]}, "/versions/1/version", "no version 9"),
        (
            {"versions": [{"version": "live", "weight": -1}]},
            "/versions/0/weight",
            "or equal to 0",
        ),
    ],
)
def test_splits_that_make_no_sense_are_refused(
    fields: dict[str, Any], pointer: str, reason: str, two_versions: InProcessApi
) -> None:
    response = put(two_versions, **fields)
    code = "unknown_version" if "no version 9" in reason else "invalid_request"
    problem = problem_of(response, 422, code, pointer)
    assert reason in problem["errors"][0]["message"]


def test_agreement_of_a_shadow_is_counted(two_versions: InProcessApi) -> None:
    service = two_versions
    assert put(service, version=1, shadow=2).is_success
    decision = route(service, 1)

    def shadow() -> Any:
        return service.call("GET", f"/v1/decisions/{decision['decision_id']}", 200).get("shadow")

    agrees = wait_for(shadow, what="the shadow")["agrees"]
    agreement = "agreed" if agrees else "disagreed"
    sample = f'covey_shadow_decisions_total{{agreement="{agreement}",router="r"}} 1.0'
    assert wait_for(lambda: sample in service.send("GET", "/metrics").text, what="the counter")
