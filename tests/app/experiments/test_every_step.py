"""The learning curves of an experiment have every step on request."""

from __future__ import annotations

import in_process
import pytest
from in_process_api import InProcessApi

# Every example repeats a word of its label, so that no round is the last: rounds only add confidence.
EXAMPLES = [
    {"text": "red apple", "labels": ["fruit"], "split": "train"},
    {"text": "red car", "labels": ["vehicle"], "split": "train"},
    {"text": "green apple car", "labels": ["fruit", "vehicle"], "split": "train"},
    {"text": "green", "labels": [], "split": "train"},
    {"text": "apple", "labels": ["fruit"], "split": "test"},
    {"text": "red", "labels": ["vehicle"], "split": "test"},
]
BOOSTING = {"learner": {"algorithm": "adaboost_mh", "rounds": 30}, "decision": {"kind": "sign"}}
ALL_STEPS = list(range(1, 31))
THINNED = [*range(1, 21), 22, 24, 26, 28, 30]


def test_every_step_is_measured_on_request(service: InProcessApi) -> None:
    dataset = service.call("POST", "/v1/datasets", 201, json={"name": "d", "examples": EXAMPLES})["id"]
    in_process.work(service.ctx)
    curves = {}
    for steps in ("thinned", "all"):
        body = {
            "dataset_id": dataset,
            "configurations": [BOOSTING],
            "measures": ["hamming_loss"],
            "steps": steps,
        }
        created = service.call("POST", "/v1/experiments", 202, json=body)
        in_process.work(service.ctx)
        report = service.call("GET", f"/v1/experiments/{created['id']}/report", 200)
        (curves[steps],) = report["curves"]
    assert curves["thinned"]["steps"] == THINNED
    assert curves["all"]["steps"] == ALL_STEPS
    # The first rounds choose apple and car, and later ones only confirm them. Without a word of a label, both
    # labels are off, so one of the four pairs of the test part is wrong.
    assert curves["all"]["within_folds"][-1] == 0.0
    assert curves["all"]["out_of_folds"][-1] == 0.25
    by_step = dict(zip(ALL_STEPS, curves["all"]["out_of_folds"], strict=True))
    assert curves["thinned"]["out_of_folds"] == [by_step[step] for step in THINNED]


def test_the_curve_of_a_training_has_every_step(service: InProcessApi) -> None:
    dataset = service.call("POST", "/v1/datasets", 201, json={"name": "d", "examples": EXAMPLES})["id"]
    in_process.work(service.ctx)
    body = {"model": "m", "dataset_id": dataset, **BOOSTING}
    job = service.call("POST", "/v1/training-jobs", 202, json=body)
    in_process.work(service.ctx)
    points = service.call("GET", f"/v1/training-jobs/{job['id']}/curve", 200)["items"]
    assert [point["step"] for point in points] == ALL_STEPS


def test_only_the_first_steps_of_a_large_experiment_are_all_measured(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.experiments.work.MAX_EXPERIMENT_STEPS", 22)
    dataset = service.call("POST", "/v1/datasets", 201, json={"name": "d", "examples": EXAMPLES})["id"]
    in_process.work(service.ctx)
    body = {"dataset_id": dataset, "configurations": [BOOSTING], "measures": ["hamming_loss"], "steps": "all"}
    created = service.call("POST", "/v1/experiments", 202, json=body)
    in_process.work(service.ctx)
    (curve,) = service.call("GET", f"/v1/experiments/{created['id']}/report", 200)["curves"]
    assert curve["steps"] == [*range(1, 23), 24, 26, 28, 30]
