"""Trainings, experiments and evaluations on a data set in which some labels are unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import in_process
import pytest
from typer.testing import CliRunner

from app.api.paging import Page
from app.cli.main import cli
from app.context import AppContext
from app.datasets import examples
from app.datasets import service as datasets
from app.errors import Invalid
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluationCreate
from app.experiments import service as experiments
from app.experiments.schemas import ExperimentCreate
from app.training import service
from app.training.schemas import TrainingJob, TrainingJobCreate


def create(ctx: AppContext, dataset_id: str, learner: str, **fields: Any) -> TrainingJob:
    body = {"model": "m", "dataset_id": dataset_id, "learner": {"algorithm": learner}, **fields}
    return service.create(ctx, TrainingJobCreate.model_validate(body), in_process.WITHOUT_KEY)


def rows(split_of_unknown: str = "train") -> list[dict[str, Any]]:
    """Texts about bills and parcels. Nobody knows whether some of the bills are complaints, too."""
    kinds: list[tuple[str, list[str], list[str]]] = [
        ("bill angry", ["bill", "complaint"], []),
        ("bill angry", ["bill"], ["complaint"]),
        ("parcel", ["parcel"], []),
        ("parcel angry", ["parcel", "complaint"], []),
        ("bill", ["bill"], []),
    ]
    return [
        {"text": f"{text} n{i}", "labels": labels, "split": split, "id": f"{split}{i}"}
        | ({"unknown_labels": unknown} if unknown and split == split_of_unknown else {})
        for split in ("train", "test")
        for i, (text, labels, unknown) in enumerate(kinds * 4)
    ]


@pytest.fixture
def dataset(ctx: AppContext) -> str:
    return in_process.dataset(ctx, rows())


def test_examples_and_labels_show_what_is_unknown(ctx: AppContext, dataset: str) -> None:
    first, second = examples.page(ctx, dataset, Page(after=None, limit=2)).items
    assert (first.unknown_labels, second.unknown_labels) == (None, ["complaint"])
    labels = datasets.page_labels(ctx.db, dataset, Page(after=None, limit=9)).items
    assert [(item.label, item.unknown) for item in labels] == [
        ("bill", None),
        ("complaint", 4),
        ("parcel", None),
    ]
    assert datasets.get(ctx.db, dataset).n_with_unknown == 4


@pytest.mark.parametrize("split", [None, {"kind": "none"}, {"kind": "random", "test_fraction": 0.5}])
def test_a_training_with_a_learner_of_all_labels_is_rejected(
    ctx: AppContext, dataset: str, split: dict[str, Any] | None
) -> None:
    with pytest.raises(Invalid, match="mp_boost trains all labels together") as rejected:
        create(ctx, dataset, "mp_boost", **({"split": split} if split else {}))
    assert [pointer for pointer, _ in rejected.value.errors] == ["/learner/algorithm"]
    assert in_process.queued(ctx) == []


def test_unknown_labels_of_held_out_examples_only_matter_if_they_are_trained_on(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, rows("test"))
    assert create(ctx, dataset, "mp_boost").request["split"] == {"kind": "given"}
    with pytest.raises(Invalid, match="mp_boost trains all labels together"):
        create(ctx, dataset, "mp_boost", split={"kind": "none"})


def test_a_training_leaves_unknown_labels_out_and_says_so(ctx: AppContext, dataset: str) -> None:
    job = create(ctx, dataset, "svm")
    in_process.work(ctx)
    assert service.get(ctx.db, job.id).state == "succeeded"
    measured = evaluations.get_of_training(ctx, "m", 1, texts=True)
    complaint = next(row for row in measured.train.labels if row.label == "complaint")
    assert (complaint.tp, complaint.fp, complaint.fn, complaint.tn) == (8, 0, 0, 8)
    assert "pairs of an example and an unknown label that are not measured: 4" in measured.train.warnings
    assert measured.train.worst == []
    body = EvaluationCreate(dataset_id=dataset, part="train")
    evaluation = evaluations.create(ctx, "m", 1, body, in_process.WITHOUT_KEY)
    in_process.work(ctx)
    result = evaluations.get(ctx, "m", 1, evaluation.id, texts=False).result
    assert result is not None
    assert result.measures == measured.train.measures


def experiment(dataset_id: str, learner: str, **fields: Any) -> ExperimentCreate:
    configurations = [{"learner": {"algorithm": learner}}]
    body = {"dataset_id": dataset_id, "configurations": configurations, **fields}
    return ExperimentCreate.model_validate(body)


def test_experiments_reject_learners_and_coverings_that_need_all_labels(
    ctx: AppContext, dataset: str
) -> None:
    coverings = {"all": {"kind": "hamming"}}
    for body, pointer in (
        (experiment(dataset, "mmp"), "/configurations/0/learner/algorithm"),
        (experiment(dataset, "svm", coverings=coverings), "/coverings"),
    ):
        with pytest.raises(Invalid) as rejected:
            experiments.create(ctx, body, in_process.WITHOUT_KEY)
        assert [place for place, _ in rejected.value.errors] == [pointer]


def test_an_experiment_leaves_unknown_labels_out(ctx: AppContext, dataset: str) -> None:
    body = experiment(dataset, "svm", split={"kind": "folds", "folds": 2})
    created = experiments.create(ctx, body, in_process.WITHOUT_KEY)
    in_process.work(ctx)
    cells = experiments.get(ctx.db, created.id).cells
    assert cells is not None
    assert [cell.state for cell in cells] == ["succeeded", "succeeded"]


def test_the_command_shows_for_how_many_examples_a_label_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(
        '{"text": "x", "labels": ["a"], "unknown_labels": ["b"]}\n{"text": "y", "labels": ["b"]}\n'
    )
    result = CliRunner().invoke(cli, ["data", "inspect", str(path)])
    assert "1 examples with unknown labels" in result.stdout
    assert ["b", "1", "1"] in [line.split() for line in result.stdout.splitlines()]
