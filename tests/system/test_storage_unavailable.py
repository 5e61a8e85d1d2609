"""A running service survives the absence of its storage: nothing is lost or written elsewhere."""

from __future__ import annotations

import pytest
from stack import Stack, departments
from waiting import wait_for

pytestmark = [pytest.mark.faults, pytest.mark.system]

PREDICT = {"instances": [{"text": "invoice payment"}]}


def test_jobs_wait_and_loaded_versions_answer_while_the_folder_of_the_storage_is_away(
    killable_stack: Stack,
) -> None:
    stack = killable_stack
    dataset = stack.dataset(departments(60))["id"]
    assert stack.finished(stack.train(dataset, model="loaded")["id"])["state"] == "succeeded"
    before = stack.call("POST", "/v1/models/loaded/predict", 200, json=PREDICT)
    storage, away = stack.data / "storage", stack.data / "away"
    with stack.hold(step=2) as hold:
        running = stack.train(dataset, model="running", learner={"algorithm": "mp_boost", "rounds": 20})
        hold.wait()
        storage.rename(away)
        storage.mkdir()  # as the place where a file system is to be mounted
    waiting = stack.train(dataset, model="waiting")

    def attempts() -> bool | None:
        return True if all(stack.job(job["id"])["attempt"] > 1 for job in (running, waiting)) else None

    wait_for(attempts, what="both jobs to be repeated")
    wait_for(lambda: True if not stack.is_ready() else None, what="the next check of the storage")
    problem = stack.call("GET", "/health/ready", 503)
    assert "does not contain the file covey-storage; mount the storage" in problem["detail"]
    assert stack.call("POST", "/v1/models/loaded/predict", 200, json=PREDICT) == before
    stack.call("GET", f"/v1/datasets/{dataset}/examples", 503)
    assert list(storage.iterdir()) == []
    storage.rmdir()
    away.rename(storage)
    for job in (running, waiting):
        ended = stack.finished(job["id"])
        assert ended["state"] == "succeeded", ended
    wait_for(lambda: True if stack.is_ready() else None, what="the service to be ready")
