"""What is killed at a random moment of a training: the job still ends, once, with one version."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from typing import Any

import pytest
from stack import Stack, departments, wait_for

pytestmark = pytest.mark.system

LONG = {"algorithm": "adaboost_lc", "rounds": 1500}


def running(stack: Stack, job_id: str) -> dict[str, Any]:
    """The job once its training has begun."""

    def training() -> dict[str, Any] | None:
        job = stack.job(job_id)
        assert job["state"] in ("queued", "running"), job
        return job if job.get("progress", {}).get("phase") == "training" else None

    return wait_for(training, what="the training to begin")


def job_process(stack: Stack) -> int:
    """The process of the one running job: below a process of the pool, below the worker."""
    (worker,) = stack.worker_pids()

    def look() -> int | None:
        return next(iter(stack.job_pids(worker)), None)

    return wait_for(look, what="the job's process")


@pytest.mark.parametrize("victim", ["job", "pool", "worker", "broker", "api", "everything"])
def test_a_kill_at_a_random_moment_costs_nothing_but_time(own_stack: Stack, victim: str) -> None:
    stack = own_stack
    dataset = stack.dataset(departments(400))
    job = stack.train(dataset["id"], model="killed", learner=LONG)
    running(stack, job["id"])
    time.sleep(random.Random(victim).uniform(0.0, 0.5))  # noqa: S311 - a moment, no secret
    (worker,) = stack.worker_pids()
    doomed = {
        "job": lambda: stack.job_pids(worker),
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
        wait_for(lambda: True if stack.is_ready() else None, what="the service to be ready again")

    ended = stack.finished(job["id"])
    assert ended["state"] == "succeeded", ended
    assert ended["result"]["version"] == 1
    assert stack.call("GET", "/v1/models/killed", 200)["versions"] == 1
    events = [e["type"] for e in stack.call("GET", f"/v1/training-jobs/{job['id']}/events", 200)["items"]]
    assert events.count("succeeded") == 1
    if victim in ("job", "pool", "worker", "everything"):
        assert ended["attempt"] == 2
        assert "lost" in events
    else:
        assert ended["attempt"] == 1


def test_a_stopped_worker_hands_its_job_back_and_it_does_not_count(own_stack: Stack) -> None:
    stack = own_stack
    dataset = stack.dataset(departments(400))
    job = stack.train(dataset["id"], model="handed", learner=LONG)
    running(stack, job["id"])
    (worker,) = stack.worker_pids()
    os.kill(worker, signal.SIGTERM)
    ended = stack.finished(job["id"])
    assert ended["state"] == "succeeded"
    assert ended["attempt"] == 2
    events = [e["type"] for e in stack.call("GET", f"/v1/training-jobs/{job['id']}/events", 200)["items"]]
    assert "released" in events
    assert "lost" not in events


def test_a_job_that_kills_its_process_again_and_again_fails_with_its_reason(own_stack: Stack) -> None:
    stack = own_stack
    assert stack.stop() == 0
    stack.settings["COVEY_JOB_ATTEMPTS"] = "2"
    stack.start()
    dataset = stack.dataset(departments(400))
    job = stack.train(dataset["id"], model="poison", learner=LONG)
    for _ in range(2):
        running(stack, job["id"])
        os.kill(job_process(stack), signal.SIGKILL)

        def moved_on(before: int = stack.job(job["id"])["attempt"]) -> bool | None:
            now = stack.job(job["id"])
            return True if now["attempt"] > before or now["state"] == "failed" else None

        wait_for(moved_on, what="the job's next attempt, or its end")
    ended = stack.finished(job["id"])
    assert ended["state"] == "failed"
    assert ended["error"]["code"] == "worker_lost"
    assert "SIGKILL" in ended["error"]["detail"]
    assert all("event" in json.loads(line) for line in ended["error"]["log"])
    # It blocks nobody.
    after = stack.finished(stack.train(dataset["id"], model="after")["id"])
    assert after["state"] == "succeeded"
