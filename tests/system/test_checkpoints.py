"""A training goes on where it stood, in another process, and ends with the same bytes."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
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
    "boosting": {"learner": BOOSTING},
    # The folds on which thresholds are tuned are trainings of their own, and are resumed as well.
    "thresholds": {"learner": BOOSTING, "decision": {"kind": "tuned_threshold"}},
}

CHECKPOINTS: dict[str, list[dict[str, Any]]] = {
    "boosting": [{"phase": "training", "step": 13}, {"phase": "training", "step": 29}],
    "thresholds": [{"phase": "training", "step": 13}, {"phase": "thresholds", "step": 29}],
}
"""After which steps the job writes a checkpoint, in its first and in its second attempt."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that writes checkpoints only where a test holds a job."""
    settings = {"COVEY_CHECKPOINT_SECONDS": "3600", "COVEY_LEASE_SECONDS": "60"}
    stack = Stack(tmp_path_factory.mktemp("checkpoints") / "data", settings).start()
    yield stack
    stack.stop()


@pytest.fixture(scope="module")
def dataset_id(service: Stack) -> str:
    made: str = service.dataset(departments(80))["id"]
    return made


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
def test_a_resumed_model_is_the_uninterrupted_one_bit_for_bit(
    service: Stack, dataset_id: str, kind: str
) -> None:
    whole = service.finished(service.train(dataset_id, model=f"whole-{kind}", **LEARNERS[kind])["id"])
    holds = [
        service.hold(point="checkpoint", attempt=attempt, **where)
        for attempt, where in enumerate(CHECKPOINTS[kind], start=1)
    ]
    job = service.train(dataset_id, model=f"resumed-{kind}", **LEARNERS[kind])
    for hold in holds:
        os.kill(hold.wait(), signal.SIGKILL)
    resumed = service.finished(job["id"])
    assert resumed["state"] == "succeeded", resumed
    assert resumed["attempt"] == 3
    seen = events(service, job["id"])
    steps = [event["detail"] for event in seen if event["type"] == "resumed"]
    assert [{"phase": step["phase"], "step": step["completed"]} for step in steps] == CHECKPOINTS[kind]

    first, second = (
        service.call("GET", f"/v1/models/{name}-{kind}/versions/1", 200) for name in ("whole", "resumed")
    )
    assert second["artifact"]["sha256"] == first["artifact"]["sha256"]
    assert second["metrics"] == first["metrics"]
    assert curve(service, job["id"]) == curve(service, whole["id"])
    assert [point["step"] for point in curve(service, job["id"])] == list(range(1, BOOSTING["rounds"] + 1))
    timings = second["timings"]
    phases = [timings[f"{phase}_seconds"] for phase in ("features", "training", "thresholds")]
    assert all(seconds >= 0 for seconds in phases)
    # What the phases took is a part of the whole, which is a part of the time from the start to the end.
    started, ended = (datetime.fromisoformat(resumed[name]) for name in ("started_at", "finished_at"))
    assert sum(phases) <= timings["fit_seconds"] + 0.01 <= (ended - started).total_seconds() + 0.02
    wait_for(lambda: not checkpoints(service, job["id"]) or None, what="the checkpoints to go")


@pytest.mark.parametrize("spoil", ["damage", "remove"])
def test_without_its_checkpoint_a_training_begins_anew_and_ends_the_same(
    service: Stack, dataset_id: str, spoil: str
) -> None:
    hold = service.hold(point="checkpoint", step=13)
    job = service.train(dataset_id, model=f"spoilt-{spoil}", **LEARNERS["boosting"])
    process = hold.wait()
    (path,) = checkpoints(service, job["id"])
    if spoil == "damage":
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    else:
        path.unlink()
    os.kill(process, signal.SIGKILL)
    ended = service.finished(job["id"])
    assert ended["state"] == "succeeded", ended
    assert "checkpoint_ignored" in [event["type"] for event in events(service, job["id"])]
    assert [point["step"] for point in curve(service, job["id"])] == list(range(1, BOOSTING["rounds"] + 1))


def test_a_cell_of_an_experiment_goes_on_where_it_stood(service: Stack, dataset_id: str) -> None:
    body = {
        "dataset_id": dataset_id,
        "split": {"kind": "random", "test_fraction": 0.5},
        "configurations": [{"learner": BOOSTING}],
        "measures": ["hamming_loss"],
    }

    def ended(made: dict[str, Any]) -> dict[str, Any]:
        path = f"/v1/experiments/{made['id']}"

        def look() -> dict[str, Any] | None:
            now: dict[str, Any] = service.call("GET", path, 200)
            return now if now["state"] not in ("queued", "running") else None

        done = wait_for(look, what="the end of the experiment")
        assert done["state"] == "succeeded", done
        report: dict[str, Any] = service.call("GET", f"{path}/report", 200)
        return {"attempt": done["cells"][0]["attempt"], "curves": report["curves"], "rows": report["rows"]}

    whole = ended(service.call("POST", "/v1/experiments", 202, json=body))
    hold = service.hold(point="checkpoint", kind="cell", step=13)
    made = service.call("POST", "/v1/experiments", 202, json=body)
    os.kill(hold.wait(), signal.SIGKILL)
    resumed = ended(made)
    assert resumed["attempt"] == 2
    assert resumed["curves"] == whole["curves"]
    assert resumed["rows"][0]["test"] == whole["rows"][0]["test"]
    with closing(sqlite3.connect(service.data / "covey.db")) as db:
        query = (
            "select count(*) from job_events join jobs on jobs.id = job_events.job_id "
            "where jobs.kind = 'cell' and job_events.type = 'resumed'"
        )
        assert db.execute(query).fetchone() == (1,)
