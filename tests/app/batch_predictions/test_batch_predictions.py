"""Batch predictions through the API: what a client sends, and the file that it gets."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import in_process
import pyarrow.parquet as pq
import pytest
from in_process_api import InProcessApi
from stack import departments

from app.batch_predictions import service as batch_predictions
from app.context import AppContext

TEXTS = [{"text": example["text"]} for example in departments(30)[20:]]
EMAILS: list[dict[str, Any]] = [
    {"email": {"subject": text["text"].split()[0], "text": text["text"], "from": "ann@example.com"}}
    for text in TEXTS
]


def dataset(service: InProcessApi, examples: Iterable[Mapping[str, Any]]) -> str:
    """Create a ready data set. Examples without labels are unlabelled."""
    body = {"name": "batch", "examples": [{"labels": [], **example} for example in examples]}
    created: str = service.call("POST", "/v1/datasets", 201, json=body)["id"]
    in_process.work(service.ctx)
    return created


def train(service: InProcessApi, dataset_id: str, model: str = "m", **fields: Any) -> None:
    body = {
        "dataset_id": dataset_id,
        "model": model,
        "learner": {"algorithm": "naive_bayes"},
        "decision": {"kind": "sign"},
        **fields,
    }
    job = service.call("POST", "/v1/training-jobs", 202, json=body)
    in_process.work(service.ctx)
    assert service.call("GET", f"/v1/training-jobs/{job['id']}", 200)["state"] == "succeeded"


def create(service: InProcessApi, dataset_id: str, **fields: Any) -> str:
    body = {"model": "m", "dataset_id": dataset_id, **fields}
    return str(service.call("POST", "/v1/batch-predictions", 202, json=body)["id"])


def get(service: InProcessApi, id_: str) -> Any:
    return service.call("GET", f"/v1/batch-predictions/{id_}", 200)


def finished(service: InProcessApi, dataset_id: str, **fields: Any) -> Any:
    """Run a batch prediction to its end."""
    id_ = create(service, dataset_id, **fields)
    in_process.work(service.ctx)
    return get(service, id_)


def result(service: InProcessApi, prediction: Any) -> bytes:
    assert prediction["state"] == "succeeded", prediction.get("error")
    response = service.send("GET", f"/v1/batch-predictions/{prediction['id']}/result")
    assert response.status_code == 200, response.text
    return response.content


def lines(content: bytes) -> list[dict[str, Any]]:
    assert content.endswith(b"\n")
    return [json.loads(line) for line in content.splitlines()]


def predicted(service: InProcessApi, instances: list[dict[str, Any]], **fields: Any) -> list[Any]:
    """The predictions of the online endpoint."""
    body = {"instances": instances, **fields}
    predictions: list[Any] = service.call("POST", "/v1/models/m/predict", 200, json=body)["predictions"]
    return predictions


@pytest.mark.parametrize("trained_on_email", [False, True])
def test_each_line_has_the_prediction_that_the_online_endpoint_returns(
    service: InProcessApi, trained_on_email: bool
) -> None:
    texts = departments(40)
    emails = [{"email": {"text": example["text"]}, "labels": example["labels"]} for example in texts]
    train(service, dataset(service, emails) if trained_on_email else service.dataset())
    for documents in (TEXTS, EMAILS):
        unlabelled = dataset(service, [{"id": f"d{i}", **document} for i, document in enumerate(documents)])
        for fields in ({}, {"top": 2}):
            items = lines(result(service, finished(service, unlabelled, **fields)))
            assert [item.pop("id") for item in items] == [f"d{i}" for i in range(len(documents))]
            assert items == predicted(service, documents, **fields)
            assert {len(item["ranking"]) for item in items} == {fields.get("top", 4)}


def without_nulls(value: Any) -> Any:
    """Return a row of a Parquet file as the object that NDJSON has."""
    if isinstance(value, dict):
        return {name: without_nulls(field) for name, field in value.items() if field is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("calibrated", [False, True])
def test_a_parquet_result_has_the_same_content_as_an_ndjson_result(
    service: InProcessApi, calibrated: bool
) -> None:
    labels = ['"', "ü€😀", "a,b", "{}"]
    examples = [{"text": f"word{i % 4} {'x ' * i}", "labels": [labels[i % 4]]} for i in range(40)]
    data = dataset(service, examples)
    train(service, data, decision={"kind": "tuned_threshold" if calibrated else "sign"})
    for top in (1, 3, 4):
        items = lines(result(service, finished(service, data, top=top)))
        table = pq.read_table(io.BytesIO(result(service, finished(service, data, top=top, format="parquet"))))
        assert table.column("error").null_count == len(table)
        assert without_nulls(table.to_pylist()) == items
        assert all(("set_probability" in item) == calibrated for item in items)
        assert {label for item in items for label in item["labels"]} == set(labels)


def test_numeric_documents_are_predicted_too(service: InProcessApi) -> None:
    rows = [{"features": {"a": i % 5, "b": 1.0 + i % 3}, "labels": ["odd"][: i % 2]} for i in range(30)]
    data = dataset(service, rows)
    train(service, data, learner={"algorithm": "svm"})
    items = lines(result(service, finished(service, data)))
    online = predicted(service, [{"features": row["features"]} for row in rows])
    assert [(item["labels"], item["ranking"]) for item in items] == [
        (prediction["labels"], prediction["ranking"]) for prediction in online
    ]


def test_features_that_the_version_does_not_know_are_named(service: InProcessApi) -> None:
    rows = [{"features": {"a": i % 5, "b": 1.0 + i % 3}, "labels": ["odd"][: i % 2]} for i in range(30)]
    train(service, dataset(service, rows), learner={"algorithm": "svm"})
    instances = [{"features": {"a": 1, "B": 2}}, {"features": {"B": 1, **{f"z{i}": i for i in range(11)}}}]
    for options in ({}, {"explain": True}):
        body = {"instances": instances, **options}
        response = service.call("POST", "/v1/models/m/predict", 200, json=body)
        assert response["unknown_features"] == {"count": 12, "names": ["B", *(f"z{i}" for i in range(9))]}
        assert len(response["predictions"]) == 2
    known = service.call("POST", "/v1/models/m/predict", 200, json={"instances": [{"features": {"a": 1}}]})
    assert "unknown_features" not in known

    batch = finished(service, dataset(service, [{"features": {"a": 1, "B": 2}}]))
    assert batch["result"]["unknown_features"] == {"count": 1, "names": ["B"]}
    assert "unknown_features" not in finished(service, dataset(service, rows))["result"]


def test_a_data_set_of_another_kind_is_rejected(service: InProcessApi) -> None:
    train(service, service.dataset())
    numbers = dataset(service, [{"features": {"a": 1.0}, "labels": ["x"]}])
    body = {"model": "m", "dataset_id": numbers}
    problem = service.send("POST", "/v1/batch-predictions", json=body).json()
    assert (problem["status"], problem["errors"][0]["pointer"]) == (422, "/dataset_id")


def test_a_data_set_without_labels_is_for_batch_predictions_only(service: InProcessApi) -> None:
    train(service, service.dataset())
    unlabelled = dataset(service, TEXTS)
    learner = {"algorithm": "naive_bayes"}
    for path, body in (
        ("training-jobs", {"model": "m", "learner": learner}),
        ("experiments", {"configurations": [{"learner": learner}]}),
        ("models/m/versions/1/evaluations", {}),
    ):
        problem = service.send("POST", f"/v1/{path}", json={"dataset_id": unlabelled, **body}).json()
        assert (problem["status"], problem["errors"][0]["pointer"]) == (422, "/dataset_id")
        assert "only suitable for batch predictions" in problem["detail"]
    assert finished(service, unlabelled)["result"]["documents"] == len(TEXTS)


def test_an_invalid_request_is_rejected_with_its_place(service: InProcessApi) -> None:
    data = service.dataset()
    train(service, data)
    cases: list[tuple[dict[str, Any], int, list[str]]] = [
        ({"model": "unknown"}, 404, []),
        ({"version": 7}, 404, ["/version"]),
        ({"version": "candidate"}, 404, ["/version"]),
        ({"dataset_id": "ds_unknown"}, 404, ["/dataset_id"]),
        ({"format": "csv"}, 422, ["/format"]),
        ({"top": 0}, 422, ["/top"]),
        ({"priority": 101}, 422, ["/priority"]),
    ]
    for changed, status, pointers in cases:
        body = {"model": "m", "dataset_id": data, **changed}
        problem = service.send("POST", "/v1/batch-predictions", json=body).json()
        assert problem["status"] == status, changed
        assert [error["pointer"] for error in problem.get("errors", [])] == pointers
    assert in_process.queued(service.ctx) == []


def with_settings(service: InProcessApi, **changes: Any) -> AppContext:
    return replace(service.ctx, settings=service.ctx.settings.model_copy(update=changes))


def test_rankings_that_are_too_long_for_all_documents_are_rejected(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = service.dataset()
    train(service, data)
    monkeypatch.setattr(batch_predictions, "MAX_RANKED_LABELS", 85)
    body: dict[str, Any] = {"model": "m", "dataset_id": data}
    for top in (None, 3):
        problem = service.send("POST", "/v1/batch-predictions", json={**body, "top": top}).json()
        assert problem["errors"][0]["pointer"] == "/top"
        assert "set top to at most 2" in problem["detail"]
    assert finished(service, data, top=2)["state"] == "succeeded"


def test_a_client_that_polls_sees_the_state_the_progress_and_the_result(service: InProcessApi) -> None:
    data = service.dataset()
    train(service, data)
    body = {"model": "m", "dataset_id": data, "top": 1, "priority": 3}
    response = service.send("POST", "/v1/batch-predictions", json=body)
    queued = response.json()
    assert response.headers["Location"] == f"/v1/batch-predictions/{queued['id']}"
    assert queued["id"].startswith("bp_")
    assert queued["state"] == "queued"
    assert (queued["version"], queued["top"], queued["format"], queued["priority"]) == (1, 1, "ndjson", 3)
    early = service.send("GET", f"/v1/batch-predictions/{queued['id']}/result").json()
    assert (early["status"], early["code"]) == (409, "result_not_ready")
    in_process.work(service.ctx)
    ended = get(service, queued["id"])
    assert (ended["state"], ended["attempt"]) == ("succeeded", 1)
    content = result(service, ended)
    assert ended["result"] == {
        "documents": 40,
        "failed_documents": 0,
        "sha256": hashlib.sha256(content).hexdigest(),
        "size_bytes": len(content),
    }
    other = create(service, data)
    listed = service.call("GET", "/v1/batch-predictions", 200)["items"]
    assert [item["id"] for item in listed] == [other, queued["id"]]
    assert listed[1] == ended


def test_an_alias_is_resolved_when_the_batch_prediction_is_created(service: InProcessApi) -> None:
    data = service.dataset()
    train(service, data)
    train(service, data, promote="never")
    id_ = create(service, data)
    service.call("PUT", "/v1/models/m/aliases/live", 200, json={"version": 2})
    in_process.work(service.ctx)
    assert get(service, id_)["version"] == 1
    assert finished(service, data, version=2)["version"] == 2


@pytest.mark.parametrize(
    ("form", "media_type"),
    [("ndjson", "application/x-ndjson"), ("parquet", "application/vnd.apache.parquet")],
)
def test_a_result_has_a_digest_a_name_and_ranges(service: InProcessApi, form: str, media_type: str) -> None:
    data = service.dataset()
    train(service, data)
    prediction = finished(service, data, format=form)
    path = f"/v1/batch-predictions/{prediction['id']}/result"
    whole = service.send("GET", path)
    assert whole.headers["Content-Type"] == media_type
    assert whole.headers["ETag"] == f'"{hashlib.sha256(whole.content).hexdigest()}"'
    assert whole.headers["Content-Disposition"] == f'attachment; filename="{prediction["id"]}.{form}"'
    rest = service.send("GET", path, headers={"Range": "bytes=100-"})
    assert (rest.status_code, rest.content) == (206, whole.content[100:])
    beyond = service.send("GET", path, headers={"Range": f"bytes={len(whole.content)}-"})
    assert beyond.json()["code"] == "range_not_satisfiable"


def test_a_cancelled_batch_prediction_has_no_result(service: InProcessApi) -> None:
    data = service.dataset()
    train(service, data)
    id_ = create(service, data)
    cancelled = service.call("POST", f"/v1/batch-predictions/{id_}/cancel", 202)
    assert cancelled["state"] == "cancelled"
    assert in_process.work(service.ctx) == []
    problem = service.send("GET", f"/v1/batch-predictions/{id_}/result").json()
    assert (problem["status"], problem["code"]) == (409, "no_result")
    # One that has ended stays as it is.
    ended = finished(service, data)
    assert service.call("POST", f"/v1/batch-predictions/{ended['id']}/cancel", 202) == ended


def test_an_unknown_batch_prediction_is_not_found(service: InProcessApi) -> None:
    for method, path in (("GET", ""), ("GET", "/result"), ("POST", "/cancel")):
        service.call(method, f"/v1/batch-predictions/bp_unknown{path}", 404)


def test_what_an_unfinished_batch_prediction_uses_cannot_be_deleted(service: InProcessApi) -> None:
    data = service.dataset()
    train(service, data)
    train(service, data, promote="never")
    id_ = create(service, data, version=2)
    used = {
        f"/v1/datasets/{data}": "dataset_in_use",
        "/v1/models/m/versions/2": "version_in_use",
        "/v1/models/m": "model_in_use",
    }
    for path, code in used.items():
        problem = service.send("DELETE", path).json()
        assert (problem["status"], problem["code"]) == (409, code)
    in_process.work(service.ctx)
    before = get(service, id_)
    content = result(service, before)
    for path in used:
        service.call("DELETE", path, 204)
    assert get(service, id_) == before
    assert result(service, before) == content, "a result does not depend on its model"


def test_jobs_of_a_key_are_limited(service: InProcessApi) -> None:
    data = service.dataset()
    train(service, data)
    object.__setattr__(service.ctx, "settings", with_settings(service, jobs_in_flight=1).settings)
    create(service, data)
    body = {"model": "m", "dataset_id": data}
    problem = service.send("POST", "/v1/batch-predictions", json=body).json()
    assert (problem["status"], problem["code"]) == (429, "too_many_jobs")


def test_a_lost_result_file_is_reported_as_missing(service: InProcessApi) -> None:
    data = service.dataset()
    train(service, data)
    prediction = finished(service, data)
    (stored,) = service.storage.files("predictions")
    service.storage.delete(stored.key)
    problem = service.send("GET", f"/v1/batch-predictions/{prediction['id']}/result").json()
    assert (problem["status"], problem["code"]) == (503, "file_missing")


def test_an_unavailable_storage_is_reported_as_unavailable(service: InProcessApi) -> None:
    from app.storage import StorageUnavailableError

    data = service.dataset()
    train(service, data)
    prediction = finished(service, data)

    def fail(_call: str) -> None:
        raise StorageUnavailableError("test")

    service.storage.before = fail
    problem = service.send("GET", f"/v1/batch-predictions/{prediction['id']}/result").json()
    assert (problem["status"], problem["code"]) == (503, "storage_unavailable")
    assert get(service, prediction["id"]) == prediction, "reading the row needs no storage"


def test_a_key_for_predictions_can_create_and_cancel_but_not_read(service: InProcessApi) -> None:
    data = service.dataset()
    train(service, data)
    key = service.call("POST", "/v1/api-keys", 201, json={"name": "p", "scopes": ["predict"]})
    headers = {"Authorization": f"Bearer {key['secret']}"}
    body = {"model": "m", "dataset_id": data}
    created = service.send("POST", "/v1/batch-predictions", json=body, headers=headers)
    path = f"/v1/batch-predictions/{created.json()['id']}"
    assert created.status_code == 202
    assert service.send("POST", f"{path}/cancel", headers=headers).status_code == 202
    assert service.send("GET", path, headers=headers).status_code == 403
    assert service.send("GET", f"{path}/result", headers=headers).status_code == 403
