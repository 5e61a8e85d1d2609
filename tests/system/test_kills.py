"""If a process is killed during a training, the job still ends once and creates one version."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable

import pytest
from stack import Stack, departments
from waiting import wait_for

pytestmark = pytest.mark.system

LEARNER = {"algorithm": "adaboost_lc", "rounds": 20}


def event_types(stack: Stack, job_id: str) -> list[str]:
    return [event["type"] for event in stack.call("GET", f"/v1/training-jobs/{job_id}/events", 200)["items"]]


@pytest.mark.parametrize(
    ("own_stack", "target"),
    [
        ({}, "job"),
        # The worker survives and keeps the lease of the lost job until the lease expires. A busy machine must
        # not lose the lease of the next attempt.
        ({"COVEY_LEASE_SECONDS": "10"}, "pool"),
        ({}, "maintenance"),
        ({}, "guard"),
        ({}, "worker"),
        ({}, "broker"),
        ({}, "api"),
        ({}, "everything"),
    ],
    indirect=["own_stack"],
)
def test_a_training_succeeds_once_if_a_process_is_killed(own_stack: Stack, target: str) -> None:
    stack = own_stack
    dataset = stack.dataset(departments(80))
    with stack.hold(step=7) as hold:
        job = stack.train(dataset["id"], model="killed", learner=LEARNER)
        process = hold.wait()
        (worker,) = stack.worker_pids()
        find: dict[str, Callable[[], list[int]]] = {
            "job": lambda: [process],
            "pool": lambda: stack.worker_parts(worker, "pool"),
            "maintenance": lambda: stack.worker_parts(worker, "maintenance"),
            "guard": lambda: stack.worker_parts(worker, "guard"),
            "worker": lambda: [worker],
            "broker": lambda: stack.processes("valkey-server"),
            "api": stack.api_pids,
            "everything": lambda: [*stack.processes(""), stack.pid],
        }
        pids = find[target]()
        assert pids
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        if target == "everything":
            stack.reap()
            stack.start()
        else:
            wait_for(lambda: stack.is_ready() or None, what="the service to be ready")

    ended_job = stack.finished(job["id"])
    assert ended_job["state"] == "succeeded", ended_job
    assert ended_job["result"]["version"] == 1
    assert stack.call("GET", "/v1/models/killed", 200)["versions"] == 1
    events = event_types(stack, job["id"])
    assert events.count("succeeded") == 1
    if target in ("job", "pool", "worker", "everything"):
        assert ended_job["attempt"] == 2
        assert "lost" in events
    else:
        assert ended_job["attempt"] == 1


def test_a_stopped_worker_releases_its_job(own_stack: Stack) -> None:
    stack = own_stack
    dataset = stack.dataset(departments(80))
    with stack.hold() as hold:
        job = stack.train(dataset["id"], model="released", learner=LEARNER)
        hold.wait()
        (worker,) = stack.worker_pids()
        os.kill(worker, signal.SIGTERM)
        ended_job = stack.finished(job["id"])
    assert ended_job["state"] == "succeeded"
    assert ended_job["attempt"] == 2
    events = event_types(stack, job["id"])
    assert "released" in events
    assert "lost" not in events


@pytest.mark.parametrize("own_stack", [{"COVEY_JOB_ATTEMPTS": "2"}], indirect=True)
def test_a_job_whose_process_is_killed_in_every_attempt_fails(own_stack: Stack) -> None:
    stack = own_stack
    dataset = stack.dataset(departments(80))
    holds = [stack.hold(attempt=attempt) for attempt in (1, 2)]
    job = stack.train(dataset["id"], model="poison", learner=LEARNER)
    for hold in holds:
        os.kill(hold.wait(), signal.SIGKILL)
    ended_job = stack.finished(job["id"])
    assert ended_job["state"] == "failed"
    assert ended_job["error"]["code"] == "worker_lost"
    assert "SIGKILL" in ended_job["error"]["detail"]
    assert all("event" in json.loads(line) for line in ended_job["error"]["log"])
    # The failed job does not block other jobs.
    next_job = stack.finished(stack.train(dataset["id"], model="after")["id"])
    assert next_job["state"] == "succeeded"
