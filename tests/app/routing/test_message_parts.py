"""Mailing lists and attachments of messages as JSON, over HTTP."""

from __future__ import annotations

from typing import Any

import in_process
from contract import problem_of
from in_process_api import InProcessApi

OFF = {"weight": 0}
FIELDS = {
    **dict.fromkeys(["subject", "new_text", "quoted_text", "attachment_names"], OFF),
    "list_id": {"weight": 1},
    "attachment_types": {"weight": 1},
}
BILLING: dict[str, Any] = {"attachments": [{"name": "invoice.pdf", "content_type": "application/pdf"}]}
SALES: dict[str, Any] = {"list_id": "Offers <offers.example.org>"}


def email(parts: dict[str, Any]) -> dict[str, Any]:
    return {"subject": "Hello", "from": "ann@example.com", "text": "Please help.", **parts}


def test_messages_as_json_are_routed_by_their_mailing_list_and_attachments(service: InProcessApi) -> None:
    examples = [
        {"email": email(parts), "labels": [label]}
        for label, parts in (("billing", BILLING), ("sales", SALES))
        for _ in range(3)
    ]
    dataset = service.dataset(examples)
    shown = service.call("GET", f"/v1/datasets/{dataset}/examples", 200)["items"]
    stored = [{name: part for name, part in item["email"].items() if part} for item in shown]
    assert stored == [example["email"] for example in examples]

    body = {
        "dataset_id": dataset,
        "model": "m",
        "features": {"kind": "text", "weighting": "tf", "fields": FIELDS},
        "learner": {"algorithm": "naive_bayes"},
        "decision": {"kind": "sign"},
    }
    service.call("POST", "/v1/training-jobs", 202, json=body)
    in_process.work(service.ctx)
    service.call("PUT", "/v1/routers/desk", 200, json={"model": "m", "fallback": "front@example.org"})

    def route(parts: dict[str, Any]) -> Any:
        return service.call("POST", "/v1/routers/desk/message-parts", 200, json={"email": email(parts)})

    for label, parts in (("billing", BILLING), ("sales", SALES)):
        decision = route(parts)
        assert [item["label"] for item in decision["departments"]] == [label]
    assert route({})["disposition"] == "fallback"  # no field that the version reads
    instances = [{"email": email(BILLING)}, {"email": email(SALES)}]
    predicted = service.call("POST", "/v1/models/m/predict", 200, json={"instances": instances})
    assert [one["labels"] for one in predicted["predictions"]] == [["billing"], ["sales"]]


def test_wrong_attachments_are_rejected_with_their_place(service: InProcessApi) -> None:
    for attachments, place in (([{"name": "a"}, {"name": "b", "size": 3}], "/1/size"), ([{}] * 201, "")):
        example = {"email": email({"attachments": attachments}), "labels": ["billing"]}
        response = service.send("POST", "/v1/datasets", json={"name": "mail", "examples": [example]})
        problem_of(response, 422, "invalid_request", f"/examples/0/email/attachments{place}")
