"""``covey experiment``: the file it reads, and the tables it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from app.experiments import command
from app.experiments.command import ExperimentError

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


def shown(renderable: Any) -> str:
    console = Console(width=120, record=True, quiet=True)
    console.quiet = False
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_the_live_table_has_a_mark_a_fold_and_means_so_far() -> None:
    text = shown(command.cells(EXPERIMENT))
    svm, bayes = (next(line for line in text.splitlines() if name in line) for name in ("svm", "bayes"))
    assert "[bold]svm" in svm
    assert "✓✓" in svm
    assert "0.6250" in svm
    assert "▶✗" in bayes
    assert "training 3 of 9 rounds" in bayes
    assert "negative features" in bayes


def test_the_results_tell_what_is_incomplete() -> None:
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
    text = shown(command.results(report))
    assert "f1_micro ↑" in text
    assert "0.5000 ± 0.1000" in text
    assert "bayes (1 of 2 folds)" in text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("- a\n- b\n", "dataset_id"),
        ("a: [1\n", "cannot be read"),
        ("!!python/name:os.system\n", "cannot be read"),
    ],
)
def test_a_file_that_is_no_experiment_is_refused(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(content)
    with pytest.raises(ExperimentError, match=said):
        command.read(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="nowhere"):
        command.read(tmp_path / "nowhere.yaml")


def test_what_cannot_be_written_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"report\.pdf"):
        command.run(Console(), tmp_path / "a.yaml", "http://127.0.0.1:9", None, [tmp_path / "report.pdf"])


def test_a_service_that_is_not_there_is_told(tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text("dataset_id: ds_1\n")
    with pytest.raises(ExperimentError, match="no service answers"):
        command.run(Console(), file, "http://127.0.0.1:9", None, [])
