"""A storage that is slow, full, read-only or absent affects only what needs it."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from typing import Any

import in_process
import pytest
import rows
from in_process_api import InProcessApi
from waiting import LIMIT_SECONDS, wait_for

from app.serving import loaded_models
from app.storage import StorageUnavailableError
from app.storage.interface import UNAVAILABLE_ERRNOS
from app.threads import STORAGE
from workers import job_process

OCTETS = {"Content-Type": "application/octet-stream"}
MAIL = {"Content-Type": "message/rfc822"}
PREDICT = {"instances": [{"text": "an invoice"}]}
MESSAGE = b"Message-ID: <1@example.org>\r\n\r\nmy invoice is wrong\r\n"


class Hold:
    """Makes calls to a storage wait until it is released."""

    def __init__(self, service: InProcessApi) -> None:
        self.waiting = 0
        self._lock = threading.Lock()
        self._released = threading.Event()
        service.storage.before = self._wait

    def _wait(self, _call: str) -> None:
        with self._lock:
            self.waiting += 1
        assert self._released.wait(LIMIT_SECONDS)

    def release(self) -> None:
        """Let all calls continue."""
        self._released.set()


@pytest.fixture
def hold(service: InProcessApi) -> Iterator[Callable[[], Hold]]:
    """Holds the storage when it is called. The end of the test releases it."""
    holds: list[Hold] = []

    def begin() -> Hold:
        holds.append(Hold(service))
        return holds[-1]

    yield begin
    for each in holds:
        each.release()


def test_a_held_storage_delays_only_requests_that_need_it(
    service: InProcessApi, hold: Callable[[], Hold], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded_models, "WAIT_SECONDS", LIMIT_SECONDS)
    monkeypatch.setattr(STORAGE, "wait_seconds", LIMIT_SECONDS)
    dataset = service.dataset()
    service.train(dataset, "loaded")
    service.train(dataset, "cold")
    service.call("POST", "/v1/models/loaded/predict", 200, json=PREDICT)
    waiting = [service.call("POST", "/v1/datasets", 201, json={"name": "d"})["id"] for _ in range(20)]
    unused = service.call("POST", "/v1/datasets", 201, json={"name": "d"})["id"]
    hold_ = hold()
    requests: list[tuple[str, str, dict[str, Any]]] = [
        *[("GET", f"/v1/datasets/{dataset}/examples", {})] * 30,
        *[("POST", "/v1/models/cold/predict", {"json": PREDICT})] * 50,
        *(("PUT", f"/v1/datasets/{id_}/content", {"content": b"x", "headers": OCTETS}) for id_ in waiting),
    ]
    started = [service.start(method, path, **options) for method, path, options in requests]
    wait_for(
        lambda: True if hold_.waiting >= STORAGE.size + 1 else None,
        what="the threads that wait for the storage",
    )
    for path in ("/v1/models", "/v1/models/cold", f"/v1/datasets/{dataset}", "/v1/training-jobs"):
        service.call("GET", path, 200)
    service.call("POST", "/v1/models/loaded/predict", 200, json=PREDICT)
    service.call("GET", "/v1/models/loaded/versions/1/evaluation", 200)
    body = {"dataset_id": dataset, "configurations": [{"learner": {"algorithm": "naive_bayes"}}]}
    service.call("POST", "/v1/experiments", 202, json=body)
    service.call("POST", "/v1/datasets", 201, json={"name": "another"})
    service.call("DELETE", f"/v1/datasets/{unused}", 204)
    hold_.release()
    for request in started:
        response = request.result(LIMIT_SECONDS)
        assert response.status_code in (200, 202, 503)
        if response.status_code == 503:
            assert response.json()["code"] == "storage_unavailable"
            assert int(response.headers["retry-after"]) > 0
    assert {request.result().status_code for request in started[:30]} == {200}


def test_a_slow_deletion_does_not_delay_the_response(
    service: InProcessApi, hold: Callable[[], Hold], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.storage.deletion.WAIT_SECONDS", 0.01)
    datasets = [service.dataset() for _ in range(2)]
    files = list(service.storage.files("datasets"))
    hold_ = hold()
    for dataset in datasets:
        service.call("DELETE", f"/v1/datasets/{dataset}", 204)
    hold_.release()
    assert len(files) == 2
    folder = service.storage.root / "datasets"
    wait_for(lambda: True if not list(folder.iterdir()) else None, what="the deletion of the files")


def fail_with(service: InProcessApi, error: OSError, *calls: str) -> None:
    """Make calls to the storage fail; all calls if none is named."""

    def fail(call: str) -> None:
        if not calls or call in calls:
            raise error

    service.storage.before = fail


def test_a_failure_after_the_commit_does_not_change_the_response(service: InProcessApi) -> None:
    dataset = service.dataset()
    for _ in range(2):
        service.train(dataset)
    service.call("PUT", "/v1/models/m/aliases/live", 200, json={"version": 2})
    failed = service.call("POST", "/v1/datasets", 201, json={"name": "failed"})["id"]
    service.call("PUT", f"/v1/datasets/{failed}/content", 202, content=b"bad", headers=OCTETS)
    in_process.work(service.ctx)
    fail_with(service, StorageUnavailableError("gone"), "delete", "files")
    service.call("PUT", f"/v1/datasets/{failed}/content", 202, content=b"bad", headers=OCTETS)
    body = {"dataset_id": dataset, "configurations": [{"learner": {"algorithm": "naive_bayes"}}]}
    first = service.call("POST", "/v1/experiments", 202, json=body, headers={"Idempotency-Key": "k"})
    again = service.call("POST", "/v1/experiments", 202, json=body, headers={"Idempotency-Key": "k"})
    assert again == first
    assert len(service.call("GET", "/v1/experiments", 200)["items"]) == 1
    service.call("POST", f"/v1/experiments/{first['id']}/cancel", 202)
    in_process.work(service.ctx)
    service.call("DELETE", "/v1/models/m/versions/1", 204)
    service.call("DELETE", "/v1/models/m", 204)
    service.call("DELETE", f"/v1/datasets/{failed}", 204)
    service.call("DELETE", f"/v1/datasets/{dataset}", 204)
    assert service.call("GET", "/v1/models", 200)["items"] == []


def test_every_error_of_an_unavailable_storage_returns_503_and_repeats_the_job(service: InProcessApi) -> None:
    body = {"name": "d", "examples": [{"text": "x", "labels": ["a"]}]}
    created = service.call("POST", "/v1/datasets", 201, json=body)
    claim = rows.claimed(service.ctx.db, in_process.queued(service.ctx)[0], "wrk_test", seconds=60)
    for number in sorted(UNAVAILABLE_ERRNOS):
        fail_with(service, OSError(number, errno.errorcode[number]))
        response = service.send("POST", "/v1/datasets", json=body)
        assert (response.status_code, response.json()["code"]) == (503, "storage_unavailable")
        with pytest.raises(OSError, match=errno.errorcode[number]):
            job_process._run(service.ctx, claim)
    assert service.call("GET", f"/v1/datasets/{created['id']}", 200)["state"] == "ingesting"
    assert len(service.call("GET", "/v1/datasets", 200)["items"]) == 1
    # An error that does not come from the storage is a bug, which a retry would only repeat.
    error = FileNotFoundError(errno.ENOENT, "a bug")
    fail_with(service, error, "local")
    job_process._run(service.ctx, claim)
    ended = service.call("GET", f"/v1/datasets/{created['id']}", 200)
    assert ended["error"]["code"] == "internal_error"


def test_an_absent_folder_returns_503_repeats_jobs_and_stays_absent(service: InProcessApi) -> None:
    dataset = service.dataset()
    service.train(dataset)
    router = {"model": "m", "fallback": "desk"}
    service.call("PUT", "/v1/routers/r", 200, json=router)
    # This request uses the new router. Afterwards nothing loads the version again by itself.
    service.call("POST", "/v1/models/m/predict", 200, json=PREDICT)
    service.forget_versions()
    body = {"dataset_id": dataset, "model": "later", "learner": {"algorithm": "naive_bayes"}}
    service.call("POST", "/v1/training-jobs", 202, json=body)
    claim = rows.claimed(service.ctx.db, in_process.queued(service.ctx)[0], "wrk_test", seconds=60)
    artifact = service.send("GET", "/v1/models/m/versions/1/artifact").content
    inline = {"name": "d", "examples": [{"text": "x", "labels": ["a"]}]}
    empty = service.call("POST", "/v1/datasets", 201, json={"name": "d"})["id"]
    root = service.storage.root
    away = root.with_name("away")
    root.rename(away)
    for mount_point in (False, True):
        if mount_point:
            root.mkdir()
        for method, path, options in (
            ("POST", "/v1/datasets", {"json": inline}),
            ("PUT", f"/v1/datasets/{empty}/content", {"content": b"x", "headers": OCTETS}),
            ("GET", f"/v1/datasets/{dataset}/examples", {}),
            ("GET", "/v1/models/m/versions/1/artifact", {}),
            ("POST", "/v1/models/copy/versions", {"content": artifact, "headers": OCTETS}),
            ("POST", "/v1/models/m/predict", {"json": PREDICT}),
            # The message is not lost: the client sends it again, and then it is not misrouted.
            ("POST", "/v1/routers/r/messages", {"content": MESSAGE, "headers": MAIL}),
        ):
            response = service.send(method, path, **options)
            assert (response.status_code, response.json()["code"]) == (503, "storage_unavailable"), (
                response.text
            )
            assert int(response.headers["retry-after"]) > 0
        with pytest.raises(StorageUnavailableError):
            job_process._run(service.ctx, claim)
        assert not mount_point or list(root.iterdir()) == []
    root.rmdir()
    away.rename(root)
    job_process._run(service.ctx, claim)
    service.call("POST", "/v1/models/later/predict", 200, json=PREDICT)
    service.call("POST", "/v1/datasets", 201, json=inline)
