"""A training resumes from its checkpoint in another process and produces the same model, byte for byte."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from stack import Stack, departments
from waiting import wait_for

pytestmark = pytest.mark.system

BOOSTING: dict[str, Any] = {"algorithm": "adaboost_lc", "rounds": 40, "smoothing": 0.01}

LEARNERS: dict[str, dict[str, Any]] = {
    "boosting": {"learner": BOOSTING, "decision": {"kind": "sign"}},
    # Threshold tuning trains a model for each fold. These trainings are resumed, too.
    "thresholds": {"learner": BOOSTING, "decision": {"kind": "tuned_threshold"}},
}

CHECKPOINTS: dict[str, list[dict[str, Any]]] = {
    "boosting": [{"phase": "training", "step": 13}, {"phase": "training", "step": 29}],
    "thresholds": [{"phase": "training", "step": 13}, {"phase": "thresholds", "step": 29}],
}
"""The steps after which the job writes a checkpoint, in its first and in its second attempt."""


@pytest.fixture
def dataset_id(killable_stack: Stack) -> str:
    identifier: str = killable_stack.dataset(departments(80))["id"]
    return identifier


def checkpoints(stack: Stack, job_id: str) -> list[Path]:
    return list((stack.data / "storage" / "checkpoints").glob(f"{job_id}.*"))


def events(stack: Stack, job_id: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = stack.call(
        "GET", f"/v1/training-jobs/{job_id}/events", 200, params={"limit": 500}
    )["items"]
    return items


def curve(stack: Stack, job_id: str) -> list[dict[str, Any]]:
    return list(stack.all(f"/v1/training-jobs/{job_id}/curve"))


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_resumed_training_produces_the_same_bytes_as_an_uninterrupted_one(
    killable_stack: Stack, dataset_id: str, kind: str
) -> None:
    stack = killable_stack
    uninterrupted = stack.finished(
        stack.train(dataset_id, model=f"uninterrupted-{kind}", **LEARNERS[kind])["id"]
    )
    holds = [
        stack.hold(point="checkpoint", attempt=attempt, **checkpoint)
        for attempt, checkpoint in enumerate(CHECKPOINTS[kind], start=1)
    ]
    job = stack.train(dataset_id, model=f"resumed-{kind}", **LEARNERS[kind])
    for hold in holds:
        os.kill(hold.wait(), signal.SIGKILL)
    resumed = stack.finished(job["id"])
    assert resumed["state"] == "succeeded", resumed
    assert resumed["attempt"] == 3
    steps = [event["detail"] for event in events(stack, job["id"]) if event["type"] == "resumed"]
    assert [{"phase": step["phase"], "step": step["completed"]} for step in steps] == CHECKPOINTS[kind]

    first, second = (
        stack.call("GET", f"/v1/models/{name}-{kind}/versions/1", 200)
        for name in ("uninterrupted", "resumed")
    )
    assert second["artifact"]["sha256"] == first["artifact"]["sha256"]
    assert second["metrics"] == first["metrics"]
    assert curve(stack, job["id"]) == curve(stack, uninterrupted["id"])
    assert [point["step"] for point in curve(stack, job["id"])] == list(range(1, BOOSTING["rounds"] + 1))
    timings = second["timings"]
    phases = [timings[f"{phase}_seconds"] for phase in ("features", "training", "thresholds")]
    assert all(seconds >= 0 for seconds in phases)
    # The phases are part of the fit, and the fit is part of the time from the start to the end of the job.
    started, ended = (datetime.fromisoformat(resumed[name]) for name in ("started_at", "finished_at"))
    assert sum(phases) <= timings["fit_seconds"] + 0.01 <= (ended - started).total_seconds() + 0.02
    wait_for(lambda: not checkpoints(stack, job["id"]) or None, what="the deletion of the checkpoints")


@pytest.mark.parametrize("fault", ["damage", "remove"])
def test_a_training_restarts_if_its_checkpoint_is_damaged_or_missing(
    killable_stack: Stack, dataset_id: str, fault: str
) -> None:
    stack = killable_stack
    hold = stack.hold(point="checkpoint", step=13)
    job = stack.train(dataset_id, model=f"restarted-{fault}", **LEARNERS["boosting"])
    process = hold.wait()
    (path,) = checkpoints(stack, job["id"])
    if fault == "damage":
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    else:
        path.unlink()
    os.kill(process, signal.SIGKILL)
    job = stack.finished(job["id"])
    assert job["state"] == "succeeded", job
    assert "checkpoint_ignored" in [event["type"] for event in events(stack, job["id"])]
    assert [point["step"] for point in curve(stack, job["id"])] == list(range(1, BOOSTING["rounds"] + 1))


def test_a_cell_of_an_experiment_resumes_from_its_checkpoint(killable_stack: Stack, dataset_id: str) -> None:
    stack = killable_stack
    body = {
        "dataset_id": dataset_id,
        "split": {"kind": "random", "test_fraction": 0.5},
        "configurations": [{"learner": BOOSTING, "decision": {"kind": "sign"}}],
        "measures": ["hamming_loss"],
    }

    def wait_for_report(experiment: dict[str, Any]) -> dict[str, Any]:
        path = f"/v1/experiments/{experiment['id']}"

        def get_if_ended() -> dict[str, Any] | None:
            current: dict[str, Any] = stack.call("GET", path, 200)
            return current if current["state"] not in ("queued", "running") else None

        result = wait_for(get_if_ended, what="the end of the experiment")
        assert result["state"] == "succeeded", result
        report: dict[str, Any] = stack.call("GET", f"{path}/report", 200)
        return {"attempt": result["cells"][0]["attempt"], "curves": report["curves"], "rows": report["rows"]}

    uninterrupted = wait_for_report(stack.call("POST", "/v1/experiments", 202, json=body))
    hold = stack.hold(point="checkpoint", kind="cell", step=13)
    experiment = stack.call("POST", "/v1/experiments", 202, json=body)
    os.kill(hold.wait(), signal.SIGKILL)
    resumed = wait_for_report(experiment)
    assert resumed["attempt"] == 2
    assert resumed["curves"] == uninterrupted["curves"]
    assert resumed["rows"][0]["test"] == uninterrupted["rows"][0]["test"]
    with closing(sqlite3.connect(stack.data / "covey.db")) as db:
        query = (
            "select count(*) from job_events join experiment_cells using (job_id) "
            "where experiment_id = ? and type = 'resumed'"
        )
        assert db.execute(query, [experiment["id"]]).fetchone() == (1,)
