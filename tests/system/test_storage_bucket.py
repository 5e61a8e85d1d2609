"""The main workflow with its files in a bucket."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bucket
import pytest
from stack import BYTES, Stack, departments
from waiting import wait_for

from app.settings import Settings
from app.storage import open_storage

pytestmark = pytest.mark.system

FOLDS = {"kind": "folds", "folds": 2}
REQUEST = {"instances": [{"text": "parcel late courier delivery"}], "explain": True}


@pytest.fixture
def buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[bucket.BucketServer]:
    for name, value in bucket.CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with bucket.server(tmp_path / "bucket.log") as server:
        yield server


def run_experiment(stack: Stack, dataset_id: str) -> dict[str, Any]:
    learner = {"algorithm": "mp_boost", "rounds": 3}
    body = {"dataset_id": dataset_id, "configurations": [{"learner": learner}], "split": FOLDS}
    path = f"/v1/experiments/{stack.call('POST', '/v1/experiments', 202, json=body)['id']}"

    def ended() -> dict[str, Any] | None:
        experiment: dict[str, Any] = stack.call("GET", path, 200)
        return experiment if experiment["state"] not in ("queued", "running") else None

    return wait_for(ended, what="the experiment")


def test_the_service_stores_its_files_in_a_bucket(buckets: bucket.BucketServer, tmp_path: Path) -> None:
    url = buckets.create()
    stack = Stack(tmp_path / "data", {"COVEY_STORAGE_URL": url}).start()
    try:
        storage = open_storage(Settings(data_dir=tmp_path / "inspection", storage_url=url))
        dataset = stack.dataset(departments(80))
        assert [file.key.split("/")[0] for file in storage.all_files()] == ["datasets", "uploads"]
        assert len(stack.call("GET", f"/v1/datasets/{dataset['id']}/examples?limit=5", 200)["items"]) == 5
        ended = stack.finished(stack.train(dataset["id"], model="kept")["id"])
        assert ended["state"] == "succeeded", ended
        before = stack.http.post("/v1/models/kept/predict", json=REQUEST)
        assert before.status_code == 200
        assert run_experiment(stack, dataset["id"])["state"] == "succeeded"
        # The worker deletes the files that cells shared after the commit that ends the experiment.
        wait_for(lambda: not list(storage.files("shared")), what="the deletion of shared files")

        # The service needs no file of this machine.
        assert stack.stop() == 0
        shutil.rmtree(stack.data / "storage-cache")
        assert not (stack.data / "storage").exists()
        stack.start()
        assert stack.http.post("/v1/models/kept/predict", json=REQUEST).content == before.content
        artifact = stack.http.get("/v1/models/kept/versions/1/artifact").content
        stack.call("POST", "/v1/models/copy/versions", 201, content=artifact, headers=BYTES)

        stack.call("DELETE", f"/v1/datasets/{dataset['id']}", 204)
        assert {file.key.split("/")[0] for file in storage.all_files()} == {"artifacts", "experiments"}

        # If the bucket is unavailable, only requests that need it fail.
        buckets.process.send_signal(signal.SIGKILL)
        buckets.process.wait()
        assert stack.http.post("/v1/models/kept/predict", json=REQUEST).content == before.content
        created = stack.call("POST", "/v1/datasets", 201, json={"name": "later"})
        problem = stack.call(
            "PUT", f"/v1/datasets/{created['id']}/content", 503, content=b"{}\n", headers=BYTES
        )
        assert problem["code"] == "storage_unavailable"
        assert stack.call("GET", f"/v1/datasets/{created['id']}", 200)["state"] == "awaiting_content"
    finally:
        assert stack.stop() == 0
