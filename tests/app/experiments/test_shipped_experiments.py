"""The experiment files in ``docs/examples`` are valid and run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import in_process
import pytest

from app.cli.experiment import read_request
from app.context import AppContext
from app.experiments import service as experiments
from app.experiments.schemas import ExperimentCreate

DOCS = Path(__file__).parents[3] / "docs"
FILES = sorted((DOCS / "examples").glob("*.yaml"))


def tree_examples() -> list[dict[str, Any]]:
    words = {"invoice": "money", "refund": "money", "printer": "it", "network": "it"}
    return [
        {"text": f"{word} {parent} n{i % 3}", "labels": [word]}
        for i in range(9)
        for word, parent in words.items()
    ]


def test_an_experiment_file_is_shipped() -> None:
    assert [file.name for file in FILES] == ["label-tree.yaml"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_shipped_experiment_runs(file: Path, ctx: AppContext) -> None:
    tree = {"invoice": "money", "refund": "money", "printer": "it", "network": "it"}
    dataset = in_process.dataset(ctx, tree_examples(), label_tree=tree)
    split = {"kind": "random", "test_fraction": 0.3}  # fewer cells than the folds of the file
    body = ExperimentCreate.model_validate({**read_request(file), "dataset_id": dataset, "split": split})
    created = experiments.create(ctx, body, in_process.WITHOUT_KEY)
    in_process.work(ctx)
    cells = experiments.get(ctx.db, created.id).cells
    assert cells is not None
    assert {cell.state for cell in cells} == {"succeeded"}
    assert len(cells) == len(body.configurations or [])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_shipped_experiment_is_linked_and_its_command_names_it(file: Path) -> None:
    pages = " ".join(page.read_text("utf-8") for page in DOCS.rglob("*.md"))
    assert f"examples/{file.name})" in pages
    assert re.search(rf"covey experiment docs/examples/{re.escape(file.name)} ", file.read_text("utf-8"))
