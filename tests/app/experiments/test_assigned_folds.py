"""An experiment with the split ``assigned`` uses the folds of the examples."""

from __future__ import annotations

from typing import Any

import in_process
from contract import problem_of
from in_process_api import InProcessApi

BAYES = {
    "learner": {"algorithm": "naive_bayes", "label_mode": "single_label"},
    "decision": {"kind": "single_label"},
}
# In fold 3, the word of the second example contradicts its label.
EXAMPLES = [
    {"text": "red", "labels": ["a"], "fold": 1},
    {"text": "blue", "labels": ["b"], "fold": 1},
    {"text": "red", "labels": ["a"], "fold": 3},
    {"text": "red", "labels": ["b"], "fold": 3},
    {"text": "blue", "labels": ["b"], "fold": 8},
    {"text": "red", "labels": ["a"], "fold": 8},
]


def dataset_of(service: InProcessApi, examples: list[dict[str, Any]]) -> str:
    created: str = service.call("POST", "/v1/datasets", 201, json={"name": "d", "examples": examples})["id"]
    in_process.work(service.ctx)
    return created


def request_of(dataset: str, **fields: Any) -> dict[str, Any]:
    return {"dataset_id": dataset, "configurations": [BAYES], "measures": ["accuracy"], **fields}


def test_each_assigned_fold_is_held_out_once(service: InProcessApi) -> None:
    dataset = dataset_of(service, EXAMPLES)
    assert service.call("GET", f"/v1/datasets/{dataset}", 200)["folds"] == {"1": 2, "3": 2, "8": 2}
    items = service.call("GET", f"/v1/datasets/{dataset}/examples", 200)["items"]
    assert [item["fold"] for item in items] == [1, 1, 3, 3, 8, 8]
    body = request_of(dataset, split={"kind": "assigned"})
    created = service.call("POST", "/v1/experiments", 202, json=body)
    assert created["request"]["split"] == {"kind": "assigned", "folds": [1, 3, 8]}
    in_process.work(service.ctx)
    ended = service.call("GET", f"/v1/experiments/{created['id']}", 200)
    assert [cell["fold"] for cell in ended["cells"]] == [1, 3, 8]
    assert [cell["metrics"]["test"]["n_examples"] for cell in ended["cells"]] == [2, 2, 2]
    assert [cell["metrics"]["train"]["n_examples"] for cell in ended["cells"]] == [4, 4, 4]
    report = service.call("GET", f"/v1/experiments/{created['id']}/report", 200)
    assert report["folds"] == 3
    (row,) = report["rows"]
    assert (row["complete"], row["folds"]) == (True, [1, 3, 8])
    assert row["test"]["accuracy"]["values"] == [1.0, 0.5, 1.0]
    markdown = service.send("GET", f"/v1/experiments/{created['id']}/report?format=markdown").text
    assert "3 assigned folds" in markdown


def test_the_other_folds_are_for_training_if_only_some_are_held_out(service: InProcessApi) -> None:
    body = request_of(dataset_of(service, EXAMPLES), split={"kind": "assigned", "folds": [8, 3, 8]})
    created = service.call("POST", "/v1/experiments", 202, json=body)
    assert created["counts"]["total"] == 2
    in_process.work(service.ctx)
    report = service.call("GET", f"/v1/experiments/{created['id']}/report", 200)
    assert report["rows"][0]["folds"] == [3, 8]
    assert report["rows"][0]["complete"]
    assert report["rows"][0]["test"]["accuracy"]["values"] == [0.5, 1.0]


def test_folds_of_all_examples_are_the_default_without_a_split(service: InProcessApi) -> None:
    created = service.call("POST", "/v1/experiments", 202, json=request_of(dataset_of(service, EXAMPLES)))
    assert created["request"]["split"]["kind"] == "assigned"
    with_split = [{**example, "split": "train" if i else "test"} for i, example in enumerate(EXAMPLES)]
    created = service.call("POST", "/v1/experiments", 202, json=request_of(dataset_of(service, with_split)))
    assert created["request"]["split"]["kind"] == "given"
    some = [EXAMPLES[0], *({k: v for k, v in example.items() if k != "fold"} for example in EXAMPLES[1:])]
    created = service.call("POST", "/v1/experiments", 202, json=request_of(dataset_of(service, some)))
    assert created["request"]["split"]["kind"] == "folds"


WITHOUT_FOLD = "examples without a fold: {}; set the field fold of every example"
REJECTED: list[tuple[list[int | None], dict[str, Any], str, str]] = [
    ([0, 1, None], {}, "/split/kind", WITHOUT_FOLD.format(1)),
    ([None, None], {}, "/split/kind", WITHOUT_FOLD.format(2)),
    ([4, 4, 4], {}, "/split/kind", "all examples are in fold 4; at least two folds are needed"),
    ([0, 1, 5], {"folds": [1, 2]}, "/split/folds/1", "the data set has no fold 2; its folds are 0, 1, 5"),
]


def test_folds_that_do_not_fit_are_rejected(service: InProcessApi) -> None:
    for folds, split, pointer, message in REJECTED:
        examples = [{"text": "x", "labels": ["a"], "fold": fold} for fold in folds]
        body = request_of(dataset_of(service, examples), split={"kind": "assigned", **split})
        response = service.send("POST", "/v1/experiments", json=body)
        problem = problem_of(response, 422, "invalid_request")
        assert problem["errors"] == [{"pointer": pointer, "message": message}]


def test_a_fold_in_a_request_must_be_a_whole_number(service: InProcessApi) -> None:
    body = {"name": "d", "examples": [{"text": "x", "labels": ["a"], "fold": -1}]}
    problem = problem_of(service.send("POST", "/v1/datasets", json=body), 422, "invalid_request")
    assert [error["pointer"] for error in problem["errors"]] == ["/examples/0/fold"]
