"""Reviews by probability, and thresholds in requests, over HTTP."""

from __future__ import annotations

from typing import Any

import in_process
import pytest
from contract import problem_of
from httpx import Response
from in_process_api import InProcessApi
from stack import departments

TEXTS = [example["text"] for example in departments(12)]


@pytest.fixture
def dataset(service: InProcessApi) -> str:
    return service.dataset(departments(80))


def train(service: InProcessApi, dataset: str, decision: str, **fields: Any) -> Any:
    """Train a version of the model m, and return it."""
    features = {"kind": "text", "weighting": "pivoted", "scaling": "unit"}
    body = {
        "dataset_id": dataset,
        "model": "m",
        "features": features,
        "learner": {"algorithm": "svm"},
        "decision": {"kind": decision},
        **fields,
    }
    job = service.call("POST", "/v1/training-jobs", 202, json=body)
    in_process.work(service.ctx)
    result = service.call("GET", f"/v1/training-jobs/{job['id']}", 200)["result"]
    return service.call("GET", f"/v1/models/m/versions/{result['version']}", 200)


def put_router(service: InProcessApi, **fields: Any) -> Response:
    body = {"model": "m", "fallback": "front@example.org", **fields}
    return service.send("PUT", "/v1/routers/desk", json=body)


def route(service: InProcessApi, text: str, subject: str = "Hello") -> Any:
    body = {"email": {"subject": subject, "text": text}}
    return service.call("POST", "/v1/routers/desk/message-parts", 200, json=body)


def predict(service: InProcessApi, **fields: Any) -> Response:
    body = {"instances": [{"text": text} for text in TEXTS], **fields}
    return service.send("POST", "/v1/models/m/predict", json=body)


def test_messages_that_are_probably_wrong_go_to_a_review(service: InProcessApi, dataset: str) -> None:
    assert train(service, dataset, "auto")["calibrated"] is True
    assert put_router(service).is_success
    decisions = [route(service, text, subject=f"m{i}") for i, text in enumerate(TEXTS)]
    probabilities = [decision["set_probability"] for decision in decisions]
    between = (min(probabilities) + max(probabilities)) / 2
    assert put_router(service, review_below=between).is_success
    reviewed = [route(service, text, subject=f"n{i}") for i, text in enumerate(TEXTS)]
    assert {decision["disposition"] for decision in reviewed} >= {"routed", "review"}
    for decision in reviewed:
        if decision["departments"]:
            is_doubtful = decision["set_probability"] < between
            assert decision["disposition"] == ("review" if is_doubtful else "routed")
            assert ("review_reason" in decision) == is_doubtful
        ranked = {item["label"]: item["probability"] for item in decision["ranking"]}
        for department in decision["departments"]:
            assert 0 < department["probability"] == ranked[department["label"]] < 1


def test_a_router_with_reviews_needs_a_calibrated_version(service: InProcessApi, dataset: str) -> None:
    assert train(service, dataset, "sign")["calibrated"] is False
    rejected = put_router(service, review_below=0.5)
    problem = problem_of(rejected, 422, "invalid_request", "/review_below")
    assert problem["detail"].startswith("version 1 of m is not calibrated")
    assert train(service, dataset, "auto", promote="always")["aliases"] == ["live"]
    assert put_router(service, review_below=0.5).is_success

    moved = service.send("PUT", "/v1/models/m/aliases/live", json={"version": 1})
    problem_of(moved, 409, "version_not_calibrated")
    version = train(service, dataset, "sign", promote="always")
    assert version["aliases"] == []
    assert [warning for warning in version["warnings"] if warning.startswith("not promoted: router desk")]
    service.call("PUT", "/v1/models/m/aliases/other", 200, json={"version": 1})

    assert put_router(service).is_success
    service.call("PUT", "/v1/models/m/aliases/live", 200, json={"version": 1})
    decision = route(service, TEXTS[0])
    assert "set_probability" not in decision
    assert all("probability" not in item for item in decision["ranking"])


def test_thresholds_of_a_request_and_of_a_router_replace_those_of_the_version(
    service: InProcessApi, dataset: str
) -> None:
    version = train(service, dataset, "tuned_threshold")
    before = predict(service).json()
    unchanged = predict(service, thresholds={"sales": version["thresholds"]["sales"]})
    assert unchanged.json() == before
    always = predict(service, thresholds={"billing": -1e9, "sales": 1e9}).json()["predictions"]
    for old, new in zip(before["predictions"], always, strict=True):
        assert set(new["labels"]) == (set(old["labels"]) | {"billing"}) - {"sales"}
        # What is known of the label set is known of its labels, so only the scores are the same.
        rankings = [[(item["label"], item["score"]) for item in one["ranking"]] for one in (old, new)]
        assert rankings[0] == rankings[1]
    wrong = predict(service, thresholds={"a/b": 0.0})
    problem_of(wrong, 422, "invalid_parameters", "/thresholds/a~1b")

    problem_of(put_router(service, thresholds={"gone": 1.0}), 422, "invalid_request", "/thresholds/gone")
    assert put_router(service, thresholds={"billing": -1e9, "sales": 1e9}).is_success
    for text, expected in zip(TEXTS, always, strict=True):
        assert sorted(item["label"] for item in route(service, text)["departments"]) == expected["labels"]
