"""The errors of a configuration over the held-out parts of all folds: a confusion matrix, and documents."""

from __future__ import annotations

from typing import Any

import in_process
from contract import problem_of
from in_process_api import InProcessApi

from app.experiments import errors

BAYES = {
    "learner": {"algorithm": "naive_bayes", "label_mode": "single_label"},
    "decision": {"kind": "single_label"},
}
# The only document that its fold does not predict correctly is the fourth.
SINGLE_LABEL = [
    {"text": "red", "labels": ["a"], "fold": 1},
    {"text": "blue", "labels": ["b"], "fold": 1},
    {"text": "red", "labels": ["a"], "fold": 3},
    {"id": "odd", "text": "red", "labels": ["b"], "fold": 3},
    {"text": "blue", "labels": ["b"], "fold": 8},
    {"text": "red", "labels": ["a"], "fold": 8},
]
PERCEPTRON = {"learner": {"algorithm": "binary_relevance_perceptron"}, "decision": {"kind": "sign"}}
# After one epoch, the weights of the perceptrons are 2 for a and -2 for b, so a is predicted for all four.
MULTILABEL = [
    {"features": {"x": 1.0}, "labels": ["a"], "split": "train"},
    {"features": {"x": -1.0}, "labels": ["b"], "split": "train"},
    {"features": {"x": 0.5}, "labels": ["a"], "split": "test"},
    {"features": {"x": 0.5}, "labels": ["a", "b"], "split": "test"},
    {"features": {"x": 0.25}, "labels": ["b"], "split": "test"},
    {"features": {"x": 0.75}, "labels": ["b", "c"], "split": "test"},
]


def experiment(service: InProcessApi, examples: list[dict[str, Any]], *configurations: dict[str, Any]) -> str:
    dataset = service.call("POST", "/v1/datasets", 201, json={"name": "d", "examples": examples})["id"]
    in_process.work(service.ctx)
    body = {"dataset_id": dataset, "configurations": configurations, "measures": ["accuracy"]}
    created = service.call("POST", "/v1/experiments", 202, json=body)["id"]
    in_process.work(service.ctx)
    return f"/v1/experiments/{created}"


def test_the_confusion_of_all_folds_is_pooled(service: InProcessApi) -> None:
    path = experiment(service, SINGLE_LABEL, {"name": "Bayes", **BAYES})
    assert service.call("GET", f"{path}/confusion?configuration=0", 200) == {
        "configuration": 0,
        "name": "Bayes",
        "folds": [1, 3, 8],
        "confusion": [
            {"label": "a", "predicted": "a", "count": 3},
            {"label": "b", "predicted": "b", "count": 2},
            {"label": "b", "predicted": "a", "count": 1},
        ],
    }
    (wrong,) = service.call("GET", f"{path}/errors?configuration=0", 200)["items"]
    scores = {item["label"]: item["score"] for item in wrong.pop("scores")}
    assert wrong == {"id": "odd", "fold": 3, "n_wrong": 2, "labels": ["b"], "predicted": ["a"]}
    assert scores["a"] > scores["b"]


def test_the_worst_documents_of_multilabel_data_come_first(service: InProcessApi) -> None:
    path = experiment(service, MULTILABEL, PERCEPTRON)
    confusion = service.call("GET", f"{path}/confusion?configuration=0", 200)
    assert "confusion" not in confusion
    assert confusion["co_errors"] == [{"label": "b", "predicted": "a", "count": 2}]
    items = service.call("GET", f"{path}/errors?configuration=0", 200)["items"]
    assert items == [
        {
            "id": "6", "fold": 0, "n_wrong": 2, "labels": ["b", "c"], "predicted": ["a"],
            "scores": [{"label": "a", "score": 1.5}, {"label": "b", "score": -1.5}],
        },
        {
            "id": "5", "fold": 0, "n_wrong": 2, "labels": ["b"], "predicted": ["a"],
            "scores": [{"label": "a", "score": 0.5}, {"label": "b", "score": -0.5}],
        },
        {
            "id": "4", "fold": 0, "n_wrong": 1, "labels": ["a", "b"], "predicted": ["a"],
            "scores": [{"label": "a", "score": 1.0}, {"label": "b", "score": -1.0}],
        },
    ]  # fmt: skip
    first = service.call("GET", f"{path}/errors?configuration=0&limit=2", 200)
    second = service.call("GET", f"{path}/errors?configuration=0&cursor={first['next_cursor']}", 200)
    assert [*first["items"], *second["items"]] == items
    assert "next_cursor" not in second


def test_an_unknown_configuration_is_rejected(service: InProcessApi) -> None:
    path = experiment(service, MULTILABEL, PERCEPTRON)
    for resource in ("errors", "confusion"):
        response = service.send("GET", f"{path}/{resource}?configuration=1")
        problem = problem_of(response, 422, "invalid_request", "/query/configuration")
        assert problem["detail"] == "the experiment has configurations 0 to 0"
        problem_of(
            service.send("GET", f"/v1/experiments/exp_none/{resource}?configuration=0"), 404, "not_found"
        )


def test_a_running_experiment_has_the_errors_of_its_finished_cells(service: InProcessApi) -> None:
    dataset = service.call("POST", "/v1/datasets", 201, json={"name": "d", "examples": SINGLE_LABEL})["id"]
    in_process.work(service.ctx)
    body = {"dataset_id": dataset, "configurations": [BAYES]}
    created = service.call("POST", "/v1/experiments", 202, json=body)["id"]
    path = f"/v1/experiments/{created}"
    assert service.call("GET", f"{path}/errors?configuration=0", 200) == {"items": []}
    assert service.call("GET", f"{path}/confusion?configuration=0", 200)["folds"] == []
    in_process.work(service.ctx, 2)
    assert service.call("GET", f"{path}/confusion?configuration=0", 200)["folds"] == [1]


def test_the_errors_of_a_configuration_are_limited() -> None:
    from app.experiments.schemas import ExperimentCreate

    def request(folds: int) -> ExperimentCreate:
        return ExperimentCreate.model_validate(
            {"dataset_id": "ds_1", "configurations": [BAYES], "split": {"kind": "folds", "folds": folds}}
        )

    for folds in (2, 10, 50):
        limits = errors.limits_of_cell(request(folds))
        assert limits.examples * folds <= errors.MAX_DOCUMENTS
        assert limits.pairs * folds <= 10 * errors.MAX_PAIRS
