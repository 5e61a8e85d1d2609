"""Data that learners cannot hold in memory, load again, or finish."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.attack.harness import Result, Service, Targets, attack, expect, holds, until, within

LONGEST_SECONDS = 60.0
"""Time after which a training is cancelled."""
UNEXPECTED = ("internal_error", "worker_lost")
ENDED = ("succeeded", "failed", "cancelled")
LARGE = {
    "mp_boost": {"rounds": 3},
    "adaboost_mh": {"rounds": 3},
    "adaboost_lc": {"rounds": 3},
    "svm": {},
    "h_svm": {},
}


def _train(
    service: Service, dataset: str, model: str, seconds: float = LONGEST_SECONDS, **request: Any
) -> dict[str, Any]:
    """Train a version, and cancel the job if it takes long. Returns the job."""
    job = service.stack.train(dataset, model=model, **request)["id"]
    until(lambda: service.stack.job(job)["state"] in ENDED, f"the end of {model}", seconds)
    service.request("POST", f"/v1/training-jobs/{job}/cancel")
    return service.stack.finished(job, 120)


def _judge(service: Service, what: str, job: dict[str, Any], instance: dict[str, Any]) -> Iterator[Result]:
    """A training ends with a version that predicts, or with a reason."""
    code = job.get("error", {}).get("code")
    yield holds(f"{what}: the job has a reason", code not in UNEXPECTED, f"{job['state']} {code or ''}")
    if job["state"] == "succeeded":
        path = f"/v1/models/{job['request']['model']}/predict"
        response = service.post(path, json={"instances": [instance], "top": 3})
        yield expect(f"{what}: status of a prediction", response.status_code, 200)
    else:
        detail = job.get("error", {}).get("detail", "")
        yield holds(
            f"{what}: the error is no MemoryError", "MemoryError" not in detail, detail or job["state"]
        )


@attack("20,000 labels and 40,000 features")
def memory(targets: Targets) -> Iterator[Result]:
    """Train learners whose arrays would not fit into memory: refuse with a number, before they are made."""
    with targets.new({"COVEY_WORKER_CONCURRENCY": "1"}) as service:
        examples = [
            {
                "features": {f"f{(3 * i + k) % 40_000}": 1.0 + i % 7 for k in range(6)},
                "labels": [f"l{i % 20_000}"],
            }
            for i in range(60_000)
        ]
        dataset = service.stack.dataset(examples)["id"]
        for name, parameters in LARGE.items():
            learner = {"algorithm": name, **parameters}
            job = _train(service, dataset, name, learner=learner, promote="never")
            error = job.get("error", {})
            reason = f"{job['state']} {error.get('code', '')}: {error.get('detail', '')}"
            yield holds(f"{name}: no internal error", error.get("code") not in UNEXPECTED, reason)
            yield holds(f"{name}: no MemoryError", "MemoryError" not in str(error), reason)


@attack("models that train and do not load")
def loading(targets: Targets) -> Iterator[Result]:
    """Train what the loader refused: many labels with thresholds, and huge values."""
    service = targets.shared
    many = [
        {"features": {f"f{i % 50}": float(i % 13), "g": i / 7}, "labels": [f"l{i % 2500}"]}
        for i in range(2500)
    ]
    dataset = service.stack.dataset(many)["id"]
    learner = {"algorithm": "mp_boost", "rounds": 100}
    job = _train(service, dataset, "thresholds", 10 * LONGEST_SECONDS, learner=learner)
    yield expect("2,500 labels: state of the job", job["state"], "succeeded", "failed")
    yield from _judge(service, "2,500 labels", job, {"features": {"f1": 1.0, "g": 3.0}})
    for algorithm in ("h_rls", "mmp", "svm"):
        for size in (1e100, 1e155, 1e300):
            values = [
                {"features": {"a": size * (i % 5 + 1), "b": size / (i % 3 + 1)}, "labels": [f"l{i % 3}"]}
                for i in range(60)
            ]
            dataset = service.stack.dataset(values)["id"]
            model = f"{algorithm}-{size:g}".replace("+", "")
            job = _train(service, dataset, model, learner={"algorithm": algorithm})
            yield from _judge(service, f"{algorithm} at {size:g}", job, {"features": {"a": size, "b": 1.0}})


@attack("the cancellation of a training that the library computes")
def cancellation(targets: Targets) -> Iterator[Result]:
    """Cancel an SVM on values on which the library did not end."""
    service = targets.shared
    values = [
        {"features": {"a": 1e100 * (i % 5 + 1), "b": (-1.0) ** i}, "labels": [f"l{i % 3}"]}
        for i in range(300)
    ]
    dataset = service.stack.dataset(values)["id"]
    job = service.stack.train(dataset, model="endless", learner={"algorithm": "svm"})["id"]
    until(lambda: service.stack.job(job)["state"] != "queued", "the start", 60)
    service.request("POST", f"/v1/training-jobs/{job}/cancel")
    seconds = until(lambda: service.stack.job(job)["state"] in ENDED, "the end", 120)
    yield within("time until the job ended", seconds, 60.0)
