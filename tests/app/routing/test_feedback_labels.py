"""Feedback has labels that the model knows, unless the client allows new ones."""

from __future__ import annotations

from typing import Any

import pytest
from contract import problem_of
from httpx import Response
from in_process_api import InProcessApi
from sqlalchemy import delete

from app.db import tables

KNOWN = {"routed": "invoice", "Legal advice": "contract"}


@pytest.fixture
def service_with_decision(service: InProcessApi) -> tuple[InProcessApi, str]:
    """The API, and the id of a decision of version 2. Its version knows no label ``returns``."""

    def dataset(words: dict[str, str]) -> str:
        return service.dataset(
            [{"text": f"{word} {n}", "labels": [label]} for n in range(4) for label, word in words.items()]
        )

    service.train(dataset({**KNOWN, "returns": "parcel"}))
    service.train(dataset(KNOWN), promote="always")
    service.call("PUT", "/v1/routers/desk", 200, json={"model": "m", "fallback": "front@example.org"})
    body = {"email": {"text": "my invoice"}}
    decision = service.call("POST", "/v1/routers/desk/message-parts", 200, json=body)
    assert decision["version"] == 2
    return service, decision["decision_id"]


def give(service: InProcessApi, decision: str, labels: list[str], **fields: Any) -> Response:
    path = f"/v1/decisions/{decision}/feedback"
    return service.send("POST", path, json={"labels": labels, **fields})


def test_labels_of_any_version_or_data_set_of_the_model_are_known(
    service_with_decision: tuple[InProcessApi, str],
) -> None:
    service, decision = service_with_decision
    for labels in (["Legal advice"], [], ["returns", "routed"]):
        response = give(service, decision, labels)
        assert response.json()["feedback"] == sorted(labels)
    # An imported version has no data set.
    with service.ctx.db.write() as tx:
        version = tx.session.get_one(tables.ModelVersion, ("m", 1))
        version.dataset_id = None
        version.description = {**version.description, "labels": ["of an import"]}
    assert give(service, decision, ["of an import"]).status_code == 200
    assert give(service, decision, ["returns"]).status_code == 422


def test_an_unknown_label_is_refused_with_likely_ones(
    service_with_decision: tuple[InProcessApi, str],
) -> None:
    service, decision = service_with_decision
    response = give(service, decision, ["routed", "legal Advise", "sales"])
    problem = problem_of(response, 422, "unknown_label")
    assert problem["errors"] == [
        {
            "pointer": "/labels/1",
            "message": "'legal Advise' is not a label of the model m; did you mean 'Legal advice'?",
        },
        {"pointer": "/labels/2", "message": "'sales' is not a label of the model m"},
    ]
    assert "set allow_new_labels" in problem["detail"]
    assert "feedback" not in service.call("GET", f"/v1/decisions/{decision}", 200)
    many = give(service, decision, [f"label {n}" for n in range(1_000)])
    assert len(problem_of(many, 422, "unknown_label")["errors"]) == 50
    stored = give(service, decision, ["sales"], allow_new_labels=True)
    assert stored.json()["feedback"] == ["sales"]


def test_feedback_can_be_given_after_the_model_was_deleted(
    service_with_decision: tuple[InProcessApi, str],
) -> None:
    service, decision = service_with_decision
    service.call("DELETE", "/v1/routers/desk", 204)
    service.call("DELETE", "/v1/models/m", 204)
    with service.ctx.db.write() as tx:
        tx.session.execute(delete(tables.DatasetLabel))
    assert give(service, decision, ["routed"]).status_code == 200, "the decision has this label"
    problem_of(give(service, decision, ["returns"]), 422, "unknown_label", pointer="/labels/0")
    assert give(service, decision, ["returns"], allow_new_labels=True).status_code == 200
    problem_of(give(service, "dec_unknown", ["returns"]), 404, "not_found")
