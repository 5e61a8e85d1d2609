"""Trainings and experiments on a data set whose examples have weights."""

from __future__ import annotations

from typing import Any

import in_process
import pytest

from app.api.paging import Page
from app.context import AppContext
from app.datasets import examples
from app.datasets import service as datasets
from app.errors import Invalid
from app.experiments import service as experiments
from app.experiments.schemas import ExperimentCreate
from app.registry import service as registry
from app.training import service
from app.training.schemas import TrainingJob, TrainingJobCreate


def create(ctx: AppContext, dataset_id: str, learner: str, **fields: Any) -> TrainingJob:
    body = {"model": "m", "dataset_id": dataset_id, "learner": {"algorithm": learner}, **fields}
    return service.create(ctx, TrainingJobCreate.model_validate(body), in_process.WITHOUT_KEY)


def rows(weighted_split: str = "train") -> list[dict[str, Any]]:
    return [
        {"text": f"{text} n{i}", "labels": [text], "split": split}
        | ({"weight": 2.5} if i % 3 == 0 and split == weighted_split else {})
        for split in ("train", "test")
        for i, text in enumerate(["bill", "parcel", "printer"] * 4)
    ]


@pytest.fixture
def dataset(ctx: AppContext) -> str:
    return in_process.dataset(ctx, rows())


def test_examples_show_their_weights(ctx: AppContext, dataset: str) -> None:
    items = examples.page(ctx, dataset, Page(after=None, limit=2)).items
    assert [item.weight for item in items] == [2.5, None]
    assert datasets.get(ctx.db, dataset).n_weighted == 4


def test_a_training_of_a_learner_without_weights_is_rejected(ctx: AppContext, dataset: str) -> None:
    with pytest.raises(Invalid, match="mmp does not accept weights; use one of") as rejected:
        create(ctx, dataset, "mmp")
    assert [pointer for pointer, _ in rejected.value.errors] == ["/learner/algorithm"]
    assert in_process.queued(ctx) == []


def test_weights_of_held_out_examples_only_matter_if_they_are_trained_on(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, rows("test"))
    create(ctx, dataset, "mmp", split={"kind": "given"})
    with pytest.raises(Invalid):
        create(ctx, dataset, "mmp", split={"kind": "none"})


def test_a_training_uses_the_weights_and_says_so(ctx: AppContext, dataset: str) -> None:
    job = create(ctx, dataset, "svm")
    in_process.work(ctx)
    assert service.get(ctx.db, job.id).state == "succeeded"
    version = registry.get_version(ctx.db, "m", 1)
    assert version.facts["weighted_examples"] == 4


def test_an_experiment_with_a_learner_without_weights_is_rejected(ctx: AppContext, dataset: str) -> None:
    body = {
        "dataset_id": dataset,
        "configurations": [{"learner": {"algorithm": "svm"}}, {"learner": {"algorithm": "h_m3"}}],
    }
    with pytest.raises(Invalid, match="h_m3 does not accept weights") as rejected:
        experiments.create(ctx, ExperimentCreate.model_validate(body), in_process.WITHOUT_KEY)
    assert [pointer for pointer, _ in rejected.value.errors] == ["/configurations/1/learner/algorithm"]
