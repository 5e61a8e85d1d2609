"""Which examples a training and an experiment train, decide and evaluate on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import in_process
import numpy as np
import pytest
from pydantic import ValidationError

from app.context import AppContext
from app.db import tables
from app.errors import Invalid
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluationCreate
from app.experiments import service as experiments
from app.experiments.folds import ALWAYS_TRAINING, assign_folds
from app.experiments.report import service as reports
from app.experiments.report.formatting import describe_split
from app.experiments.schemas import ExperimentCreate
from app.registry import service as versions
from app.registry.schemas import PartMetrics
from app.training import service
from app.training.schemas import RandomSplit, TrainingJob, TrainingJobCreate
from models.data.store import StoredExamples


def rows(splits: Sequence[str | None]) -> list[dict[str, Any]]:
    return [
        {"text": f"{['bill', 'parcel'][i % 2]} n{i % 5}", "labels": [["bill", "parcel"][i % 2]]}
        | ({"split": split} if split else {})
        for i, split in enumerate(splits)
    ]


def train(ctx: AppContext, dataset_id: str, **fields: Any) -> TrainingJob:
    body = {"model": "m", "dataset_id": dataset_id, "learner": {"algorithm": "svm"}, **fields}
    job = service.create(ctx, TrainingJobCreate.model_validate(body), in_process.WITHOUT_KEY)
    in_process.work(ctx)
    return service.get(ctx.db, job.id)


def sizes(metrics: PartMetrics | None) -> tuple[float, float]:
    """Return the number of training and of test examples."""
    assert metrics is not None
    assert metrics.test is not None
    return metrics.train["n_examples"], metrics.test["n_examples"]


TUNED = {"decision": {"kind": "tuned_threshold"}}


def test_a_given_split_is_trained_on_train_tuned_on_validation_and_evaluated_on_test(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, rows(["train"] * 20 + ["validation"] * 10 + ["test"] * 6 + [None] * 3))
    job = train(ctx, dataset, **TUNED)
    assert job.state == "succeeded"
    version = versions.get_version(ctx.db, "m", 1)
    assert sizes(version.metrics) == (20, 6)
    assert version.facts["validation_examples"] == 10
    body = EvaluationCreate(dataset_id=dataset, part="validation")
    evaluation = evaluations.create(ctx, "m", 1, body, in_process.WITHOUT_KEY)
    in_process.work(ctx)
    result = evaluations.get(ctx, "m", 1, evaluation.id, texts=False).result
    assert result is not None
    assert result.measures["n_examples"] == 10


@pytest.mark.parametrize("scope", ["pooled", "per_label"])
def test_a_precision_that_one_validation_example_for_each_label_cannot_judge_predicts_nothing(
    ctx: AppContext, scope: str
) -> None:
    dataset = in_process.dataset(ctx, rows(["train"] * 20 + ["validation"] * 2))
    target = {"kind": "target", "measure": "precision", "value": 0.95, "scope": scope}
    assert train(ctx, dataset, decision=target).state == "succeeded"
    version = versions.get_version(ctx.db, "m", 1)
    assert version.decision_report is not None
    assert version.decision_report.fallback is None
    assert version.decision_report.unreachable_labels == 2
    assert any("no label is ever predicted" in warning for warning in version.warnings)


def test_an_evaluation_of_a_missing_validation_part_is_rejected(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, rows(["train"] * 20 + ["test"] * 6))
    train(ctx, dataset)
    body = EvaluationCreate(dataset_id=dataset, part="validation")
    with pytest.raises(Invalid, match="the data set has no validation part; set part to all"):
        evaluations.create(ctx, "m", 1, body, in_process.WITHOUT_KEY)


def test_a_random_split_keeps_an_example_of_each_label_for_training(ctx: AppContext) -> None:
    examples = rows([None] * 38) + [{"text": "parrot", "labels": ["parrot"]}] * 2
    different = [{**example, "text": f"{example['text']} m{i}"} for i, example in enumerate(examples)]
    dataset = in_process.dataset(ctx, different)
    for seed in range(4):
        split = {"kind": "random", "test_fraction": 0.25, "validation_fraction": 0.25}
        job = train(ctx, dataset, split=split, seed=seed, **TUNED)
        assert job.result is not None
        version = versions.get_version(ctx.db, "m", job.result.version)
        assert sizes(version.metrics) == (20, 10)
        assert version.facts["validation_examples"] == 10
        assert "parrot" in [
            row.label for row in evaluations.get_of_training(ctx, "m", seed + 1, texts=False).train.labels
        ]


@pytest.mark.parametrize(
    ("copies", "error"),
    [
        (1, "too few examples (2) for the 3 parts of the split; add examples"),
        (5, "too few different documents (2) for the 3 parts of the split, because equal documents stay"),
    ],
)
def test_a_random_split_needs_a_document_for_each_part(copies: int, error: str, ctx: AppContext) -> None:
    split = {"kind": "random", "test_fraction": 0.25, "validation_fraction": 0.25}
    job = train(ctx, in_process.dataset(ctx, rows([None] * 2) * copies), split=split)
    assert job.state == "failed"
    assert job.error is not None
    assert error in (job.error.detail or "")


def test_the_fractions_of_a_random_split_leave_training_examples() -> None:
    with pytest.raises(ValidationError, match="must add up to less than 1"):
        RandomSplit(kind="random", test_fraction=0.5, validation_fraction=0.5)


def test_equal_documents_stay_in_one_part(ctx: AppContext) -> None:
    """A version cannot know the labels of new texts, which are random; it knows those of copies by heart."""
    rng = np.random.default_rng(0)
    labels = rng.choice(["a", "b", "c"], 12).tolist()
    examples = [{"text": f"word{i} other{i}", "labels": [labels[i]]} for i in range(12)] * 10
    dataset = in_process.dataset(ctx, examples)
    values = []
    for seed in range(4):
        split = {"kind": "random", "test_fraction": 0.25}
        job = train(ctx, dataset, split=split, seed=seed, decision={"kind": "single_label"})
        assert job.result is not None
        version = versions.get_version(ctx.db, "m", job.result.version)
        assert sizes(version.metrics) == (90, 30)
        assert version.metrics is not None
        assert version.metrics.test is not None
        values.append(version.metrics.test["f1_micro"])
    assert np.mean(values) < 0.6
    assert "that occurs more than once: 120 of 120; those of one document stay" in version.warnings[0]
    assert version.warnings[0].endswith("the parts consist of 12 documents")


def test_a_version_has_warnings_of_documents_in_both_parts_and_of_contradicting_labels(
    ctx: AppContext,
) -> None:
    examples = rows(["train"] * 9 + ["test"] * 9)
    examples[0]["labels"] = ["parcel"]
    train(ctx, in_process.dataset(ctx, examples))
    leak, conflict, *_ = versions.get_version(ctx.db, "m", 1).warnings
    assert "documents of the test split that are also in the training split: 8;" in leak
    assert "equal documents with different labels: 1;" in conflict


@pytest.mark.parametrize(
    ("split", "described"),
    [
        (None, "the data set's own split"),
        (
            {"kind": "random", "test_fraction": 0.2, "validation_fraction": 0.3},
            "20% held out at random, 30% for validation",
        ),
    ],
    ids=["given", "random"],
)
def test_an_experiment_uses_validation_examples(
    ctx: AppContext, split: dict[str, Any] | None, described: str
) -> None:
    dataset = in_process.dataset(ctx, rows(["train"] * 20 + ["validation"] * 12 + ["test"] * 8))
    body = ExperimentCreate.model_validate(
        {"dataset_id": dataset, "configurations": [{"learner": {"algorithm": "svm"}, **TUNED}]}
        | ({"split": split} if split else {})
    )
    created = experiments.create(ctx, body, in_process.WITHOUT_KEY)
    in_process.work(ctx)
    cells = experiments.get(ctx.db, created.id).cells
    assert cells is not None
    (cell,) = cells
    assert cell.error is None
    assert sizes(cell.metrics) == (20, 8)
    assert describe_split(reports.get(ctx, created.id)) == described


def test_what_a_version_doubted_is_never_held_out(ctx: AppContext) -> None:
    examples = [
        {
            **row,
            "text": f"{row['text']} n{i}",
            "selected_by": ("doubt", "volunteered", "sample", None)[i // 10],
        }
        for i, row in enumerate(rows([None] * 40))
    ]
    dataset = in_process.dataset(ctx, examples)
    job = train(ctx, dataset, split={"kind": "random", "test_fraction": 0.25})
    assert job.state == "succeeded"
    assert sizes(versions.get_version(ctx.db, "m", 1).metrics) == (35, 5), "a quarter of the other examples"
    request = EvaluationCreate(dataset_id=dataset, part="all")
    evaluation = evaluations.create(ctx, "m", 1, request, in_process.WITHOUT_KEY)
    in_process.work(ctx)
    result = evaluations.get(ctx, "m", 1, evaluation.id, texts=False).result
    assert result is not None
    assert any("selected for a review: 20 of 40" in warning for warning in result.warnings)
    body = {
        "dataset_id": dataset,
        "split": {"kind": "folds", "folds": 4},
        "configurations": [{"name": "svm", "learner": {"algorithm": "svm"}}],
    }
    with ctx.db.read() as session:
        key = session.get_one(tables.Dataset, dataset).storage_key
    assert key is not None
    stored = StoredExamples(ctx.storage.local(key))
    folds = assign_folds(ExperimentCreate.model_validate(body), stored, None)
    assert (folds.of_example[:20] == ALWAYS_TRAINING).all()
    assert sorted(folds.of_example[20:]) == [fold for fold in range(4) for _ in range(5)]


def test_a_data_set_of_doubted_messages_only_cannot_be_split(ctx: AppContext) -> None:
    examples = [{**row, "selected_by": "doubt"} for row in rows([None] * 10)]
    job = train(ctx, in_process.dataset(ctx, examples), split={"kind": "random", "test_fraction": 0.25})
    assert job.error is not None
    assert job.error.detail.startswith("the data set has too few examples (0) for the 2 parts of the split")
    assert "The other 10 are for training only" in job.error.detail
    assert "review_sample" in job.error.detail
