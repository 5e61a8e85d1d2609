"""The main workflow on real processes: upload labelled messages, train a version, route messages."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest
from stack import BYTES, Stack, departments
from waiting import wait_for

pytestmark = pytest.mark.system

MESSAGE = b"""\
From: Ann <ann@example.com>
To: help@example.org
Subject: Late parcel
Message-ID: <late-parcel@example.com>
Content-Type: text/plain; charset=utf-8

The courier says the parcel is late. Where is the delivery?
"""


def test_upload_training_and_routing_give_the_same_results_after_a_restart(killable_stack: Stack) -> None:
    stack = killable_stack
    dataset = stack.dataset(departments(200))
    assert dataset["kind"] == "text"
    assert (dataset["n_examples"], dataset["n_labels"]) == (200, 4)
    assert dataset["splits"] == {"train": 150, "validation": 0, "test": 50, "none": 0}

    labels = stack.call("GET", f"/v1/datasets/{dataset['id']}/labels?limit=3", 200)
    assert [item["label"] for item in labels["items"]] == ["billing", "sales", "shipping"]
    rest = stack.call("GET", f"/v1/datasets/{dataset['id']}/labels?cursor={labels['next_cursor']}", 200)
    assert [item["label"] for item in rest["items"]] == ["support"]
    assert "next_cursor" not in rest

    first = stack.finished(stack.train(dataset["id"], model="restarted")["id"])
    assert first["state"] == "succeeded", first
    assert first["result"]["version"] == 1
    assert first["result"]["metrics"]["test"]["f1_micro"] > 0.8
    second = stack.finished(
        stack.train(dataset["id"], model="restarted", learner={"algorithm": "adaboost_mh", "rounds": 40})[
            "id"
        ]
    )
    assert second["result"]["version"] == 2
    assert stack.call("GET", "/v1/models/restarted", 200)["aliases"] == {"live": 1}

    promoted = stack.call("PUT", "/v1/models/restarted/aliases/live", 200, json={"version": 2})
    assert promoted["revision"] == 2

    request = {
        "instances": [{"text": "parcel late courier delivery tracking"}, {"text": "zzz"}],
        "explain": True,
        "top": 2,
    }
    before = stack.http.post("/v1/models/restarted/predict", json=request)
    assert before.status_code == 200
    assert before.json()["version"] == 2
    parcel, unknown = before.json()["predictions"]
    assert parcel["labels"] == ["shipping"]
    assert [entry["rank"] for entry in parcel["ranking"]] == [1, 2]
    terms = {term["term"] for term in parcel["explanation"][0]["terms"]}
    assert terms <= {"parcel", "late", "courier", "delivery", "tracking"}
    assert len(unknown["ranking"]) == 2

    router = {
        "model": "restarted",
        "destinations": {"shipping": "ship@example.org"},
        "fallback": "front@example.org",
        "explain": True,
    }
    stack.call("PUT", "/v1/routers/restarted", 200, json=router)
    raw = {"content": MESSAGE, "headers": {"Content-Type": "message/rfc822"}}
    decision = stack.call("POST", "/v1/routers/restarted/messages", 200, **raw)
    assert decision["disposition"] == "routed"
    assert decision["destinations"] == ["ship@example.org"]
    assert decision["message"]["message_id"] == "late-parcel@example.com"

    assert stack.stop() == 0
    stack.start()

    after = stack.http.post("/v1/models/restarted/predict", json=request)
    assert after.content == before.content
    assert stack.call("POST", "/v1/routers/restarted/messages", 200, **raw) == decision
    stored = stack.call("GET", f"/v1/decisions/{decision['decision_id']}", 200)
    assert {name: stored[name] for name in decision} == decision


def test_a_job_has_events_and_a_curve(stack: Stack) -> None:
    dataset = stack.dataset(departments(80))
    created = stack.train(dataset["id"], model="observed", learner={"algorithm": "mp_boost", "rounds": 12})
    job = stack.finished(created["id"])
    assert job["state"] == "succeeded", job
    events = stack.call("GET", f"/v1/training-jobs/{job['id']}/events", 200)["items"]
    types = [event["type"] for event in events]
    assert types[:2] == ["queued", "started"]
    assert types[-1] == "succeeded"
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    points = stack.call("GET", f"/v1/training-jobs/{job['id']}/curve", 200)["items"]
    assert [point["step"] for point in points] == list(range(1, len(points) + 1))
    assert points[-1]["step"] == 12
    with stack.http.stream(
        "GET",
        f"/v1/training-jobs/{job['id']}/events",
        headers={"Accept": "text/event-stream", "Last-Event-ID": "2"},
    ) as stream:
        lines = [line for line in stream.iter_lines() if line.startswith("id: ")]
    assert lines == [f"id: {seq}" for seq in range(3, len(events) + 1)]


def test_a_batch_prediction_whose_process_is_killed_gives_the_predictions_of_the_online_endpoint(
    stack: Stack,
) -> None:
    examples = departments(80)
    dataset = stack.dataset(examples)
    assert stack.finished(stack.train(dataset["id"], model="batch")["id"])["state"] == "succeeded"
    body = {"model": "batch", "dataset_id": dataset["id"], "top": 2}
    with stack.hold(kind="batch_prediction", phase="predicting", step=0, attempt=1) as hold:
        created = stack.call("POST", "/v1/batch-predictions", 202, json=body)
        os.kill(hold.wait(), signal.SIGKILL)

    def ended() -> Any:
        prediction = stack.call("GET", f"/v1/batch-predictions/{created['id']}", 200)
        return prediction if prediction["state"] not in {"queued", "running"} else None

    prediction = wait_for(ended, what="the batch prediction")
    assert (prediction["state"], prediction["attempt"]) == ("succeeded", 2)
    response = stack.http.get(f"/v1/batch-predictions/{created['id']}/result")
    assert response.headers["ETag"] == f'"{prediction["result"]["sha256"]}"'
    lines = [json.loads(line) for line in response.content.splitlines()]
    assert [line.pop("id") for line in lines] == [example["id"] for example in examples]
    request = {"instances": [{"text": example["text"]} for example in examples], "top": 2}
    assert lines == stack.call("POST", "/v1/models/batch/predict", 200, json=request)["predictions"]


def test_a_cancelled_job_stops_at_its_next_round_and_creates_no_version(stack: Stack) -> None:
    dataset = stack.dataset(departments(40))
    with stack.hold(model="stopped") as hold:
        created = stack.train(dataset["id"], model="stopped")
        hold.wait()
        stack.call("POST", f"/v1/training-jobs/{created['id']}/cancel", 202)
        job = stack.finished(created["id"])
    assert job["state"] == "cancelled"
    assert "result" not in job
    stack.call("GET", "/v1/models/stopped", 404)
    # A second request changes nothing.
    assert stack.call("POST", f"/v1/training-jobs/{created['id']}/cancel", 202)["state"] == "cancelled"


def test_an_exported_artifact_imports_as_the_same_model(stack: Stack) -> None:
    dataset = stack.dataset(departments(80))
    stack.finished(stack.train(dataset["id"], model="original")["id"])
    version = stack.call("GET", "/v1/models/original/versions/1", 200)
    artifact = stack.http.get("/v1/models/original/versions/1/artifact")
    assert len(artifact.content) == version["artifact"]["size_bytes"]
    copy = stack.call("POST", "/v1/models/copy/versions", 201, content=artifact.content, headers=BYTES)
    assert copy["artifact"]["sha256"] == version["artifact"]["sha256"]
    assert copy["labels"] == version["labels"]
    request = {"instances": [{"text": "refund my invoice"}]}
    responses = [
        stack.call("POST", f"/v1/models/{name}/predict", 200, json=request) for name in ("original", "copy")
    ]
    headers = {**BYTES, "Idempotency-Key": "test-import-1"}
    imports = [
        stack.call("POST", "/v1/models/once/versions", 201, content=artifact.content, headers=headers)
        for _ in range(2)
    ]
    assert imports[0] == imports[1]
    assert stack.call("GET", "/v1/models/once", 200)["versions"] == 1
    assert responses[0]["predictions"] == responses[1]["predictions"]

    damaged = bytearray(artifact.content)
    damaged[-9] ^= 1
    problem = stack.call("POST", "/v1/models/copy/versions", 422, content=bytes(damaged), headers=BYTES)
    assert problem["code"] == "bad_artifact"
    assert stack.call("GET", "/v1/models/copy", 200)["versions"] == 1


def test_a_repeated_idempotency_key_creates_one_resource(stack: Stack) -> None:
    body = {"name": "once"}
    headers = {"Idempotency-Key": "test-once-1"}
    first = stack.call("POST", "/v1/datasets", 201, json=body, headers=headers)
    assert stack.call("POST", "/v1/datasets", 201, json=body, headers=headers) == first
    problem = stack.call("POST", "/v1/datasets", 409, json={"name": "other"}, headers=headers)
    assert problem["code"] == "idempotency_key_reused"


def test_an_alias_moves_only_if_its_revision_matches(stack: Stack) -> None:
    dataset = stack.dataset(departments(40))
    stack.finished(stack.train(dataset["id"], model="seen")["id"])
    path = "/v1/models/seen/aliases/candidate"
    created = stack.http.put(path, json={"version": 1})
    assert created.headers["ETag"] == '"1"'
    moved = stack.http.put(path, json={"version": 1}, headers={"If-Match": '"1"'})
    assert moved.headers["ETag"] == '"2"'
    problem = stack.call("PUT", path, 412, json={"version": 1}, headers={"If-Match": '"1"'})
    assert problem["code"] == "precondition_failed"


def test_a_model_in_use_cannot_be_deleted(stack: Stack) -> None:
    dataset = stack.dataset(departments(40))
    stack.finished(stack.train(dataset["id"], model="used")["id"])
    stack.call("PUT", "/v1/routers/uses", 200, json={"model": "used", "fallback": "front@example.org"})
    assert stack.call("DELETE", "/v1/models/used", 409)["code"] == "model_in_use"
    assert stack.call("DELETE", "/v1/models/used/versions/1", 409)["code"] == "version_in_use"
    assert stack.call("DELETE", "/v1/models/used/aliases/live", 409)["code"] == "alias_in_use"
    stack.call("DELETE", "/v1/routers/uses", 204)
    stack.call("DELETE", "/v1/models/used", 204)
    stack.call("GET", "/v1/models/used", 404)
    stack.call("DELETE", f"/v1/datasets/{dataset['id']}", 204)
    stack.call("GET", f"/v1/datasets/{dataset['id']}", 404)


def test_the_same_message_posted_again_gets_the_same_decision(stack: Stack) -> None:
    dataset = stack.dataset(departments(80))
    stack.finished(stack.train(dataset["id"], model="repeated", decision={"kind": "auto"})["id"])
    router = {
        "model": "repeated",
        "fallback": "front@example.org",
        "at_most": 1,
        "review_below": 1.0,
        "shadow": 1,
    }
    stack.call("PUT", "/v1/routers/repeated", 200, json=router)
    body = {
        "email": {"subject": "Late parcel", "text": "the courier is late with the parcel and the invoice"}
    }
    first = stack.call("POST", "/v1/routers/repeated/message-parts", 200, json=body)
    assert first["disposition"] == "review"
    assert len(first["departments"]) == 1
    assert 0 < first["set_probability"] < 1
    assert 0 < first["departments"][0]["probability"] < 1
    assert first["destinations"] == ["front@example.org"]
    assert stack.call("POST", "/v1/routers/repeated/message-parts", 200, json=body) == first
    listed = stack.call("GET", "/v1/routers/repeated/decisions", 200)["items"]
    assert [item["decision_id"] for item in listed] == [first["decision_id"]]

    def shadow() -> Any:  # the shadow prediction is stored after the response
        return stack.call("GET", f"/v1/decisions/{first['decision_id']}", 200).get("shadow")

    assert wait_for(shadow, what="the shadow")["version"] == 1
    feedback = f"/v1/decisions/{first['decision_id']}/feedback"
    updated = stack.call("POST", feedback, 200, json={"labels": ["shipping", "billing"]})
    assert updated["feedback"] == ["billing", "shipping"]


def test_a_second_service_on_the_same_folder_does_not_start(stack: Stack) -> None:
    second = Stack(stack.data)
    with pytest.raises(RuntimeError, match="another `covey serve` runs on"):
        second.start()
    assert second.pid
    stack.call("GET", "/health/ready", 200)
