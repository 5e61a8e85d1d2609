"""A repeated request with an ``Idempotency-Key`` gets the first response, whatever has happened meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import in_process
import pytest
from httpx import Response
from in_process_api import InProcessApi

OCTETS = {"Content-Type": "application/octet-stream"}


def prepare(service: InProcessApi) -> Mapping[str, tuple[str, dict[str, Any]]]:
    """Create what the requests need; return the path and the body of each operation with the header."""
    dataset = service.dataset()
    service.train(dataset)
    key = service.call("POST", "/v1/api-keys", 201, json={"name": "k", "scopes": ["read"]})["id"]
    hook = {"url": "https://hooks.example.org/", "events": ["job.ended"]}
    webhook = service.call("POST", "/v1/webhooks", 201, json=hook)["id"]
    artifact = service.send("GET", "/v1/models/m/versions/1/artifact").content
    learner = {"algorithm": "naive_bayes"}
    tree = {"billing": "root"}
    return {
        "POST /v1/datasets": (
            "/v1/datasets",
            {"json": {"name": "d", "examples": [{"text": "x", "labels": ["a"]}], "label_tree": tree}},
        ),
        "POST /v1/training-jobs": (
            "/v1/training-jobs",
            {"json": {"dataset_id": dataset, "model": "other", "learner": learner}},
        ),
        "POST /v1/experiments": (
            "/v1/experiments",
            {"json": {"dataset_id": dataset, "configurations": [{"learner": learner}]}},
        ),
        "POST /v1/models/{name}/versions": (
            "/v1/models/copy/versions",
            {"content": artifact, "headers": OCTETS},
        ),
        "POST /v1/models/{name}/versions/{version}/evaluations": (
            "/v1/models/m/versions/1/evaluations",
            {"json": {"dataset_id": dataset}},
        ),
        "POST /v1/batch-predictions": (
            "/v1/batch-predictions",
            {"json": {"dataset_id": dataset, "model": "m"}},
        ),
        "POST /v1/api-keys": ("/v1/api-keys", {"json": {"name": "new", "scopes": ["read"]}}),
        "POST /v1/api-keys/{key_id}/rotate": (f"/v1/api-keys/{key}/rotate", {"json": {}}),
        "POST /v1/models/{name}/versions/{version}/partial-fit": (
            "/v1/models/m/versions/1/partial-fit",
            {"json": {"examples": [{"text": "my invoice", "labels": ["billing"]}]}},
        ),
        "POST /v1/webhooks": ("/v1/webhooks", {"json": hook}),
        "POST /v1/webhooks/{webhook_id}/rotate": (f"/v1/webhooks/{webhook}/rotate", {"json": {}}),
    }


def delete_everything(service: InProcessApi) -> None:
    """Delete all data sets, models and other keys, so that nothing that the requests need is left."""
    in_process.work(service.ctx)
    for dataset in service.call("GET", "/v1/datasets", 200)["items"]:
        service.call("DELETE", f"/v1/datasets/{dataset['id']}", 204)
    for model in service.call("GET", "/v1/models", 200)["items"]:
        service.call("DELETE", f"/v1/models/{model['name']}", 204)
    for key in service.call("GET", "/v1/api-keys", 200)["items"]:
        if key["name"] != "test":
            service.call("DELETE", f"/v1/api-keys/{key['id']}", 204)


def test_a_replay_does_not_depend_on_what_the_first_request_needed(service: InProcessApi) -> None:
    requests = prepare(service)
    with_header = {
        operation
        for operation, description in service.documented.items()
        if any(item["name"] == "Idempotency-Key" for item in description.get("parameters", []))
    }
    assert set(requests) == with_header

    def send(operation: str) -> Response:
        path, options = requests[operation]
        headers = {**options.get("headers", {}), "Idempotency-Key": "k" + operation[-60:].replace("/", "-")}
        return service.send("POST", path, **{**options, "headers": headers})

    first = {operation: send(operation) for operation in requests}
    assert {operation: response.is_success for operation, response in first.items()} == dict.fromkeys(
        requests, True
    )
    delete_everything(service)

    def unavailable(call: str) -> None:
        # A replay needs the database only, except to receive an artifact, which is compared with the first.
        if call not in ("temporary_file", "check"):
            pytest.fail(f"a replay calls the storage: {call}")

    service.storage.before = unavailable
    for operation, response in first.items():
        repeated = send(operation)
        # The response contains a secret, which is not stored.
        if "api-keys" in operation or "webhooks" in operation:
            assert (repeated.status_code, repeated.json()["code"]) == (409, "secret_already_shown")
            continue
        assert repeated.status_code == response.status_code, repeated.text
        assert repeated.content == response.content
        assert repeated.headers.get("location") == response.headers.get("location")
