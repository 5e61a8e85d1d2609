"""Data sets that are made from other data sets over HTTP."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import in_process
import pytest
from contract import problem_of
from in_process_api import InProcessApi, api

from app.db import tables
from models.data.export import export_jsonl
from models.data.store import StoredExamples

OCTETS = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    """The API. All tests of this file share it."""
    folder = tmp_path_factory.mktemp("api")
    with pytest.MonkeyPatch.context() as patch, api(folder, migrated_sqlite, patch) as service:
        yield service


def text(id_: str | None, *labels: str, **fields: Any) -> dict[str, Any]:
    return {**({"id": id_} if id_ else {}), "text": f"text {id_}", "labels": list(labels), **fields}


def create(service: InProcessApi, **body: Any) -> dict[str, Any]:
    """Create a data set, let a worker make it, and return it."""
    created = service.call("POST", "/v1/datasets", 201, json={"name": "new", **body})
    in_process.work(service.ctx)
    dataset: dict[str, Any] = service.call("GET", f"/v1/datasets/{created['id']}", 200)
    return dataset


def ready(service: InProcessApi, **body: Any) -> dict[str, Any]:
    dataset = create(service, **body)
    assert dataset["state"] == "ready", dataset["error"]
    return dataset


def examples_of(service: InProcessApi, dataset: dict[str, Any]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = service.call("GET", f"/v1/datasets/{dataset['id']}/examples", 200)["items"]
    return items


def test_a_data_set_is_filtered_and_appended_to(service: InProcessApi) -> None:
    first = service.dataset([text("1", "spam"), text("2", "billing", split="test"), text("3", "shipping")])
    second = service.dataset([text("3", "billing"), text("4")])
    request = {
        "datasets": [first, second],
        "filter": {"without_labels": ["spam"], "labelled": True},
        "repeated_ids": "last",
    }
    body = {"derive": request, "examples": [text(None, "returns"), text("2", "refunds", split="test")]}
    dataset = ready(service, **body, rename_labels={"shipping": "delivery"}, description="d")
    assert [(item["id"], item["labels"], item.get("split")) for item in examples_of(service, dataset)] == [
        ("3", ["billing"], None),
        (f"{dataset['id']}-1", ["returns"], None),
        ("2", ["refunds"], "test"),
    ]
    lineage = dataset["lineage"]
    assert [
        (entry["dataset_id"], entry["n_examples"], entry["n_filtered"], entry["n_replaced"], entry["n_used"])
        for entry in lineage.pop("datasets")
    ] == [(first, 3, 1, 2, 0), (second, 2, 1, 0, 1)]
    assert lineage == {
        "n_appended": 2,
        "filter": request["filter"],
        "repeated_ids": "last",
        "rename_labels": {"shipping": "delivery"},
    }
    assert (dataset["n_examples"], dataset["kind"], dataset["splits"]["test"]) == (3, "text", 1)
    assert any(warning.startswith("labels in rename_labels") for warning in dataset["warnings"])


def test_the_digest_is_that_of_the_examples(service: InProcessApi) -> None:
    parent = service.dataset()
    copies = [ready(service, derive={"datasets": [parent]}) for _ in range(2)]
    other = ready(service, derive={"datasets": [parent], "filter": {"splits": ["train"]}})
    with service.ctx.db.read() as session:
        key = session.get_one(tables.Dataset, copies[0]["id"]).storage_key
    assert key is not None
    out = io.BytesIO()
    export_jsonl(StoredExamples(service.ctx.storage.local(key)), out)
    digest = hashlib.sha256(out.getvalue()).hexdigest()
    assert [dataset["sha256"] for dataset in copies] == [digest, digest]
    assert copies[0]["size_bytes"] == len(out.getvalue())
    assert other["sha256"] != digest
    assert (
        copies[0]["lineage"]["datasets"][0]["sha256"]
        == service.call("GET", f"/v1/datasets/{parent}", 200)["sha256"]
    )


def test_a_model_can_be_trained_on_a_derived_data_set(service: InProcessApi) -> None:
    dataset = ready(
        service, derive={"datasets": [service.dataset()], "filter": {"splits": ["train", "test"]}}
    )
    job = service.train(dataset["id"])
    assert service.call("GET", f"/v1/training-jobs/{job['id']}", 200)["state"] == "succeeded"
    version = service.call("GET", "/v1/models/m/versions/1", 200)
    assert (version["dataset_id"], version["dataset_sha256"]) == (dataset["id"], dataset["sha256"])


def test_a_parent_cannot_be_deleted_while_a_data_set_is_made_from_it(service: InProcessApi) -> None:
    parent = service.dataset([text("1", "x")])
    child = service.call("POST", "/v1/datasets", 201, json={"name": "c", "derive": {"datasets": [parent]}})
    assert child["state"] == "ingesting"
    problem = problem_of(service.send("DELETE", f"/v1/datasets/{parent}"), 409, "dataset_in_use")
    assert child["id"] in problem["detail"]
    in_process.work(service.ctx)
    service.call("DELETE", f"/v1/datasets/{parent}", 204)
    dataset = service.call("GET", f"/v1/datasets/{child['id']}", 200)
    assert [item["id"] for item in examples_of(service, dataset)] == ["1"]
    assert dataset["lineage"]["datasets"][0] == {
        **child["lineage"]["datasets"][0],
        "n_filtered": 0,
        "n_replaced": 0,
        "n_used": 1,
    }
    assert dataset["lineage"]["datasets"][0]["name"] == "inline"


def test_a_failed_derivation_releases_its_parents_and_accepts_no_content(service: InProcessApi) -> None:
    parent = service.dataset([text("1", "x")])
    dataset = create(service, derive={"datasets": [parent], "filter": {"labels": ["y"]}})
    assert dataset["state"] == "failed"
    assert "no example meets the conditions" in dataset["error"]["detail"]
    content = service.send("PUT", f"/v1/datasets/{dataset['id']}/content", content=b"x", headers=OCTETS)
    problem_of(content, 409, "dataset_has_content")
    service.call("DELETE", f"/v1/datasets/{parent}", 204)
    service.call("DELETE", f"/v1/datasets/{dataset['id']}", 204)


def test_an_id_in_two_data_sets_is_an_error_by_default(service: InProcessApi) -> None:
    parents = [service.dataset([text("7", "x")]), service.dataset([text("7", "x")])]
    dataset = create(service, derive={"datasets": parents})
    assert dataset["state"] == "failed"
    assert f"data set {parents[0]} and data set {parents[1]} both have" in dataset["error"]["detail"]
    renumbered = ready(service, derive={"datasets": parents, "repeated_ids": "renumber"})
    assert [item["id"] for item in examples_of(service, renumbered)] == ["1", "2"]


def test_the_label_tree_is_inherited_or_replaced(service: InProcessApi) -> None:
    parents = [
        ready(service, examples=[text("1", "a")], label_tree={"a": "top"})["id"],
        ready(service, examples=[text("2", "b")], label_tree={"b": "top"})["id"],
        ready(service, examples=[text("3", "b")], label_tree={"b": "other"})["id"],
    ]
    both = ready(service, derive={"datasets": parents[:2]})
    assert both["label_tree"] == {"a": "top", "b": "top"}
    assert [item["labels"] for item in examples_of(service, both)] == [["a", "top"], ["b", "top"]]
    body: dict[str, Any] = {"name": "c", "derive": {"datasets": parents}}
    response = service.send("POST", "/v1/datasets", json=body)
    problem = problem_of(response, 422, "invalid_parameters", "/derive/datasets")
    assert "'b' has the parent 'top' in data set" in problem["detail"]
    replaced = ready(service, derive=body["derive"], label_tree={"b": "top"})
    assert replaced["label_tree"] == {"b": "top"}
    assert "label_tree" not in ready(service, derive=body["derive"], label_tree={})
    renamed = {**body, "derive": {"datasets": parents[:1]}, "rename_labels": {"a": "c"}}
    response = service.send("POST", "/v1/datasets", json=renamed)
    problem_of(response, 422, "invalid_parameters", "/rename_labels")
    moved = ready(service, **{**renamed, "label_tree": {"c": "top"}})
    assert [item["labels"] for item in examples_of(service, moved)] == [["c", "top"]]


def test_a_wrong_request_is_rejected_at_its_place(service: InProcessApi) -> None:
    texts = service.dataset([text("1", "x")])
    numbers = service.dataset([{"features": {"f": 1.0}, "labels": ["x"]}])
    waiting = service.call("POST", "/v1/datasets", 201, json={"name": "waiting"})["id"]
    cases: list[tuple[dict[str, Any], int, str, str]] = [
        ({"datasets": []}, 422, "invalid_request", "/derive/datasets"),
        ({"datasets": ["ds_missing"]}, 404, "not_found", "/derive/datasets/0"),
        ({"datasets": [texts, waiting]}, 409, "dataset_not_ready", "/derive/datasets/1"),
        ({"datasets": [texts, numbers]}, 422, "invalid_parameters", "/derive/datasets/1"),
        ({"datasets": [texts, texts]}, 422, "invalid_request", "/derive"),
        ({"datasets": [texts], "filter": {}}, 422, "invalid_request", "/derive/filter"),
        (
            {"datasets": [texts], "filter": {"splits": ["dev"]}},
            *(422, "invalid_request", "/derive/filter/splits/0"),
        ),
        ({"datasets": [texts], "repeated_ids": "first"}, 422, "invalid_request", "/derive/repeated_ids"),
        ({"datasets": [numbers]}, 422, "invalid_parameters", "/examples/0"),
    ]
    for derive, status, code, pointer in cases:
        body = {"name": "x", "derive": derive, "examples": [text(None, "x")]}
        problem_of(service.send("POST", "/v1/datasets", json=body), status, code, pointer)


def test_a_derived_data_set_has_no_format(service: InProcessApi) -> None:
    parent = service.dataset([text("1", "x")])
    for fields in ({"format": "csv"}, {"max_bad_records": 1}, {"options": {"format": "jsonl"}}):
        body = {"name": "x", "derive": {"datasets": [parent]}, **fields}
        problem_of(service.send("POST", "/v1/datasets", json=body), 422, "invalid_request", "")


def test_lists_omit_the_lineage(service: InProcessApi) -> None:
    dataset = ready(service, derive={"datasets": [service.dataset([text("1", "x")])]})
    assert "lineage" in dataset
    assert all("lineage" not in item for item in service.call("GET", "/v1/datasets", 200)["items"])
