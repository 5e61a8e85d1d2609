"""An uploaded file is read again with other options as long as it is kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import in_process
import pytest
from contract import problem_of
from in_process_api import InProcessApi
from sqlalchemy import update

from app.db import tables
from app.maintenance import retention

OCTETS = {"Content-Type": "application/octet-stream"}
CONTENT = b"text,labels\nhello,sales;support\nbye,support\nhi,sales\nho,sales\n"
SEMICOLONS = {"options": {"format": "csv", "label_separator": ";"}}


def create(service: InProcessApi, **fields: Any) -> str:
    id_: str = service.call("POST", "/v1/datasets", 201, json={"name": "x", **fields})["id"]
    return id_


def upload(service: InProcessApi, dataset_id: str, content: bytes = CONTENT) -> dict[str, Any]:
    service.call("PUT", f"/v1/datasets/{dataset_id}/content", 202, content=content, headers=OCTETS)
    return read(service, dataset_id)


def read(service: InProcessApi, dataset_id: str) -> dict[str, Any]:
    in_process.work(service.ctx)
    dataset: dict[str, Any] = service.call("GET", f"/v1/datasets/{dataset_id}", 200)
    return dataset


def files(service: InProcessApi) -> list[str]:
    return [file.key for file in service.ctx.storage.files("uploads")]


def expire(service: InProcessApi) -> None:
    """Let retention run after the days for which uploads are kept."""
    with service.ctx.db.write() as tx:
        uploaded_at = tx.now - timedelta(days=service.ctx.settings.keep_uploads_days, minutes=1)
        has_upload = tables.Dataset.uploaded_at.is_not(None)
        tx.session.execute(update(tables.Dataset).where(has_upload).values(uploaded_at=uploaded_at))
    retention.delete_expired_rows(service.ctx, lambda: False)


def test_a_ready_data_set_is_read_again_with_another_separator_and_does_not_change(
    service: InProcessApi,
) -> None:
    first = upload(service, create(service))
    assert first["n_labels"] == 3
    again = read(service, create(service, from_upload=first["id"], **SEMICOLONS))
    assert again["state"] == "ready"
    assert again["n_labels"] == 2
    assert again["from_upload"] == first["id"]
    assert (again["sha256"], again["uploaded_at"]) == (first["sha256"], first["uploaded_at"])
    assert "lineage" not in again
    assert service.call("GET", f"/v1/datasets/{first['id']}", 200) == first


def test_a_failed_data_set_is_read_again_without_another_upload(service: InProcessApi) -> None:
    failed = upload(service, create(service), b"text,team\nhello,sales\nbye,support\n")
    assert failed["state"] == "failed"
    options = {"format": "csv", "labels": "team"}
    again = read(service, create(service, from_upload=failed["id"], options=options))
    assert (again["state"], again["n_labels"]) == ("ready", 2)
    # A corrected file for the failed data set does not take the file from the other one.
    assert upload(service, failed["id"])["state"] == "ready"
    third = read(service, create(service, from_upload=again["id"], options=options))
    assert third["state"] == "ready"


def test_a_requested_label_tree_stays_unless_the_request_has_another_one(service: InProcessApi) -> None:
    first = upload(service, create(service, label_tree={"sales": "all", "support": "all"}))
    inherited = read(service, create(service, from_upload=first["id"], **SEMICOLONS))
    assert inherited["label_tree"] == first["label_tree"]
    without = read(service, create(service, from_upload=inherited["id"], label_tree={}, **SEMICOLONS))
    assert "label_tree" not in without


def test_a_file_is_deleted_with_the_last_data_set_that_was_read_from_it(service: InProcessApi) -> None:
    first = upload(service, create(service))
    again = read(service, create(service, from_upload=first["id"], **SEMICOLONS))
    for id_, left in ((first["id"], 1), (again["id"], 0)):
        service.call("DELETE", f"/v1/datasets/{id_}", 204)
        assert len(files(service)) == left


def test_an_upload_is_forgotten_by_all_data_sets_after_its_days(service: InProcessApi) -> None:
    first = upload(service, create(service))
    again = create(service, from_upload=first["id"], **SEMICOLONS)
    expire(service)  # while a job reads the file
    assert read(service, again)["state"] == "ready"
    expire(service)
    for id_ in (first["id"], again):
        dataset = service.call("GET", f"/v1/datasets/{id_}", 200)
        assert dataset["state"] == "ready"
        assert "uploaded_at" not in dataset
    with service.ctx.db.read() as session:
        assert session.query(tables.Dataset).filter(tables.Dataset.upload_key.is_not(None)).count() == 0
    response = service.send("POST", "/v1/datasets", json={"name": "x", "from_upload": again})
    assert problem_of(response, 409, "upload_not_kept")["errors"][0]["pointer"] == "/from_upload"


@pytest.mark.parametrize(
    "fields", [{"examples": [{"text": "a", "labels": []}]}, {"derive": {"datasets": ["ds_1"]}}]
)
def test_an_upload_is_the_only_origin(service: InProcessApi, fields: dict[str, Any]) -> None:
    body = {"name": "x", "from_upload": "ds_1", **fields}
    problem_of(service.send("POST", "/v1/datasets", json=body), 422, "invalid_request")


def test_an_unknown_data_set_is_not_found(service: InProcessApi) -> None:
    response = service.send("POST", "/v1/datasets", json={"name": "x", "from_upload": "ds_none"})
    assert problem_of(response, 404, "not_found")["errors"][0]["pointer"] == "/from_upload"
