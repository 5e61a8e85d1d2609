"""Decisions over HTTP: the default, what a version tells about them, and rejected costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import in_process
import pytest
from in_process_api import InProcessApi, api
from stack import departments

from models.catalog import default_parameters

LEARNER = {"algorithm": "svm"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    folder = tmp_path_factory.mktemp("service")
    with pytest.MonkeyPatch.context() as patch, api(folder, migrated_sqlite, patch) as running:
        yield running


@pytest.fixture(scope="module")
def dataset(service: InProcessApi) -> str:
    return service.dataset()


@pytest.fixture(scope="module")
def version(service: InProcessApi, dataset: str) -> dict[str, Any]:
    """A version that was trained without a learner or a decision in the request."""
    return train(service, dataset, "m")


def train(
    service: InProcessApi, dataset: str, model: str, decision: dict[str, Any] | None = None
) -> dict[str, Any]:
    body: dict[str, Any] = {"dataset_id": dataset, "model": model}
    body |= {"decision": decision} if decision else {}
    job = service.call("POST", "/v1/training-jobs", 202, json=body)
    in_process.work(service.ctx)
    job = service.call("GET", f"/v1/training-jobs/{job['id']}", 200)
    assert job["state"] == "succeeded", job
    trained: dict[str, Any] = service.call("GET", f"/v1/models/{model}/versions/1", 200)
    return trained


def test_the_default_learner_is_the_recommended_one(version: dict[str, Any]) -> None:
    assert version["learner"] == default_parameters().model_dump(mode="json")


def test_the_default_decision_is_chosen_on_held_out_examples_and_reported(version: dict[str, Any]) -> None:
    assert version["decision"] == {"kind": "auto", "optimize": "f1_micro", "at_most": None}
    report = version["decision_report"]
    assert report["source"] == "folds"
    assert report["chosen"] in report["alternatives"]
    assert "cost" not in report["chosen"]["values"]
    assert [*version["thresholds"]] == version["labels"]


def test_a_list_of_versions_has_the_reports_but_not_the_thresholds(
    service: InProcessApi, version: dict[str, Any]
) -> None:
    (listed,) = service.call("GET", "/v1/models/m/versions", 200)["items"]
    of_labels = {"thresholds", "reference"}
    assert of_labels.isdisjoint(listed)
    assert listed == {name: value for name, value in version.items() if name not in of_labels}


def test_a_version_tells_what_it_predicts_for_held_out_documents(version: dict[str, Any]) -> None:
    reference = version["reference"]
    assert reference["source"] == "folds"
    assert [*reference["label_counts"]] == version["labels"]
    assert sum(reference["set_probabilities"]) == reference["examples"]
    assert 0 <= reference["mean_unknown_terms"] < 1


def test_a_label_that_is_never_predicted_has_no_threshold(service: InProcessApi, dataset: str) -> None:
    decision = {"kind": "target", "measure": "precision", "value": 1.0, "scope": "per_label"}
    version = train(service, dataset, "precise", decision)
    missing = set(version["labels"]) - set(version["thresholds"])
    assert version["decision_report"]["unreachable_labels"] == len(missing)
    assert version["decision_report"].get("alternatives") == []


def test_an_imported_version_keeps_its_report_and_its_thresholds(
    service: InProcessApi, version: dict[str, Any]
) -> None:
    content = service.send("GET", "/v1/models/m/versions/1/artifact").content
    headers = {"Content-Type": "application/octet-stream"}
    copy = service.call("POST", "/v1/models/copy/versions", 201, content=content, headers=headers)
    for name in ("decision", "decision_report", "thresholds", "reference"):
        assert copy[name] == version[name]


@pytest.mark.parametrize("route", ["training-jobs", "experiments"])
def test_a_cost_of_a_label_that_the_data_set_does_not_have_is_rejected(
    service: InProcessApi, dataset: str, route: str
) -> None:
    known = departments(1)[0]["labels"][0]
    costs = {known: {"missed_label": 2.0}, "a/b": {"false_label": 2.0}}
    decision = {"kind": "auto", "optimize": {"kind": "cost", "labels": costs}}
    configuration = {"learner": LEARNER, "decision": decision}
    body = (
        {"model": "m", **configuration} if route == "training-jobs" else {"configurations": [configuration]}
    )
    response = service.send("POST", f"/v1/{route}", json={"dataset_id": service.dataset(), **body})
    assert response.status_code == 422
    prefix = "" if route == "training-jobs" else "/configurations/0"
    assert [error["pointer"] for error in response.json()["errors"]] == [
        f"{prefix}/decision/optimize/labels/a~1b"
    ]
