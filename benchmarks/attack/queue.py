"""A job queue that one client fills."""

from __future__ import annotations

import time
from collections.abc import Iterator

from stack import BYTES, departments

from benchmarks.attack.harness import (
    QUICK,
    Result,
    Targets,
    attack,
    expect,
    job_state,
    lines,
    within,
)

CELLS = 1000


@attack("an experiment of 1,000 cells before other jobs")
def experiment_first(targets: Targets) -> Iterator[Result]:
    """Queue a large experiment, then upload and train: the upload must not wait for the experiment."""
    with targets.new({"COVEY_WORKER_CONCURRENCY": "1"}) as service:
        service.prepare(200)
        learners = [{**QUICK, "rounds": 3 + n} for n in range(CELLS // 50)]
        request = {
            "dataset_id": service.dataset,
            "configurations": [{"learner": learner} for learner in learners],
            "split": {"kind": "folds", "folds": 50},
        }
        experiment = service.stack.call("POST", "/v1/experiments", 202, json=request)["id"]
        time.sleep(2.0)
        created = service.stack.call("POST", "/v1/datasets", 201, json={"name": "urgent"})
        began = time.monotonic()
        path = f"/v1/datasets/{created['id']}/content"
        service.stack.call("PUT", path, 202, content=lines(departments(40)), headers=BYTES)
        while job_state(service, "datasets", created["id"]) not in ("ready", "failed"):
            time.sleep(0.05)
        yield within("time until the upload was ready", time.monotonic() - began, 20.0)
        began = time.monotonic()
        service.train(created["id"], "urgent")
        yield within("time until a training ended", time.monotonic() - began, 20.0)
        yield expect(
            "state of the experiment", job_state(service, "experiments", experiment), "queued", "running"
        )
        service.stack.call("POST", f"/v1/experiments/{experiment}/cancel", 202)
