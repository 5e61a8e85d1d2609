"""Experiments and evaluations over HTTP and on the command line, also if a worker is killed."""

from __future__ import annotations

import json
import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from commands import covey
from stack import Stack, departments
from waiting import wait_for

from app.experiments.api import MEDIA_TYPES

pytestmark = pytest.mark.system

SIGN = {"kind": "sign"}

THREE_CONFIGURATIONS: list[dict[str, Any]] = [
    {"learner": {"algorithm": "adaboost_lc", "rounds": 20}, "decision": SIGN},
    {"learner": {"algorithm": "mp_boost", "rounds": 30}, "decision": SIGN},
    {"learner": {"algorithm": "naive_bayes"}, "decision": SIGN},
]

FIVE_CONFIGURATIONS: list[dict[str, Any]] = [
    {"learner": {"algorithm": "adaboost_lc", "rounds": 30}, "decision": SIGN},
    *THREE_CONFIGURATIONS[1:],
    {"learner": {"algorithm": "svm"}, "decision": SIGN},
    {"learner": {"algorithm": "mlpp", "calibrated": True}, "decision": SIGN},
]


def start(stack: Stack, dataset_id: str, **fields: Any) -> dict[str, Any]:
    body = {
        "dataset_id": dataset_id,
        "split": {"kind": "folds", "folds": 3},
        "configurations": THREE_CONFIGURATIONS,
        "measures": ["f1_micro", "hamming_loss", "one_error"],
        **fields,
    }
    experiment: dict[str, Any] = stack.call("POST", "/v1/experiments", 202, json=body)
    return experiment


def wait_until_ended(stack: Stack, experiment: dict[str, Any]) -> dict[str, Any]:
    def get_if_ended() -> dict[str, Any] | None:
        current: dict[str, Any] = stack.call("GET", f"/v1/experiments/{experiment['id']}", 200)
        return current if current["state"] not in ("queued", "running") else None

    return wait_for(get_if_ended, what="the end of the experiment")


def test_every_cell_counts_once_if_a_worker_is_killed(killable_stack: Stack) -> None:
    stack = killable_stack
    dataset = stack.dataset(departments(240))
    body: dict[str, Any] = {"configurations": FIVE_CONFIGURATIONS, "split": {"kind": "folds", "folds": 5}}
    hold = stack.hold(kind="cell", step=9)
    experiment = start(stack, dataset["id"], **body)
    assert experiment["counts"] == {
        "total": 25, "queued": 25, "running": 0, "succeeded": 0, "failed": 0, "cancelled": 0
    }  # fmt: skip
    path = f"/v1/experiments/{experiment['id']}"
    hold.wait()
    (worker,) = stack.worker_pids()
    os.kill(worker, signal.SIGKILL)
    ended_experiment = wait_until_ended(stack, experiment)
    assert ended_experiment["state"] == "succeeded", ended_experiment
    assert ended_experiment["counts"]["succeeded"] == ended_experiment["counts"]["total"] == 25
    assert [(cell["configuration"], cell["fold"]) for cell in ended_experiment["cells"]] == [
        (i, fold) for i in range(5) for fold in range(5)
    ]
    assert max(cell["attempt"] for cell in ended_experiment["cells"]) == 2, "no cell has a second attempt"
    report = stack.call("GET", f"{path}/report", 200)
    for row in report["rows"]:
        assert row["complete"]
        assert row["folds"] == [0, 1, 2, 3, 4]
        assert all(len(summary["values"]) == 5 for summary in row["test"].values())
    # Every example is held out once: the sum would differ if a cell counted twice or a fold were wrong.
    for i in range(5):
        sizes = [
            cell["metrics"]["test"]["n_examples"]
            for cell in ended_experiment["cells"]
            if cell["configuration"] == i
        ]
        assert sum(sizes) == 240
    # An uninterrupted run has the same figures.
    uninterrupted = wait_until_ended(stack, start(stack, dataset["id"], **body))
    assert [cell["metrics"] for cell in uninterrupted["cells"]] == [
        cell["metrics"] for cell in ended_experiment["cells"]
    ]
    assert all(cell["attempt"] == 1 for cell in uninterrupted["cells"])


def test_a_report_has_the_requested_format(stack: Stack) -> None:
    dataset = stack.dataset(departments(60, words_each=3))
    experiment = start(stack, dataset["id"], name="formats", configurations=THREE_CONFIGURATIONS[1:])
    assert wait_until_ended(stack, experiment)["state"] == "succeeded"
    path = f"/v1/experiments/{experiment['id']}/report"
    for form, media in MEDIA_TYPES.items():
        by_query = stack.http.get(path, params={"format": form})
        by_accept = stack.http.get(path, headers={"Accept": media})
        assert by_query.status_code == by_accept.status_code == 200
        assert by_query.content == by_accept.content
        assert by_query.headers["Content-Type"].startswith(media)
    page = stack.http.get(path, headers={"Accept": "text/html"})
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "<svg" in page.text
    problem = stack.call("GET", path, 406, headers={"Accept": "image/png"})
    assert problem["code"] == "not_acceptable"
    assert stack.call("GET", "/v1/experiments?limit=1", 200)["items"][0]["id"] == experiment["id"]
    stack.call("GET", "/v1/experiments/exp_none", 404)
    stack.call("GET", "/v1/experiments/exp_none/report", 404)


def test_a_cancelled_experiment_keeps_finished_cells(stack: Stack) -> None:
    dataset = stack.dataset(departments(60))
    with ExitStack() as holds:
        for _ in range(3):
            holds.enter_context(stack.hold(kind="cell", configuration=1))
        experiment = start(
            stack, dataset["id"], configurations=[THREE_CONFIGURATIONS[2], THREE_CONFIGURATIONS[1]]
        )
        path = f"/v1/experiments/{experiment['id']}"

        def naive_bayes_finished() -> bool | None:
            return stack.call("GET", path, 200)["counts"]["succeeded"] == 3 or None

        wait_for(naive_bayes_finished, what="the cells of naive Bayes")
        stack.call("POST", f"{path}/cancel", 202)
        ended_experiment = wait_until_ended(stack, experiment)
    assert ended_experiment["state"] == "cancelled"
    assert (ended_experiment["counts"]["succeeded"], ended_experiment["counts"]["cancelled"]) == (3, 3)
    report = stack.call("GET", f"{path}/report", 200)
    assert [row["complete"] for row in report["rows"]] == [True, False]


def test_a_version_is_evaluated_on_its_own_parts_and_on_other_data(stack: Stack) -> None:
    dataset = stack.dataset(departments(80, words_each=2))
    assert stack.finished(stack.train(dataset["id"], model="evaluated")["id"])["state"] == "succeeded"
    path = "/v1/models/evaluated/versions/1"
    evaluation = stack.call("GET", f"{path}/evaluation", 200)
    assert evaluation["test"]["measures"] == stack.call("GET", path, 200)["metrics"]["test"]
    assert all("text" not in document for document in evaluation["train"]["worst"])
    with_texts = stack.call("GET", f"{path}/evaluation?texts=true", 200)
    assert all(document["text"] for document in with_texts["train"]["worst"])
    response = stack.http.post(f"{path}/evaluations", json={"dataset_id": dataset["id"], "part": "test"})
    assert response.status_code == 202

    def get_if_evaluated() -> dict[str, Any] | None:
        current: dict[str, Any] = stack.call("GET", response.headers["Location"], 200)
        return current if current["state"] not in ("queued", "running") else None

    result = wait_for(get_if_evaluated, what="the evaluation")
    assert result["state"] == "succeeded", result
    assert result["result"] == evaluation["test"]
    (listed,) = stack.call("GET", f"{path}/evaluations", 200)["items"]
    assert listed["id"] == result["id"]


def test_the_command_runs_an_experiment_from_a_file_and_writes_reports(stack: Stack, tmp_path: Path) -> None:
    dataset = stack.dataset(departments(60))
    file = tmp_path / "experiment.yaml"
    file.write_text(
        f"""\
name: from a file
dataset_id: {dataset["id"]}
split: {{kind: folds, folds: 2}}
configurations:
  - learner: {{algorithm: naive_bayes}}
  - name: boosting
    learner:
      algorithm: mp_boost
      rounds: 5
measures: [f1_micro, one_error]
"""
    )
    reports = [tmp_path / f"report{ending}" for ending in (".html", ".md", ".csv", ".json")]
    options = [option for path in reports for option in ("--report", str(path))]
    completed = covey("experiment", str(file), "--url", stack.url, *options)
    assert completed.returncode == 0, completed.stderr
    assert "4 cells" in completed.stdout
    assert "boosting" in completed.stdout
    report = json.loads(reports[3].read_text())
    assert report["name"] == "from a file"
    assert [row["complete"] for row in report["rows"]] == [True, True]
    assert reports[0].read_text().startswith("<!doctype html>")

    file.write_text(file.read_text().replace("naive_bayes", "magic"))
    rejected = covey("experiment", str(file), "--url", stack.url)
    assert rejected.returncode == 1
    assert "/configurations/0/learner" in rejected.stderr
