"""``covey experiment``: the file that it reads and the tables that it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from app.cli import experiment
from app.cli.experiment import ExperimentError

EXPERIMENT: dict[str, Any] = {
    "request": {"measures": ["f1_micro"], "configurations": [{"name": "[bold]svm"}, {"name": "bayes"}]},
    "cells": [
        {"configuration": 0, "fold": 0, "state": "succeeded", "metrics": {"test": {"f1_micro": 0.5}}},
        {"configuration": 0, "fold": 1, "state": "succeeded", "metrics": {"test": {"f1_micro": 0.75}}},
        {
            "configuration": 1,
            "fold": 0,
            "state": "running",
            "progress": {"phase": "training", "completed": 3, "total": 9, "unit": "rounds"},
        },
        {"configuration": 1, "fold": 1, "state": "failed", "error": {"detail": "negative features"}},
    ],
}


def rendered(renderable: Any) -> str:
    console = Console(width=120, record=True, quiet=True)
    console.quiet = False
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_the_live_table_has_a_mark_for_each_fold_and_means_so_far() -> None:
    text = rendered(experiment.cells_table(EXPERIMENT))
    svm, bayes = (next(line for line in text.splitlines() if name in line) for name in ("svm", "bayes"))
    assert "[bold]svm" in svm
    assert "✓✓" in svm
    assert "0.6250" in svm
    assert "▶✗" in bayes
    assert "training 3 of 9 rounds" in bayes
    assert "negative features" in bayes


def test_the_results_mark_incomplete_configurations() -> None:
    svm, bayes = {"mean": 0.5, "deviation": 0.1, "best": True}, {"mean": 0.25, "best": False}
    report = {
        "folds": 2,
        "measures": [{"name": "f1_micro", "better": "higher"}],
        "rows": [
            {"name": "svm", "complete": True, "folds": [0, 1], "test": {"f1_micro": svm}},
            {"name": "bayes", "complete": False, "folds": [0], "test": {"f1_micro": bayes}},
            {"name": "none", "complete": False, "folds": [], "test": {}},
        ],
    }
    text = rendered(experiment.results_table(report))
    assert "f1_micro ↑" in text
    assert "0.5000 ± 0.1000" in text
    assert "bayes (1 of 2 folds)" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- a\n- b\n", "dataset_id"),
        ("a: [1\n", "cannot be read"),
        ("!!python/name:os.system\n", "cannot be read"),
    ],
)
def test_a_file_that_is_not_an_experiment_is_rejected(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(content)
    with pytest.raises(ExperimentError, match=message):
        experiment.read_request(file)


def test_a_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="missing"):
        experiment.read_request(tmp_path / "missing.yaml")


def test_an_unknown_report_format_is_rejected_before_the_experiment_starts(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"report\.pdf"):
        experiment.run(Console(), tmp_path / "a.yaml", "http://127.0.0.1:9", None, [tmp_path / "report.pdf"])


def test_an_unreachable_service_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text("dataset_id: ds_1\n")
    with pytest.raises(ExperimentError, match="cannot connect"):
        experiment.run(Console(), file, "http://127.0.0.1:9", None, [])
