"""Storage that is away, read-only, slow, or has lost a file."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import fault_injection
import httpx
from stack import BYTES

from benchmarks.attack.harness import (
    BODY,
    FALLBACK,
    MODEL,
    PREDICT,
    QUICK,
    ROUTER,
    TEXT,
    Result,
    Service,
    Targets,
    at_the_same_time,
    attack,
    expect,
    holds,
    job_state,
    until,
    within,
)

MESSAGE = {"email": {"subject": "Invoice", "text": TEXT}}
WAITING = ("queued", "running")
PAUSE_SECONDS = 8.0
"""Time for which the storage is away."""


def _requests_while_away(service: Service) -> Iterator[Result]:
    yield expect("status of a prediction", service.post(PREDICT, json=BODY).status_code, 200)
    waiting = service.stack.call("POST", "/v1/datasets", 201, json={"name": "later"})
    path = f"/v1/datasets/{waiting['id']}/content"
    response = service.request("PUT", path, content=b"{}\n", headers=BYTES)
    yield expect("status of an upload", response.status_code, 503)
    # The result of a check of the storage is reused for up to 10 s.
    seconds = until(lambda: service.get("/health/ready").status_code == 503, "readiness to fail", 30)
    yield holds("readiness returns 503", seconds < 30, f"after {seconds:.1f} s")


def _experiment(service: Service) -> httpx.Response:
    request = {
        "dataset_id": service.dataset,
        "configurations": [{"learner": QUICK}],
        "split": {"kind": "given"},
    }
    return service.post("/v1/experiments", json=request)


def _recover(service: Service, kind: str, job: str) -> Iterator[Result]:
    seconds = until(lambda: job_state(service, kind, job) not in WAITING, f"the end of {job}", 120)
    ended = service.stack.call("GET", f"/v1/{kind}/{job}", 200)
    yield holds(f"the {kind} succeeded", ended["state"] == "succeeded", ended.get("error", ended["state"]))
    yield within(f"time until the {kind} ended", seconds, 60.0)


@attack("a storage folder that goes away and comes back")
def folder_away(targets: Targets) -> Iterator[Result]:
    """Rename the folder: its disk is not mounted."""
    with targets.new() as service:
        service.prepare()
        service.post(PREDICT, json=BODY)
        folder = service.stack.data / "storage"
        folder.rename(folder.with_name("elsewhere"))
        yield from _requests_while_away(service)
        job = service.stack.train(service.dataset, model="later")["id"]
        created = _experiment(service)
        yield expect("status of a new experiment", created.status_code, 202, 503)
        n = len(list(service.stack.all("/v1/experiments")))
        yield expect("experiments", n, 1 if created.status_code == 202 else 0)
        time.sleep(PAUSE_SECONDS)
        yield expect("state of the training meanwhile", job_state(service, "training-jobs", job), *WAITING)
        yield expect("files in the place of the folder", sorted(map(str, folder.rglob("*"))), [])
        if folder.exists():
            shutil.rmtree(folder)
        folder.with_name("elsewhere").rename(folder)
        yield from _recover(service, "training-jobs", job)
        if created.status_code == 202:
            yield from _recover(service, "experiments", created.json()["id"])


@attack("a storage folder that is read-only for a while")
def read_only(targets: Targets) -> Iterator[Result]:
    """Remount the disk of the storage read-only, as Linux does after an error."""
    data = targets.new_folder() / "data"
    with fault_injection.small_disk(data / "storage", mib=64) as mounted:
        if not mounted:
            yield holds("this system can mount a disk", False)
            return
        with targets.new(data=data) as service:
            service.prepare()
            service.post(PREDICT, json=BODY)
            _remount(data / "storage", "ro")
            yield from _requests_while_away(service)
            job = service.stack.train(service.dataset, model="later")["id"]
            time.sleep(PAUSE_SECONDS)
            yield expect(
                "state of the training meanwhile", job_state(service, "training-jobs", job), *WAITING
            )
            _remount(data / "storage", "rw")
            yield from _recover(service, "training-jobs", job)


def _remount(folder: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(folder)], check=True)


def _has_another_api(service: Service, api: int) -> Callable[[], bool]:
    return lambda: service.stack.api_pids() not in ([], [api])


@attack("a version whose file is missing or damaged")
def lost_file(targets: Targets) -> Iterator[Result]:
    """Delete and damage the files of versions that are not loaded."""
    for damage in ("missing", "damaged"):
        with targets.new() as service:
            service.prepare()
            (file,) = (service.stack.data / "storage" / "artifacts").iterdir()
            if damage == "missing":
                file.unlink()
            else:
                content = bytearray(file.read_bytes())
                content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
                file.chmod(0o600)
                file.write_bytes(content)
            api = service.api
            os.kill(api, signal.SIGKILL)  # a new process has not loaded the version
            until(_has_another_api(service, api), "a new API")
            until(service.responds, "the API to respond")
            yield expect(
                f"status of a prediction, {damage}", service.post(PREDICT, json=BODY).status_code, 503
            )
            response = service.post(f"/v1/routers/{ROUTER}/message-parts", json=MESSAGE)
            yield expect(f"status of a message, {damage}", response.status_code, 200)
            if response.status_code == 200:
                yield expect(f"destinations, {damage}", response.json()["destinations"], [FALLBACK])
            # A thread of readiness looks for the files every 10 s.
            until(lambda: ROUTER in service.get("/health/ready").text, "readiness to name the router", 60)
            ready = service.get("/health/ready").text
            yield holds(f"readiness names the router, {damage}", ROUTER in ready, ready)


@attack("15 downloads of models from slow storage")
def cold_downloads(targets: Targets) -> Iterator[Result]:
    """Predict with 15 models that are not loaded; unrelated requests must not wait for the storage."""
    with targets.with_dependencies({"COVEY_MODELS_IN_MEMORY": "20"}) as (service, servers):
        service.prepare()
        artifact = service.get(f"/v1/models/{MODEL}/versions/1/artifact").content
        names = [f"cold{n}" for n in range(15)]
        for name in names:
            service.stack.call(
                "POST",
                f"/v1/models/{name}/versions",
                201,
                content=artifact,
                headers=BYTES,
            )
        service.stack.stop()
        shutil.rmtree(service.stack.data / "storage-cache")
        service.stack.start()
        dataset = service.dataset
        servers.storage.delay(6.0)

        def predict(name: str) -> int:
            with service.client() as client:
                return client.post(f"/v1/models/{name}/predict", json=BODY).status_code

        waits: list[float] = []
        began = time.monotonic()

        def read() -> None:
            with service.client() as client:
                for _ in range(20):
                    time.sleep(0.4)
                    asked = time.monotonic()
                    client.get(f"/v1/datasets/{dataset}").raise_for_status()
                    waits.append(time.monotonic() - asked)

        statuses = at_the_same_time(read, *(lambda name=name: predict(name) for name in names))[1:]
        took = time.monotonic() - began
        yield holds("the predictions waited for the storage", took > 6.0, f"{took:.1f} s")
        yield within("longest GET meanwhile", max(waits), 1.0)
        yield expect(
            "statuses of the predictions", sorted(set(map(str, statuses))), ["200"], ["200", "503"], ["503"]
        )
        servers.storage.heal()
        until(lambda: all(predict(name) == 200 for name in names), "predictions", 120)
        yield expect("statuses afterwards", {predict(name) for name in names}, {200})


@attack("experiments and replays while the bucket is away")
def bucket_away(targets: Targets) -> Iterator[Result]:
    """Create an experiment without the bucket, and repeat requests whose data set was deleted."""
    with targets.with_dependencies() as (service, servers):
        service.prepare()
        service.post(PREDICT, json=BODY)
        servers.storage.refuse()
        created = _experiment(service)
        n = len(list(service.stack.all("/v1/experiments")))
        yield expect("experiments, if the API accepted it", n, 1 if created.status_code == 202 else 0)
        yield from _requests_while_away(service)
        servers.storage.heal()
        if created.status_code == 202:
            yield from _recover(service, "experiments", created.json()["id"])
        dataset = service.stack.dataset(
            [{"text": "a b", "labels": ["x"]}, {"text": "c d", "labels": ["y"]}] * 4
        )
        request = {"dataset_id": dataset["id"], "model": "replayed", "learner": QUICK}
        headers = {"Idempotency-Key": "once"}
        first = service.post("/v1/training-jobs", json=request, headers=headers)
        service.stack.finished(first.json()["id"])
        service.stack.call("DELETE", f"/v1/datasets/{dataset['id']}", 204)
        again = service.post("/v1/training-jobs", json=request, headers=headers)
        yield expect("status of the replay", again.status_code, first.status_code)
        yield expect("id of the replay", again.json().get("id"), first.json()["id"])
