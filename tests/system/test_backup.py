"""A restored service returns the same responses as the original, also with another database and storage."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import bucket
import postgres
import pytest
from commands import covey
from stack import Stack, departments
from waiting import wait_for

pytestmark = pytest.mark.system

PREDICT_REQUEST = {
    "instances": [{"text": "parcel late courier"}, {"text": "refund my invoice"}, {"text": "zzz"}],
    "explain": True,
}
MESSAGE = {"email": {"subject": "Late", "text": "the courier is late with the parcel"}}


def all_responses(stack: Stack) -> dict[str, Any]:
    """Return the responses of the service about all its resources."""
    paths = ["models/helpdesk/versions", "datasets", "training-jobs", "routers", "routers/desk/decisions"]
    return {
        **{path: stack.call("GET", f"/v1/{path}", 200) for path in paths},
        "predictions": stack.http.post("/v1/models/helpdesk/predict", json=PREDICT_REQUEST).content,
        "artifact": stack.http.get("/v1/models/helpdesk/versions/1/artifact").content,
    }


@pytest.fixture
def targets(postgres_server: postgres.PostgresServer, tmp_path: Path) -> Iterator[list[dict[str, str]]]:
    """Yield the settings of the services that the backup is restored to."""
    with bucket.server(tmp_path / "bucket.log") as buckets:
        database = postgres_server.create()
        bucket_url = buckets.create()
        yield [
            {},
            {"COVEY_DATABASE_URL": database, "COVEY_STORAGE_URL": bucket_url, **bucket.CREDENTIALS},
        ]
        postgres_server.drop(database)


def test_a_restored_service_returns_the_same_responses(
    killable_stack: Stack, targets: list[dict[str, str]], tmp_path: Path
) -> None:
    stack = killable_stack
    dataset = stack.dataset(departments(80))
    stack.finished(stack.train(dataset["id"], model="helpdesk")["id"])
    stack.call("PUT", "/v1/routers/desk", 200, json={"model": "helpdesk", "fallback": "front@example.org"})
    decision = stack.call("POST", "/v1/routers/desk/message-parts", 200, json=MESSAGE)
    before = all_responses(stack)

    file = tmp_path / "covey.tar.zst"
    backup = covey("backup", str(file), "--data", str(stack.data))
    assert backup.returncode == 0, backup.stderr
    assert backup.stdout.startswith("backed up: "), backup.stdout

    for n, settings in enumerate(targets):
        data = tmp_path / f"restored-{n}"
        restore = covey("restore", str(file), "--data", str(data), environment=settings)
        assert restore.returncode == 0, restore.stderr
        restored_stack = Stack(data, settings).start()
        try:
            assert all_responses(restored_stack) == before, settings
            again = restored_stack.call("POST", "/v1/routers/desk/message-parts", 200, json=MESSAGE)
            assert again == decision
            # The restored service continues the version numbers.
            job = restored_stack.finished(restored_stack.train(dataset["id"], model="helpdesk")["id"])
            assert job["result"]["version"] == 2
        finally:
            assert restored_stack.stop() == 0
        second_restore = covey("restore", str(file), "--data", str(data), environment=settings)
        assert second_restore.returncode == 1
        assert "the database is not empty" in second_restore.stderr


def test_backups_succeed_while_data_sets_are_uploaded_and_deleted(
    killable_stack: Stack, tmp_path: Path
) -> None:
    stopped = threading.Event()
    rounds = 0

    def upload_and_delete() -> None:
        nonlocal rounds
        while not stopped.is_set():
            kept = killable_stack.dataset(departments(20))
            deleted = killable_stack.dataset(departments(20))
            killable_stack.call("DELETE", f"/v1/datasets/{deleted['id']}", 204)
            if rounds % 2:
                killable_stack.call("DELETE", f"/v1/datasets/{kept['id']}", 204)
            rounds += 1

    def wait_for_next_round(before: int) -> None:
        wait_for(lambda: rounds > before or busy.done() or None, what="data sets to be uploaded and deleted")

    with ThreadPoolExecutor() as executor:
        busy = executor.submit(upload_and_delete)
        for n in range(3):
            wait_for_next_round(rounds)
            result = covey("backup", str(tmp_path / f"{n}.tar.zst"), "--data", str(killable_stack.data))
            assert result.returncode == 0, result.stderr
        stopped.set()
        busy.result()
    for n in range(3):
        restored = tmp_path / f"restored-{n}"
        covey("restore", str(tmp_path / f"{n}.tar.zst"), "--data", str(restored), check=True)
        with sqlite3.connect(restored / "covey.db") as connection:
            keys = connection.execute(
                "SELECT coalesce(storage_key, upload_key) FROM datasets WHERE state IN ('ready', 'ingesting')"
            ).fetchall()
        assert keys
        assert all((restored / "storage" / key).is_file() for (key,) in keys)
