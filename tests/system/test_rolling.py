"""Stopping and restarting processes under load: no client notices."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from functools import partial

import httpx
import production
import pytest
from continuous_load import Load
from stack import BYTES, Stack, departments
from waiting import LIMIT_SECONDS, wait_for

pytestmark = [pytest.mark.faults, pytest.mark.system]


def api_pid(stack: Stack) -> int:
    (pid,) = stack.api_pids()
    return pid


def test_a_stopping_process_is_not_ready_finishes_requests_and_closes_connections(
    killable_stack: Stack,
) -> None:
    dataset = killable_stack.call("POST", "/v1/datasets", 201, json={"name": "slow", "format": "jsonl"})
    finish_upload, statuses = threading.Event(), []

    def slow_content() -> Iterator[bytes]:
        yield b'{"text": "one", "labels": ["a"]}\n'
        finish_upload.wait(LIMIT_SECONDS)
        yield b'{"text": "two", "labels": ["b"]}\n'

    with (
        production.api(killable_stack.data, COVEY_DRAIN_SECONDS="10") as (process, url),
        httpx.Client(base_url=url, timeout=LIMIT_SECONDS, trust_env=False) as client,
    ):

        def upload() -> None:
            path = f"{url}/v1/datasets/{dataset['id']}/content"
            content = slow_content()
            response = httpx.put(path, content=content, headers=BYTES, timeout=LIMIT_SECONDS, trust_env=False)
            statuses.append(response.status_code)

        uploading = threading.Thread(target=upload)
        uploading.start()
        assert client.get("/health/ready").status_code == 200  # on a connection that stays open
        process.terminate()

        def not_ready() -> httpx.Response | None:
            response = client.get("/health/ready")
            return response if response.status_code == 503 else None

        response = wait_for(not_ready, what="the process to be not ready")
        assert response.json()["detail"] == "this process is shutting down"
        assert response.headers["connection"] == "close"
        # It still responds, also on new connections.
        response = client.get("/v1/models")
        assert response.status_code == 200
        assert response.headers["connection"] == "close"
        assert process.poll() is None
        finish_upload.set()
        uploading.join()
        assert statuses == [202]
        process.wait(LIMIT_SECONDS)


def test_an_event_stream_continues_in_the_next_process(killable_stack: Stack) -> None:
    stack = killable_stack
    dataset = stack.dataset(departments(40))
    hold = stack.hold()
    job = stack.train(dataset["id"])
    hold.wait()
    path, headers = f"/v1/training-jobs/{job['id']}/events", {"Accept": "text/event-stream"}
    ids: list[int] = []
    with stack.http.stream("GET", path, headers=headers) as response:
        for line in response.iter_lines():
            if line.startswith("id: "):
                ids.append(int(line.removeprefix("id: ")))
            if len(ids) == 1:
                os.kill(api_pid(stack), signal.SIGTERM)
    wait_for(lambda: stack.is_ready() or None, what="the next process")
    hold.release()
    headers["Last-Event-ID"] = str(ids[-1])
    with stack.http.stream("GET", path, headers=headers) as response:
        ids += [int(line.removeprefix("id: ")) for line in response.iter_lines() if line.startswith("id: ")]
    assert ids == list(range(1, len(ids) + 1))
    assert stack.job(job["id"])["state"] == "succeeded"


def test_a_rolling_restart_under_load_loses_no_request_and_no_job(killable_stack: Stack) -> None:
    stack = killable_stack
    dataset = stack.dataset(departments(40))
    stack.finished(stack.train(dataset["id"], model="served")["id"])
    # Each old worker releases the running job; the third attempt finishes it.
    holds = [stack.hold(attempt=attempt, model="trained") for attempt in (1, 2)]
    job = stack.train(dataset["id"], model="trained")
    load = Load(stack.url, clients=4)
    try:
        for hold in holds:
            hold.wait()
            api, worker = api_pid(stack), stack.worker_pids()
            before = load.responses
            os.kill(stack.pid, signal.SIGHUP)

            def restarted(api: int = api, worker: list[int] = worker) -> bool | None:
                new = stack.api_pids()
                one_new_api = len(new) == 1 and new != [api]
                return (
                    True
                    if one_new_api and len(stack.worker_pids()) == 1 and stack.worker_pids() != worker
                    else None
                )

            wait_for(restarted, what="a new API and a new worker")
            wait_for(partial(load.has_responses, before + 20), what="responses of the new API")
    finally:
        load.stop()
    assert load.failures == []
    ended = stack.finished(job["id"])
    assert (ended["state"], ended["attempt"]) == ("succeeded", 3)
    assert stack.call("GET", "/v1/models/trained", 200)["versions"] == 1
