"""Processes are killed during a training: the job still ends, once, with one version."""

from __future__ import annotations

import json
import os
import signal

import pytest
from stack import Stack, departments
from waiting import wait_for

pytestmark = pytest.mark.system

LEARNER = {"algorithm": "adaboost_lc", "rounds": 20}


def event_types(stack: Stack, job_id: str) -> list[str]:
    return [event["type"] for event in stack.call("GET", f"/v1/training-jobs/{job_id}/events", 200)["items"]]


@pytest.mark.parametrize(
    ("own_stack", "victim"),
    [
        ({}, "job"),
        # The worker lives and holds the lease of the job that its process has lost, until the lease runs out.
        ({"COVEY_LEASE_SECONDS": "3"}, "pool"),
        ({}, "worker"),
        ({}, "broker"),
        ({}, "api"),
        ({}, "everything"),
    ],
    indirect=["own_stack"],
)
def test_a_kill_during_a_training_costs_nothing_but_time(own_stack: Stack, victim: str) -> None:
    stack = own_stack
    dataset = stack.dataset(departments(80))
    with stack.hold(step=7) as hold:
        job = stack.train(dataset["id"], model="killed", learner=LEARNER)
        process = hold.wait()
        (worker,) = stack.worker_pids()
        doomed = {
            "job": lambda: [process],
            "pool": lambda: stack.pool_pids(worker),
            "worker": lambda: [worker],
            "broker": lambda: stack.processes("valkey-server"),
            "api": lambda: stack.processes("app api"),
            "everything": lambda: [*stack.processes(""), stack.pid],
        }[victim]()
        assert doomed
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        if victim == "everything":
            stack.reap()
            stack.start()
        else:
            wait_for(lambda: stack.is_ready() or None, what="the service to be ready again")

    ended = stack.finished(job["id"])
    assert ended["state"] == "succeeded", ended
    assert ended["result"]["version"] == 1
    assert stack.call("GET", "/v1/models/killed", 200)["versions"] == 1
    events = event_types(stack, job["id"])
    assert events.count("succeeded") == 1
    if victim in ("job", "pool", "worker", "everything"):
        assert ended["attempt"] == 2
        assert "lost" in events
    else:
        assert ended["attempt"] == 1


def test_a_stopped_worker_hands_its_job_back_and_it_does_not_count(own_stack: Stack) -> None:
    stack = own_stack
    dataset = stack.dataset(departments(80))
    with stack.hold() as hold:
        job = stack.train(dataset["id"], model="handed", learner=LEARNER)
        hold.wait()
        (worker,) = stack.worker_pids()
        os.kill(worker, signal.SIGTERM)
        ended = stack.finished(job["id"])
    assert ended["state"] == "succeeded"
    assert ended["attempt"] == 2
    events = event_types(stack, job["id"])
    assert "released" in events
    assert "lost" not in events


@pytest.mark.parametrize("own_stack", [{"COVEY_JOB_ATTEMPTS": "2"}], indirect=True)
def test_a_job_that_kills_its_process_again_and_again_fails_with_its_reason(own_stack: Stack) -> None:
    stack = own_stack
    dataset = stack.dataset(departments(80))
    holds = [stack.hold(attempt=attempt) for attempt in (1, 2)]
    job = stack.train(dataset["id"], model="poison", learner=LEARNER)
    for hold in holds:
        os.kill(hold.wait(), signal.SIGKILL)
    ended = stack.finished(job["id"])
    assert ended["state"] == "failed"
    assert ended["error"]["code"] == "worker_lost"
    assert "SIGKILL" in ended["error"]["detail"]
    assert all("event" in json.loads(line) for line in ended["error"]["log"])
    # It blocks nobody.
    after = stack.finished(stack.train(dataset["id"], model="after")["id"])
    assert after["state"] == "succeeded"
