"""Searching decisions over HTTP: the review queue, the decision on a message, and queries with mistakes."""

from __future__ import annotations

from typing import Any

import pytest
from contract import problem_of
from in_process_api import InProcessApi

WORDS = {"billing": "invoice", "legal": "contract", "support": "printer"}


@pytest.fixture
def desk(service: InProcessApi) -> InProcessApi:
    """The API with the router desk, whose version is calibrated."""
    examples = [
        {"text": f"{word} {word} number{n % 5}", "labels": [label]}
        for n in range(12)
        for label, word in WORDS.items()
    ]
    dataset = service.dataset(examples)
    assert service.train(dataset, decision={"kind": "tuned_threshold"})["state"] in ("queued", "succeeded")
    service.call("PUT", "/v1/routers/desk", 200, json={"model": "m", "fallback": "front@example.org"})
    return service


def route(service: InProcessApi, text: str, number: int) -> Any:
    message = f"Message-ID: <{number}@example.org>\r\nSubject: hello\r\n\r\n{text} number{number}"
    headers = {"Content-Type": "message/rfc822"}
    return service.call("POST", "/v1/routers/desk/messages", 200, content=message, headers=headers)


def search(service: InProcessApi, **query: Any) -> list[str]:
    page = service.call("GET", "/v1/routers/desk/decisions", 200, params=query)
    return [item["decision_id"] for item in page["items"]]


def give_feedback(service: InProcessApi, decision: Any, *labels: str) -> Any:
    path = f"/v1/decisions/{decision['decision_id']}/feedback"
    return service.call("POST", path, 200, json={"labels": labels})


def test_decisions_are_found_by_what_became_of_them(desk: InProcessApi) -> None:
    routed = [route(desk, "invoice", 0), route(desk, "printer", 1)]
    body = {"model": "m", "fallback": "front@example.org", "review_below": 1.0}
    desk.call("PUT", "/v1/routers/desk", 200, json=body)
    review = [route(desk, "invoice printer", 2), route(desk, "contract", 3), route(desk, "contract", 4)]
    fallback = route(desk, "\x01", 5)
    first, second, *_ = (decision["decision_id"] for decision in review)
    ids = [decision["decision_id"] for decision in (*routed, *review)]
    assert search(desk, disposition="routed") == ids[1::-1]
    assert search(desk) == search(desk, version=1) == [fallback["decision_id"], *ids[::-1]]
    assert search(desk, version=2) == []
    assert search(desk, label="legal", order="oldest_first") == ids[3:]
    assert search(desk, message_id="<3@example.org>") == search(desk, message_id="3@example.org") == [second]
    assert search(desk, message_id="@example.org") == []

    agreed = [department["label"] for department in review[0]["departments"]]
    give_feedback(desk, review[0], *agreed, *agreed)
    give_feedback(desk, review[1], "billing")
    assert search(desk, feedback="agreed") == [first]
    assert search(desk, feedback="corrected") == [second]
    assert search(desk, disposition="review", feedback="none") == [ids[-1]]
    give_feedback(desk, review[1], "legal")
    assert search(desk, feedback="agreed") == [second, first]
    assert search(desk, feedback="corrected") == []

    third = desk.call("GET", f"/v1/decisions/{ids[2]}", 200)["created_at"]
    assert third.endswith("Z")
    assert set(search(desk, **{"from": third})) >= {fallback["decision_id"], *ids[2:]}
    assert ids[2] not in search(desk, to=third)
    assert search(desk, to="2020-01-01T00:00:00+02:00") == []
    assert search(desk, **{"from": "9999-12-31T23:59:59Z"}) == []

    desk.call("DELETE", f"/v1/decisions/{second}", 204)
    assert search(desk, label="legal") == [ids[-1]]


@pytest.mark.parametrize(
    ("query", "pointer", "message"),
    [
        ("disposition=lost", "/query/disposition", "'routed', 'review' or 'fallback'"),
        ("feedback=yes", "/query/feedback", "'none', 'agreed' or 'corrected'"),
        ("version=live", "/query/version", "integer"),
        ("label=", "/query/label", "at least 1 character"),
        ("from=yesterday", "/query/from", "such as 2026-01-31T09:00:00Z"),
        ("to=1767225600", "/query/to", "such as 2026-01-31T09:00:00Z"),
        ("to=2026-01-01T00:00:00", "/query/to", "a time with a time zone"),
        ("from=2026-01-01T00:00:00+02:00", "/query/from", "write + as %2B"),
        ("from=2026-13-01T00:00:00Z", "/query/from", "month"),
        ("from=2026-01-01T00:00:00Z&to=2026-01-01T01:00:00%2B01:00", "/query/to", "must be later than from"),
        ("departments=billing", "/query/departments", "the parameters here are cursor, disposition"),
    ],
)
def test_a_query_with_a_mistake_is_refused(
    service: InProcessApi, query: str, pointer: str, message: str
) -> None:
    response = service.send("GET", f"/v1/routers/desk/decisions?{query}")
    problem = problem_of(response, 422, "invalid_request", pointer=pointer)
    assert message in problem["errors"][0]["message"]


def test_a_report_refuses_times_with_a_mistake(service: InProcessApi) -> None:
    for query in ("to=1767225600", "from=2026-01-01T00:00:00"):
        response = service.send("GET", f"/v1/routers/desk/report?{query}")
        problem_of(response, 422, "invalid_request", pointer=f"/query/{query.partition('=')[0]}")
