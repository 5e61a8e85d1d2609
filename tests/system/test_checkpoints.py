"""A training goes on where it stood, in another process, and ends with the same bytes."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from stack import Stack, departments, wait_for

pytestmark = pytest.mark.system

LEARNERS: dict[str, dict[str, Any]] = {
    "boosting": {"learner": {"algorithm": "adaboost_lc", "rounds": 3000, "smoothing": 0.01}},
    # The folds on which thresholds are tuned are trainings of their own, and are resumed as well.
    "thresholds": {
        "learner": {"algorithm": "adaboost_lc", "rounds": 1000},
        "decision": {"kind": "tuned_threshold"},
    },
}


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that keeps checkpoints all the time."""
    settings = {
        "COVEY_CHECKPOINT_SECONDS": "0.05",
        "COVEY_LEASE_SECONDS": "3",
        "COVEY_HEARTBEAT_SECONDS": "0.5",
    }
    stack = Stack(tmp_path_factory.mktemp("eager") / "data", settings).start()
    yield stack
    stack.stop()


@pytest.fixture(scope="module")
def dataset_id(eager: Stack) -> str:
    made: str = eager.dataset(departments(400))["id"]
    return made


def curve(stack: Stack, job_id: str) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = []
    query: dict[str, Any] = {"limit": 500}
    while True:
        page = stack.call("GET", f"/v1/training-jobs/{job_id}/curve", 200, params=query)
        points += page["items"]
        if "next_cursor" not in page:
            return points
        query["cursor"] = page["next_cursor"]


def kept_by_attempt(stack: Stack, job_id: str, fence: int) -> None:
    """Wait until a checkpoint of this attempt counts: its second is written once the row names the first."""

    def look() -> bool | None:
        names = [path.name.split(".") for path in checkpoints(stack, job_id)]
        return True if any(int(name[1]) == fence and int(name[2]) > 1 for name in names) else None

    wait_for(look, what="a checkpoint of this attempt")


def checkpoints(stack: Stack, job_id: str) -> list[Path]:
    return list((stack.data / "storage" / "checkpoints").glob(f"{job_id}.*"))


def kill_its_process(stack: Stack) -> None:
    (worker,) = stack.worker_pids()
    (job,) = stack.job_pids(worker)
    os.kill(job, signal.SIGKILL)


def events(stack: Stack, job_id: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = stack.call(
        "GET", f"/v1/training-jobs/{job_id}/events", 200, params={"limit": 500}
    )["items"]
    return items


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_resumed_model_is_the_uninterrupted_one_bit_for_bit(
    eager: Stack, dataset_id: str, kind: str
) -> None:
    whole = eager.finished(eager.train(dataset_id, model=f"whole-{kind}", **LEARNERS[kind])["id"])
    job = eager.train(dataset_id, model=f"resumed-{kind}", **LEARNERS[kind])
    for fence in (1, 3):  # losing a job counts its fence up, too
        kept_by_attempt(eager, job["id"], fence)
        kill_its_process(eager)
    resumed = eager.finished(job["id"])
    assert resumed["state"] == "succeeded", resumed
    assert resumed["attempt"] == 3
    told = events(eager, job["id"])
    steps = [event["detail"]["completed"] for event in told if event["type"] == "resumed"]
    assert len(steps) == 2
    assert all(step > 0 for step in steps)

    first, second = (
        eager.call("GET", f"/v1/models/{name}-{kind}/versions/1", 200) for name in ("whole", "resumed")
    )
    assert second["artifact"]["sha256"] == first["artifact"]["sha256"]
    assert second["metrics"] == first["metrics"]
    assert curve(eager, job["id"]) == curve(eager, whole["id"])
    assert [point["step"] for point in curve(eager, job["id"])] == list(
        range(1, LEARNERS[kind]["learner"]["rounds"] + 1)
    )
    timings = second["timings"]
    assert timings["fit_seconds"] == pytest.approx(
        sum(timings[f"{phase}_seconds"] for phase in ("features", "training", "thresholds")), abs=0.2
    )
    wait_for(lambda: True if not checkpoints(eager, job["id"]) else None, what="the checkpoints to go")


@pytest.mark.parametrize("spoil", ["damage", "remove"])
def test_without_its_checkpoint_a_training_begins_anew_and_ends_the_same(
    eager: Stack, dataset_id: str, spoil: str
) -> None:
    job = eager.train(dataset_id, model=f"spoilt-{spoil}", **LEARNERS["boosting"])
    kept_by_attempt(eager, job["id"], 1)
    (worker,) = eager.worker_pids()
    (process,) = eager.job_pids(worker)
    os.kill(process, signal.SIGSTOP)
    for path in checkpoints(eager, job["id"]):
        if spoil == "damage":
            content = path.read_bytes()
            path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        else:
            path.unlink()
    os.kill(process, signal.SIGKILL)
    ended = eager.finished(job["id"])
    assert ended["state"] == "succeeded", ended
    assert "checkpoint_ignored" in [event["type"] for event in events(eager, job["id"])]
    assert [point["step"] for point in curve(eager, job["id"])] == list(range(1, 3001))


def test_a_cell_of_an_experiment_goes_on_where_it_stood(eager: Stack, dataset_id: str) -> None:
    body = {
        "dataset_id": dataset_id,
        "split": {"kind": "random", "test_fraction": 0.5},
        "configurations": [{"learner": {"algorithm": "adaboost_lc", "rounds": 1000, "smoothing": 0.01}}],
        "measures": ["hamming_loss"],
    }

    def ended(made: dict[str, Any]) -> dict[str, Any]:
        path = f"/v1/experiments/{made['id']}"

        def look() -> dict[str, Any] | None:
            now: dict[str, Any] = eager.call("GET", path, 200)
            return now if now["state"] not in ("queued", "running") else None

        done = wait_for(look, what="the end of the experiment", seconds=240)
        assert done["state"] == "succeeded", done
        report: dict[str, Any] = eager.call("GET", f"{path}/report", 200)
        return {"attempt": done["cells"][0]["attempt"], "curves": report["curves"], "rows": report["rows"]}

    whole = ended(eager.call("POST", "/v1/experiments", 202, json=body))
    wait_for(lambda: True if not checkpoints(eager, "*") else None, what="its checkpoints to go")
    made = eager.call("POST", "/v1/experiments", 202, json=body)
    kept_by_attempt(eager, "*", 1)
    kill_its_process(eager)
    resumed = ended(made)
    assert resumed["attempt"] == 2
    assert resumed["curves"] == whole["curves"]
    assert resumed["rows"][0]["test"] == whole["rows"][0]["test"]
    with closing(sqlite3.connect(eager.data / "covey.db")) as db:
        query = (
            "select count(*) from job_events join jobs on jobs.id = job_events.job_id "
            "where jobs.kind = 'cell' and job_events.type = 'resumed'"
        )
        assert db.execute(query).fetchone() == (1,)
