"""What a version is worth: kept at training time, and measured on other data."""

from __future__ import annotations

from typing import Any

import in_process
import pytest
import rows
from sqlalchemy import func, select
from stack import departments

from app.context import AppContext
from app.db import tables
from app.evaluations import service
from app.evaluations.schemas import Evaluation, EvaluationCreate, PartEvaluation
from app.http.errors import Conflict, Invalid, NotFound
from app.http.paging import Page
from app.registry import service as versions
from app.registry.schemas import AliasPut
from app.training import service as training
from app.training.schemas import TrainingJobCreate


def trained(ctx: AppContext, dataset_id: str, **fields: Any) -> None:
    """Version 1 of the model ``m``."""
    body = {
        "model": "m",
        "dataset_id": dataset_id,
        "learner": {"algorithm": "mp_boost", "rounds": 3},
        **fields,
    }
    job = training.create(ctx, TrainingJobCreate.model_validate(body), in_process.ONCE)
    in_process.work(ctx)
    ended = training.get(ctx.db, job.id)
    assert ended.state == "succeeded", ended.error


def asked(ctx: AppContext, dataset_id: str, **fields: Any) -> Evaluation:
    body = EvaluationCreate.model_validate({"dataset_id": dataset_id, **fields})
    return service.create(ctx, "m", 1, body, in_process.ONCE)


def result(ctx: AppContext, made: Evaluation, *, texts: bool = False) -> PartEvaluation:
    found = service.get(ctx, "m", 1, made.id, texts=texts)
    assert found.state == "succeeded", found.error
    assert found.result is not None
    return found.result


def single_label(n: int) -> list[dict[str, Any]]:
    words = {"red": "rose tomato fire", "blue": "sea sky ink", "green": "grass leaf frog"}
    names = list(words)
    return [
        {
            "id": f"d{i}",
            "text": f"{words[names[i % 3]].split()[i % 2]} n{i % 7}" if i % 5 else "nothing",
            "labels": [names[i % 3]],
            "split": "test" if i % 4 == 0 else "train",
        }
        for i in range(n)
    ]


def test_a_training_keeps_what_its_version_is_worth(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(80, words_each=2))
    trained(ctx, dataset)
    found = service.of_training(ctx, "m", 1, texts=False)
    version = versions.get_version(ctx.db, "m", 1)
    assert version.metrics is not None
    assert found.train.measures == version.metrics.train
    assert found.test is not None
    assert found.test.measures == version.metrics.test
    assert found.training_job_id == version.training_job_id
    labels = ["billing", "sales", "shipping", "support"]
    for part, n in ((found.train, 60), (found.test, 20)):
        assert [row.label for row in part.labels] == labels
        assert all(row.tp + row.fp + row.fn + row.tn == n for row in part.labels)
        for histogram, row in zip(part.histograms, part.labels, strict=True):
            assert histogram.label == row.label
            assert sum(histogram.with_label) == row.tp + row.fn
            assert sum(histogram.without_label) == row.fp + row.tn
        assert part.confusion is None
        assert part.co_errors is not None
        for pair in part.co_errors:
            missed, given = (
                next(r for r in part.labels if r.label == name) for name in (pair.label, pair.predicted)
            )
            assert pair.count <= min(missed.fn, given.fp)


def test_the_worst_documents_are_those_with_most_wrong_labels_and_say_why(ctx: AppContext) -> None:
    examples = departments(80, words_each=2)
    dataset = in_process.dataset(ctx, examples)
    trained(ctx, dataset)
    found = service.of_training(ctx, "m", 1, texts=True)
    assert found.test is not None
    by_id = {example["id"]: example for example in examples}
    for part, split in ((found.train, "train"), (found.test, "test")):
        wrong = [len(set(document.labels) ^ set(document.predicted)) for document in part.worst]
        assert wrong == sorted(wrong, reverse=True)
        assert 0 < len(part.worst) <= 10
        assert sum(wrong) <= sum(row.fp + row.fn for row in part.labels)
        for document in part.worst:
            example = by_id[document.id]
            assert example["split"] == split
            assert document.labels == example["labels"]
            assert document.text == example["text"]
            assert {score.label for score in document.scores} == {*document.labels, *document.predicted}
            explained = {explanation.label for explanation in document.explanation}
            assert explained == set(document.labels) ^ set(document.predicted)
            terms = {term.term for explanation in document.explanation for term in explanation.terms}
            assert terms <= set(example["text"].split())


def test_texts_are_shown_only_where_they_were_asked_for_and_still_are(ctx: AppContext) -> None:
    from app.datasets import service as datasets

    dataset = in_process.dataset(ctx, departments(80, words_each=2))
    trained(ctx, dataset)
    assert all(
        document.text is None for document in service.of_training(ctx, "m", 1, texts=False).train.worst
    )
    datasets.delete(ctx, dataset)
    found = service.of_training(ctx, "m", 1, texts=True)
    assert found.dataset_id == dataset
    assert found.train.worst
    assert all(document.text is None for document in found.train.worst)


def test_single_label_data_has_a_confusion_matrix(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, single_label(60))
    trained(ctx, dataset, decision={"kind": "single_label"})
    part = service.of_training(ctx, "m", 1, texts=False).train
    assert part.co_errors is None
    assert part.confusion is not None
    assert sum(pair.count for pair in part.confusion) == part.measures["n_examples"] == 45
    for row in part.labels:
        assert row.tp == sum(p.count for p in part.confusion if p.label == p.predicted == row.label)
        assert row.tp + row.fn == sum(p.count for p in part.confusion if p.label == row.label)


def test_a_version_is_measured_on_another_data_set(ctx: AppContext) -> None:
    trained(ctx, in_process.dataset(ctx, departments(80)))
    other = in_process.dataset(
        ctx, [{"text": "invoice refund", "labels": ["billing"]}, {"text": "zzz", "labels": ["new"]}]
    )
    made = asked(ctx, other)
    assert (made.state, made.part) == ("queued", "all")
    assert in_process.work(ctx) == ["evaluate"]
    found = result(ctx, made)
    assert found.measures["n_examples"] == 2
    assert found.warnings == ["labels without a training example are not measured: new"]
    page = service.page(ctx.db, "m", 1, Page(10, None))
    assert [item.id for item in page.items] == [made.id]
    assert page.items[0].result is None


def test_a_part_of_a_data_set_measures_as_the_training_did(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(80))
    trained(ctx, dataset)
    kept = service.of_training(ctx, "m", 1, texts=False)
    made = {part: asked(ctx, dataset, part=part) for part in ("train", "test", "all")}
    in_process.work(ctx)
    assert result(ctx, made["train"]) == kept.train
    assert result(ctx, made["test"]) == kept.test
    assert result(ctx, made["all"]).measures["n_examples"] == 80


def test_numbers_have_no_text(ctx: AppContext) -> None:
    examples = [{"features": {"a": float(i % 4), "b": 1.0}, "labels": [["x", "y"][i % 2]]} for i in range(12)]
    dataset = in_process.dataset(ctx, examples)
    trained(ctx, dataset, learner={"algorithm": "svm"})
    made = asked(ctx, dataset)
    in_process.work(ctx)
    assert all(document.text is None for document in result(ctx, made, texts=True).worst)


def test_mail_is_shown_as_text(ctx: AppContext) -> None:
    examples = [
        {
            "email": {"subject": f"Bill {i}", "text": "please pay" if i % 3 else "hello"},
            "labels": [["x", "y"][i % 2]],
        }
        for i in range(12)
    ]
    dataset = in_process.dataset(ctx, examples)
    trained(ctx, dataset, learner={"algorithm": "mp_boost", "rounds": 1})
    worst = service.of_training(ctx, "m", 1, texts=True).train.worst
    assert worst
    assert all(document.text is not None and document.text.startswith("Bill ") for document in worst)


@pytest.mark.parametrize(
    ("examples", "fields", "pointer"),
    [
        ([{"features": {"a": 1.0}, "labels": ["x"]}], {}, "/dataset_id"),
        ([{"text": "a", "labels": ["billing"]}], {"part": "test"}, "/part"),
    ],
)
def test_what_cannot_be_measured_is_refused_at_once(
    ctx: AppContext, examples: list[dict[str, Any]], fields: dict[str, Any], pointer: str
) -> None:
    trained(ctx, in_process.dataset(ctx, departments(40)))
    other = in_process.dataset(ctx, examples)
    with pytest.raises(Invalid) as refused:
        asked(ctx, other, **fields)
    assert [place for place, _ in refused.value.errors] == [pointer]
    assert in_process.queued(ctx) == []


def test_what_is_not_there_is_not_found(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(40))
    with pytest.raises(NotFound):
        service.of_training(ctx, "m", 1, texts=False)
    trained(ctx, dataset)
    with pytest.raises(NotFound):
        service.get(ctx, "m", 1, "evl_none", texts=False)
    with pytest.raises(NotFound):
        service.create(ctx, "m", 2, EvaluationCreate(dataset_id=dataset), in_process.ONCE)
    assert in_process.queued(ctx) == []
    with ctx.db.read() as session:
        own = session.scalars(select(tables.Evaluation.id)).one()
    with pytest.raises(NotFound):
        service.get(ctx, "m", 1, own, texts=False)


def test_an_imported_version_says_how_it_can_be_measured(ctx: AppContext) -> None:
    trained(ctx, in_process.dataset(ctx, departments(40)))
    path, _ = versions.artifact_path(ctx, "m", 1)
    key = versions.artifact_key()
    with ctx.storage.create(key) as file:
        file.write(path.read_bytes())
    versions.import_version(ctx, "copy", key, in_process.ONCE)
    with pytest.raises(NotFound, match="evaluations to measure it") as refused:
        service.of_training(ctx, "copy", 1, texts=False)
    assert refused.value.code == "not_evaluated"


def test_a_version_that_is_being_measured_stays_and_takes_its_evaluations_along(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(40))
    trained(ctx, dataset)
    trained(ctx, dataset)
    versions.put_alias(ctx.db, "m", "live", AliasPut(version=2), None)
    made = asked(ctx, dataset)
    with pytest.raises(Conflict) as refused:
        versions.delete_version(ctx, "m", 1)
    assert refused.value.code == "version_in_use"
    with pytest.raises(Conflict):
        versions.delete_model(ctx, "m")
    in_process.work(ctx)
    assert result(ctx, made).measures["n_examples"] == 40
    versions.delete_version(ctx, "m", 1)
    with ctx.db.read() as session:
        assert session.scalars(select(tables.Evaluation.version)).all() == [2]
    versions.delete_model(ctx, "m")
    with ctx.db.read() as session:
        assert session.scalar(select(func.count()).select_from(tables.Evaluation)) == 0


def test_an_evaluation_that_failed_says_why(ctx: AppContext) -> None:
    from workers import job_kinds

    dataset = in_process.dataset(ctx, departments(40))
    trained(ctx, dataset)
    made = asked(ctx, dataset)
    (job_id,) = in_process.queued(ctx)
    problem = {"type": "t", "title": "t", "status": 500, "code": "test", "detail": "for the test"}
    job_kinds.fail(ctx, rows.claimed(ctx.db, job_id), problem)
    found = service.get(ctx, "m", 1, made.id, texts=True)
    assert (found.state, found.result) == ("failed", None)
    assert found.error is not None
    assert found.error.detail == "for the test"
