"""Thresholds that follow from the policies of a router, over HTTP."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import Mock

import in_process
import pytest
from contract import problem_of
from httpx import Response
from in_process_api import InProcessApi
from stack import departments
from waiting import wait_for

from app.health import routed_versions
from app.routing import policies

TEXTS = [example["text"] for example in departments(30)]
MAIL = {"Content-Type": "message/rfc822"}


@pytest.fixture
def dataset(service: InProcessApi) -> str:
    return service.dataset(departments(90))


def train(service: InProcessApi, dataset: str, decision: str, **fields: Any) -> Any:
    """Train a version of the model m, and return it."""
    body = {
        "dataset_id": dataset,
        "model": "m",
        "features": {"kind": "text", "weighting": "pivoted", "scaling": "unit"},
        "learner": {"algorithm": "svm"},
        "decision": {"kind": decision},
        **fields,
    }
    job = service.call("POST", "/v1/training-jobs", 202, json=body)
    in_process.work(service.ctx)
    number = service.call("GET", f"/v1/training-jobs/{job['id']}", 200)["result"]["version"]
    return service.call("GET", f"/v1/models/m/versions/{number}", 200)


def put(service: InProcessApi, **fields: Any) -> Response:
    body = {"model": "m", "fallback": "front@example.org", **fields}
    return service.send("PUT", "/v1/routers/desk", json=body)


def thresholds(service: InProcessApi) -> dict[str, Any]:
    """Return the thresholds of the router by label."""
    (version,) = service.call("GET", "/v1/routers/desk/thresholds", 200)["versions"]
    return {item["label"]: item for item in version["labels"]}


def route_all(service: InProcessApi, prefix: str) -> list[Any]:
    return [
        service.call(
            "POST",
            "/v1/routers/desk/messages",
            200,
            content=f"Message-ID: <{prefix}{i}@example.org>\r\n\r\n{text}\r\n".encode(),
            headers=MAIL,
        )
        for i, text in enumerate(TEXTS)
    ]


def labels_of(decision: Any) -> list[str]:
    return sorted(department["label"] for department in decision["departments"])


def test_thresholds_follow_from_the_policies_of_the_router_and_of_its_labels(
    service: InProcessApi, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = train(service, dataset, "auto")
    assert version["has_curves"] is True
    assert put(service).is_success
    own = thresholds(service)
    assert [*own] == version["labels"]
    assert {label: item.get("threshold") for label, item in own.items()} == {
        label: version["thresholds"].get(label) for label in version["labels"]
    }
    assert {item["source"] for item in own.values()} == {"version"}

    first, second, third, *others = version["labels"]
    fields = {
        "target_recall": 1.0,
        "label_policies": {first: {"target_precision": 0.6}, second: {"costs": {"missed_label": 1000.0}}},
        "thresholds": {third: 0.25},
    }
    saved = put(service, **fields)
    assert saved.is_success, saved.text
    assert saved.json()["label_policies"][second] == {"costs": {"false_label": 1.0, "missed_label": 1000.0}}
    found = thresholds(service)
    assert Counter(item["source"] for item in found.values()) == Counter(
        {"target_recall": len(others), "target_precision": 1, "costs": 1, "fixed": 1}
    )
    of_first = found[first]
    assert 0.6 < of_first["precision_low"] < of_first["precision"] < of_first["precision_high"] < 1
    assert found[second]["recall"] == 1.0  # a missed department costs more than all wrong ones
    assert found[third] == {"label": third, "threshold": 0.25, "source": "fixed"}
    assert all(found[label]["recall"] == 1.0 and found[label]["positives"] > 0 for label in others)

    create = Mock(wraps=policies.create_rule)
    monkeypatch.setattr(policies, "create_rule", create)
    for decision in route_all(service, "a"):
        above = [
            item["label"]
            for item in decision["ranking"]
            if "threshold" in found[item["label"]] and item["score"] > found[item["label"]]["threshold"]
        ]
        assert labels_of(decision) == sorted(above)
        assert decision["disposition"] == ("routed" if above else "fallback")
    assert create.call_count == 1  # once for the router and the version, not for each message


def test_a_department_without_enough_precision_gets_no_mail_also_if_it_is_the_best(
    service: InProcessApi,
) -> None:
    # Nobody can tell from these words whether a message is for one or the other department.
    either = ("north", "south")
    doubtful = [
        {"text": f"please call me back, case {i}", "labels": [either[i % 2]]} for i in range(100, 140)
    ]
    clear = [{"text": f"my invoice is wrong, {i}", "labels": ["billing"]} for i in range(200, 220)]
    train(service, service.dataset([*doubtful, *clear]), "auto")
    messages = {"please call me back": ["north", "south"], "my invoice is wrong": ["billing"]}

    def departments_of(prefix: str) -> dict[str, list[str]]:
        found = {}
        for text in messages:
            content = f"Message-ID: <{prefix}{len(text)}@example.org>\r\n\r\n{text}\r\n".encode()
            decision = service.call("POST", "/v1/routers/desk/messages", 200, content=content, headers=MAIL)
            found[text] = labels_of(decision)
        return found

    assert put(service, target_recall=0.95).is_success
    assert all(set(labels) & set(messages[text]) for text, labels in departments_of("a").items())
    saved = put(service, target_precision=0.7)
    (warning,) = saved.json()["warnings"]
    assert warning.startswith("alias live of m: labels that are never selected because it is not sure")
    assert warning.endswith(": north, south")
    (of_version,) = service.call("GET", "/v1/routers/desk/thresholds", 200)["versions"]
    assert warning == f"alias live of m: {of_version['warnings'][0]}"
    assert "warnings" not in service.call("GET", "/v1/routers/desk", 200)
    unreachable = thresholds(service)["north"]
    assert unreachable == {
        "label": "north",
        "source": "target_precision",
        "recall": 0.0,
        "positives": 20,
    }
    assert departments_of("b") == {**messages, "please call me back": []}


def test_a_router_that_never_selects_a_department_says_so(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routed_versions, "CHECK_SECONDS", 0.0)
    train(service, service.dataset(departments(24)), "auto")
    for target, is_idle in ((1.0, True), (0.3, False)):
        warnings = put(service, target_precision=target).json()["warnings"]
        assert (warnings == [f"alias live of m: {policies.NOTHING}"]) == is_idle
        (version,) = service.call("GET", "/v1/routers/desk/thresholds", 200)["versions"]
        assert (version["warnings"] == [policies.NOTHING]) == is_idle

        def says_so(is_idle: bool = is_idle) -> bool | None:
            found = service.routed_versions.problems()  # what readiness returns as warnings
            return (found == [f"router desk with version 1 of m: {policies.NOTHING}"]) == is_idle or None

        wait_for(says_so, what="the check of the routers")
        assert f"covey_router_problems {float(is_idle)}" in service.send("GET", "/metrics").text


def test_labels_with_too_few_examples_for_their_policy_are_named(service: InProcessApi) -> None:
    rare = [{"text": "a rare bird", "labels": ["birds"], "split": "train"}]
    train(service, service.dataset([*departments(60), *rare]), "auto")
    for fields, reason in (
        ({"target_precision": 0.5}, "are never selected because they have too few examples to judge"),
        ({"target_recall": 0.5}, "have too few examples to judge their policy, and keep the threshold"),
    ):
        found = [text for text in put(service, **fields).json()["warnings"] if "too few" in text]
        assert len(found) == 1
        assert reason in found[0]
        assert found[0].endswith(": birds")


def test_policies_need_held_out_curves(service: InProcessApi, dataset: str) -> None:
    assert train(service, dataset, "sign")["has_curves"] is False
    for field, value in (
        ("target_precision", 0.9),
        ("target_recall", 0.9),
        ("costs", {"missed_label": 5}),
        ("label_policies", {"billing": {"target_recall": 0.5}}),
    ):
        problem = problem_of(put(service, **{field: value}), 422, "invalid_request", f"/{field}")
        assert problem["detail"].startswith("version 1 of m has no held-out curves")
        assert "decision auto" in problem["detail"]
    assert train(service, dataset, "auto", promote="always")["aliases"] == ["live"]
    assert put(service, target_precision=0.9).is_success

    moved = service.send("PUT", "/v1/models/m/aliases/live", json={"version": 1})
    problem = problem_of(moved, 409, "version_without_curves")
    assert "router desk uses target_precision" in problem["detail"]
    version = train(service, dataset, "sign", promote="always")
    assert version["aliases"] == []
    assert [warning for warning in version["warnings"] if warning.startswith("not promoted: router desk")]


def test_people_review_the_mail_if_the_version_has_no_curves_all_the_same(
    service: InProcessApi, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(service, dataset, "sign")
    monkeypatch.setattr("app.routing.service.has_curves", lambda _: True)
    assert put(service, target_precision=0.9).is_success
    (found,) = service.call("GET", "/v1/routers/desk/thresholds", 200)["versions"]
    assert found["unmet"] == policies.NO_CURVES
    assert {item["source"] for item in found["labels"]} == {"version"}
    decisions = route_all(service, "a")
    assert {decision["disposition"] for decision in decisions} <= {"review", "fallback"}
    reviewed = [decision for decision in decisions if decision["disposition"] == "review"]
    assert reviewed
    assert {decision["review_reason"] for decision in reviewed} == {policies.NO_CURVES}


@pytest.mark.parametrize(
    ("fields", "pointer", "reason"),
    [
        ({"target_precision": 0.9, "costs": {}}, "", "at most one of"),
        ({"target_precision": 0}, "/target_precision", "greater than 0"),
        ({"costs": {"false_label": 0}}, "/costs/false_label", "greater than 0"),
        ({"label_policies": {"a": {}}}, "/label_policies/a", "exactly one of"),
        (
            {"label_policies": {"a": {"target_recall": 0.5}}, "thresholds": {"a": 1}},
            "",
            "'a' is in thresholds and label_policies",
        ),
        ({"label_policies": {"gone": {"target_recall": 0.5}}}, "/label_policies/gone", "has no label 'gone'"),
    ],
)
def test_policies_that_contradict_each_other_are_refused(
    fields: dict[str, Any], pointer: str, reason: str, service: InProcessApi
) -> None:
    service.train(service.dataset())
    problem = problem_of(put(service, **fields), 422, "invalid_request", pointer)
    assert reason in problem["errors"][0]["message"]
