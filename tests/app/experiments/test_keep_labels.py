"""Trainings and experiments keep labels without a training example on request."""

from __future__ import annotations

import in_process
import pytest
from in_process_api import InProcessApi

# After one epoch, the weights of the perceptrons are 2 for a, -2 for b, and 0 for c, which has no training
# example. So a is predicted for every test example: 4 of 9 pairs are wrong, or 3 of 6 without c.
EXAMPLES = [
    {"features": {"x": 1.0}, "labels": ["a"], "split": "train"},
    {"features": {"x": -1.0}, "labels": ["b"], "split": "train"},
    {"features": {"x": 0.5}, "labels": ["a"], "split": "test"},
    {"features": {"x": 0.25}, "labels": ["b"], "split": "test"},
    {"features": {"x": 0.5}, "labels": ["c"], "split": "test"},
]
PERCEPTRON = {"learner": {"algorithm": "binary_relevance_perceptron"}, "decision": {"kind": "sign"}}


def test_labels_without_a_training_example_are_kept_on_request(service: InProcessApi) -> None:
    dataset = service.call("POST", "/v1/datasets", 201, json={"name": "d", "examples": EXAMPLES})["id"]
    in_process.work(service.ctx)
    for keep, labels, loss in (("trained", ["a", "b"], 1 / 2), ("all", ["a", "b", "c"], 4 / 9)):
        body = {"model": keep, "dataset_id": dataset, **PERCEPTRON, "keep_labels": keep}
        job = service.call("POST", "/v1/training-jobs", 202, json=body)
        body = {"dataset_id": dataset, "configurations": [PERCEPTRON], "keep_labels": keep}
        experiment = service.call("POST", "/v1/experiments", 202, json={**body, "measures": ["hamming_loss"]})
        assert (job["request"]["keep_labels"], experiment["request"]["keep_labels"]) == (keep, keep)
        in_process.work(service.ctx)
        version = service.call("GET", f"/v1/models/{keep}/versions/1", 200)
        assert version["labels"] == labels
        assert version["metrics"]["test"]["hamming_loss"] == pytest.approx(loss)
        assert ("labels without a training example: c" in version["warnings"]) == (keep == "all")
        report = service.call("GET", f"/v1/experiments/{experiment['id']}/report", 200)
        assert report["rows"][0]["test"]["hamming_loss"]["mean"] == pytest.approx(loss)
        (curve,) = report["curves"]
        assert curve["out_of_folds"][-1] == pytest.approx(loss)
        body = {"instances": [{"features": {"x": 1}}]}
        (prediction,) = service.call("POST", f"/v1/models/{keep}/predict", 200, json=body)["predictions"]
        assert prediction["labels"] == ["a"]
        ranked = [item["label"] for item in prediction["ranking"]]
        assert ranked == (["a", "c", "b"] if keep == "all" else ["a", "b"])
