"""Error and loss of a label covering are measures of experiments, trainings and evaluations."""

from __future__ import annotations

import math
from typing import Any

import in_process
import pytest
from contract import problem_of
from in_process_api import InProcessApi

# After one epoch, the weights of the perceptrons are 2 for a and -2 for b. So the scores are 1 and -1 for the
# first test example, and 0.5 and -0.5 for the second, for which both labels are wrong.
EXAMPLES = [
    {"features": {"x": 1.0}, "labels": ["a"], "split": "train"},
    {"features": {"x": -1.0}, "labels": ["b"], "split": "train"},
    {"features": {"x": 0.5}, "labels": ["a"], "split": "test"},
    {"features": {"x": 0.25}, "labels": ["b"], "split": "test"},
]
PERCEPTRON = {"learner": {"algorithm": "binary_relevance_perceptron"}, "decision": {"kind": "sign"}}
EACH = {"kind": "hamming"}
ALL = {"kind": "zero_one"}
LOSS_OF_EACH = math.log1p(math.exp(-1.0)) + math.log1p(math.exp(0.5))
LOSS_OF_ALL = (math.log1p(2 * math.exp(-1.0)) + math.log1p(2 * math.exp(0.5))) / 2
MISSPELLED = {"kind": "groups", "groups": [{"labels": ["a", "c"]}]}
PLAIN = (
    "accuracy, average_precision, coverage, error_set_size, f1_macro, f1_macro_one, f1_macro_zero, f1_micro, "
    "hamming_loss, is_error, margin, one_error, precision_macro, precision_micro, recall_macro, "
    "recall_micro, subset_zero_one"
)


def dataset_of(service: InProcessApi, examples: list[dict[str, Any]], **fields: Any) -> str:
    body = {"name": "d", "examples": examples, **fields}
    created: str = service.call("POST", "/v1/datasets", 201, json=body)["id"]
    in_process.work(service.ctx)
    return created


def report_of(service: InProcessApi, **fields: Any) -> dict[str, Any]:
    body = {"dataset_id": dataset_of(service, EXAMPLES), "configurations": [PERCEPTRON], **fields}
    created = service.call("POST", "/v1/experiments", 202, json=body)
    in_process.work(service.ctx)
    report: dict[str, Any] = service.call("GET", f"/v1/experiments/{created['id']}/report", 200)
    return report


def errors_of(service: InProcessApi, path: str, body: dict[str, Any]) -> list[dict[str, str]]:
    response = service.send("POST", path, json=body)
    errors: list[dict[str, str]] = problem_of(response, 422, response.json()["code"])["errors"]
    return errors


def test_an_experiment_has_a_column_of_each_covering_and_measure(service: InProcessApi) -> None:
    report = report_of(
        service,
        measures=["covering_loss", "hamming_loss", "covering_error"],
        coverings={"each": EACH, "all": ALL},
    )
    assert [(measure["name"], measure["better"]) for measure in report["measures"]] == [
        (name, "lower")
        for name in (
            "covering_loss.each", "covering_loss.all", "hamming_loss", "covering_error.each",
            "covering_error.all",
        )
    ]  # fmt: skip
    test = {name: summary["mean"] for name, summary in report["rows"][0]["test"].items()}
    assert test == {
        "covering_loss.each": pytest.approx(1.2873384),
        "covering_loss.all": pytest.approx(1.0047325),
        "hamming_loss": 0.5,
        "covering_error.each": 1.0,
        "covering_error.all": 0.5,
    }
    curves = {curve["measure"]: curve["out_of_folds"][-1] for curve in report["curves"]}
    assert curves["covering_loss.each"] == pytest.approx(LOSS_OF_EACH)
    assert curves["covering_error.all"] == 0.5


def test_a_measure_can_name_one_covering_and_the_errors_of_all_are_added(service: InProcessApi) -> None:
    report = report_of(service, measures=["covering_loss.all"], coverings={"each": EACH, "all": ALL})
    names = [measure["name"] for measure in report["measures"]]
    assert names == ["covering_loss.all", "covering_error.each", "covering_error.all"]
    assert report["rows"][0]["test"]["covering_loss.all"]["mean"] == pytest.approx(LOSS_OF_ALL)


def test_losses_of_two_configurations_are_compared_over_examples(service: InProcessApi) -> None:
    bayes = {"learner": {"algorithm": "svm"}, "decision": {"kind": "sign"}}
    report = report_of(
        service, configurations=[PERCEPTRON, bayes], measures=["covering_loss"], coverings={"all": ALL}
    )
    by_measure = {comparison["measure"]: comparison for comparison in report["comparisons"]}
    assert by_measure["covering_loss.all"]["over"] == "examples"
    assert {test["test"] for test in by_measure["covering_loss.all"]["tests"]} == {"wald", "wilcoxon"}


REJECTED: list[tuple[dict[str, Any], str, str]] = [
    (
        {"measures": ["f1_micro", "covering_loss"]}, "/measures/1",
        f"covering_loss needs a covering; define one in coverings; the measures are {PLAIN}",
    ),
    (
        {"measures": ["covering_error.some"], "coverings": {"one": ALL}}, "/measures/0",
        "covering_error.some needs a covering of this name in coverings",
    ),
    ({"measures": ["f1"]}, "/measures/0", f"the data set has no measure 'f1'; the measures are {PLAIN}"),
    ({"measures": ["confusion"]}, "/measures/0", "the data set has no measure 'confusion'"),
    ({"measures": ["hierarchical"]}, "/measures/0", "the data set has no measure 'hierarchical'"),
    ({"measures": ["f1_micro.all"], "coverings": {"all": ALL}}, "/measures/0", "the data set has"),
    (
        {"coverings": {"one": ALL, "two": MISSPELLED}}, "/coverings/two/groups/0/labels/1",
        "the covering names 'c'",
    ),
]  # fmt: skip


def test_measures_that_no_result_would_have_are_rejected(service: InProcessApi) -> None:
    dataset = dataset_of(service, EXAMPLES)
    for fields, pointer, message in REJECTED:
        body = {"dataset_id": dataset, "configurations": [PERCEPTRON], **fields}
        (error,) = errors_of(service, "/v1/experiments", body)
        assert error["pointer"] == pointer
        assert error["message"].startswith(message)


def test_a_tree_loss_is_a_measure_of_data_with_a_tree(service: InProcessApi) -> None:
    tree = dataset_of(service, EXAMPLES, label_tree={"a": "b"})
    body = {"dataset_id": tree, "configurations": [PERCEPTRON], "measures": ["hierarchical"]}
    service.call("POST", "/v1/experiments", 202, json=body)


def test_a_training_is_measured_by_its_covering(service: InProcessApi) -> None:
    dataset = dataset_of(service, EXAMPLES)
    body = {"model": "m", "dataset_id": dataset, **PERCEPTRON, "covering": EACH}
    service.call("POST", "/v1/training-jobs", 202, json=body)
    in_process.work(service.ctx)
    metrics = service.call("GET", "/v1/models/m/versions/1", 200)["metrics"]
    assert metrics["test"]["covering_loss"] == pytest.approx(LOSS_OF_EACH)
    assert metrics["test"]["covering_error"] == 1.0
    assert metrics["train"]["covering_error"] == 0.0
    evaluation = service.call("GET", "/v1/models/m/versions/1/evaluation", 200)
    assert evaluation["test"]["measures"]["covering_loss"] == pytest.approx(LOSS_OF_EACH)
    service.call("POST", "/v1/training-jobs", 202, json={**body, "model": "n", "covering": None})
    in_process.work(service.ctx)
    assert "covering_error" not in service.call("GET", "/v1/models/n/versions/1", 200)["metrics"]["test"]


def test_an_evaluation_is_measured_by_its_covering(service: InProcessApi) -> None:
    dataset = dataset_of(service, EXAMPLES)
    service.call("POST", "/v1/training-jobs", 202, json={"model": "m", "dataset_id": dataset, **PERCEPTRON})
    in_process.work(service.ctx)
    path = "/v1/models/m/versions/1/evaluations"
    created = service.call("POST", path, 202, json={"dataset_id": dataset, "part": "test", "covering": ALL})
    assert created["covering"] == ALL
    in_process.work(service.ctx)
    ended = service.call("GET", f"{path}/{created['id']}", 200)
    assert ended["covering"] == ALL
    assert ended["result"]["measures"]["covering_loss"] == pytest.approx(1.0047325)
    assert ended["result"]["measures"]["covering_error"] == 0.5
    plain = service.call("POST", path, 202, json={"dataset_id": dataset})
    assert "covering" not in plain


def test_coverings_that_do_not_fit_a_version_are_rejected(service: InProcessApi) -> None:
    dataset = dataset_of(service, EXAMPLES)
    training = {"model": "m", "dataset_id": dataset, **PERCEPTRON}
    (error,) = errors_of(service, "/v1/training-jobs", {**training, "covering": MISSPELLED})
    assert error["pointer"] == "/covering/groups/0/labels/1"
    service.call("POST", "/v1/training-jobs", 202, json=training)
    in_process.work(service.ctx)
    path = "/v1/models/m/versions/1/evaluations"
    (error,) = errors_of(service, path, {"dataset_id": dataset, "covering": MISSPELLED})
    assert error["pointer"] == "/covering/groups/0/labels/1"
    uncovered = {"kind": "groups", "groups": [{"labels": ["a"]}]}
    (error,) = errors_of(service, path, {"dataset_id": dataset, "covering": uncovered})
    assert error["pointer"].startswith("/covering")
    unknown = dataset_of(service, [{**EXAMPLES[0], "unknown_labels": ["b"]}])
    (error,) = errors_of(service, path, {"dataset_id": unknown, "covering": ALL})
    assert error == {
        "pointer": "/covering",
        "message": "labels of some examples are unknown, so covering errors are not defined; omit covering",
    }


PROMOTIONS: list[tuple[str, dict[str, Any], bool]] = [
    ("covering_loss", {}, False),
    ("f1", {}, False),
    ("hierarchical", {}, False),
    ("covering_loss", {"covering": ALL}, True),
    ("covering_error", {"learner": {"algorithm": "adaboost_lc", "rounds": 1}}, True),
    ("f1_micro", {}, True),
]


def test_a_promotion_needs_a_measure_that_the_version_has(service: InProcessApi) -> None:
    dataset = dataset_of(service, EXAMPLES)
    for metric, fields, fits in PROMOTIONS:
        promote = {"if_better": {"metric": metric}}
        body = {"model": "m", "dataset_id": dataset, **PERCEPTRON, "promote": promote, **fields}
        if fits:
            service.call("POST", "/v1/training-jobs", 202, json=body)
        else:
            (error,) = errors_of(service, "/v1/training-jobs", body)
            assert error["pointer"] == "/promote/if_better/metric"
            expected = f"the versions cannot be compared by {metric!r}; the measures are "
            assert error["message"].startswith(expected)


def test_measures_of_probabilities_need_decisions_that_hold_examples_out(service: InProcessApi) -> None:
    words = (("a", "red"), ("b", "blue"))
    rows = [{"text": f"{word} number{i}", "labels": [label]} for i in range(10) for label, word in words]
    dataset = dataset_of(service, rows)
    svm = {"learner": {"algorithm": "svm"}}
    measures = ["expected_calibration_error", "coverage_at_precision_95"]
    body = {"dataset_id": dataset, "split": {"kind": "folds", "folds": 2}, "measures": measures}
    mixed = [{**svm, "decision": {"kind": "auto"}}, {**svm, "decision": {"kind": "sign"}}]
    (error,) = errors_of(service, "/v1/experiments", {**body, "configurations": mixed})
    assert error["pointer"] == "/measures/0"
    assert error["message"].startswith("expected_calibration_error needs probabilities")
    created = service.call("POST", "/v1/experiments", 202, json={**body, "configurations": mixed[:1]})
    in_process.work(service.ctx)
    report = service.call("GET", f"/v1/experiments/{created['id']}/report", 200)
    assert set(report["rows"][0]["test"]) == {*measures}
    promote = {"promote": {"if_better": {"metric": "brier_score"}}}
    errors_of(service, "/v1/training-jobs", {"model": "m", "dataset_id": dataset, **svm, **promote})
