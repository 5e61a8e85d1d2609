"""Evaluations of versions: stored at training time, and created on other data sets."""

from __future__ import annotations

from typing import Any

import in_process
import pytest
import rows
from sqlalchemy import func, select
from stack import departments

from app.api.paging import Page
from app.context import AppContext
from app.db import tables
from app.errors import Conflict, Invalid, NotFound
from app.evaluations import service
from app.evaluations.schemas import Evaluation, EvaluationCreate, PartEvaluation
from app.registry import aliases
from app.registry import service as versions
from app.registry.schemas import AliasPut
from app.training import service as training
from app.training.schemas import TrainingJobCreate


def train(ctx: AppContext, dataset_id: str, **fields: Any) -> None:
    """Trains a version of the model ``m``."""
    body = {
        "model": "m",
        "dataset_id": dataset_id,
        "learner": {"algorithm": "mp_boost", "rounds": 3},
        "decision": {"kind": "sign"},
        **fields,
    }
    job = training.create(ctx, TrainingJobCreate.model_validate(body), in_process.WITHOUT_KEY)
    in_process.work(ctx)
    ended = training.get(ctx.db, job.id)
    assert ended.state == "succeeded", ended.error


def evaluate(ctx: AppContext, dataset_id: str, **fields: Any) -> Evaluation:
    """Queues an evaluation of version 1 of the model ``m``."""
    body = EvaluationCreate.model_validate({"dataset_id": dataset_id, **fields})
    return service.create(ctx, "m", 1, body, in_process.WITHOUT_KEY)


def result(ctx: AppContext, evaluation: Evaluation, *, texts: bool = False) -> PartEvaluation:
    ended = service.get(ctx, "m", 1, evaluation.id, texts=texts)
    assert ended.state == "succeeded", ended.error
    assert ended.result is not None
    return ended.result


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


def test_a_training_stores_the_evaluation_of_its_version(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(80, words_each=2))
    train(ctx, dataset)
    evaluation = service.get_of_training(ctx, "m", 1, texts=False)
    version = versions.get_version(ctx.db, "m", 1)
    assert version.metrics is not None
    assert evaluation.train.measures == version.metrics.train
    assert evaluation.test is not None
    assert evaluation.test.measures == version.metrics.test
    assert evaluation.training_job_id == version.training_job_id
    labels = ["billing", "sales", "shipping", "support"]
    for part, n in ((evaluation.train, 60), (evaluation.test, 20)):
        assert [row.label for row in part.labels] == labels
        assert all(row.tp + row.fp + row.fn + row.tn == n for row in part.labels)
        for histogram, row in zip(part.histograms, part.labels, strict=True):
            assert histogram.label == row.label
            assert sum(histogram.with_label) == row.tp + row.fn
            assert sum(histogram.without_label) == row.fp + row.tn
        assert part.confusion is None
        assert part.co_errors is not None
        for pair in part.co_errors:
            missed, predicted = (
                next(r for r in part.labels if r.label == name) for name in (pair.label, pair.predicted)
            )
            assert pair.count <= min(missed.fn, predicted.fp)


def test_the_evaluation_of_a_calibrated_version_shows_how_true_its_probabilities_are(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(80, words_each=2))
    train(ctx, dataset, decision={"kind": "auto"})
    part = service.get_of_training(ctx, "m", 1, texts=False).test
    assert part is not None
    assert part.reliability is not None
    assert part.label_set_reliability is not None
    assert part.coverage_curve is not None
    assert sum(bin_.count for bin_ in part.reliability) == 20 * 4
    assert sum(bin_.count for bin_ in part.label_set_reliability) == 20
    observed = sum(
        bin_.count * bin_.observed_share for bin_ in part.label_set_reliability if bin_.observed_share
    )
    assert observed == pytest.approx(20 * part.measures["accuracy"])
    last = part.coverage_curve[-1]
    assert last.coverage == 1.0
    assert last.precision == pytest.approx(part.measures["accuracy"])
    coverages = [point.coverage for point in part.coverage_curve if point.precision >= 0.9]
    assert part.measures["coverage_at_precision_90"] == pytest.approx(max(coverages, default=0.0))
    assert 0 < part.measures["brier_score"] < 0.25


def test_an_evaluation_on_another_data_set_shows_the_probabilities_too(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(80, words_each=2))
    train(ctx, dataset, decision={"kind": "auto"})
    evaluation = evaluate(ctx, in_process.dataset(ctx, departments(30, words_each=2)))
    in_process.work(ctx)
    part = result(ctx, evaluation)
    assert part.label_set_reliability is not None
    assert sum(bin_.count for bin_ in part.label_set_reliability) == 30
    assert part.coverage_curve is not None
    assert "set_expected_calibration_error" in part.measures


def test_the_evaluation_of_a_version_without_probabilities_has_no_reliability(ctx: AppContext) -> None:
    train(ctx, in_process.dataset(ctx, departments(80, words_each=2)), decision={"kind": "sign"})
    part = service.get_of_training(ctx, "m", 1, texts=False).test
    assert part is not None
    assert (part.reliability, part.label_set_reliability, part.coverage_curve) == (None, None, None)
    assert "brier_score" not in part.measures


def test_the_worst_documents_have_the_most_wrong_labels_and_an_explanation(ctx: AppContext) -> None:
    examples = departments(80, words_each=2)
    dataset = in_process.dataset(ctx, examples)
    train(ctx, dataset)
    evaluation = service.get_of_training(ctx, "m", 1, texts=True)
    assert evaluation.test is not None
    by_id = {example["id"]: example for example in examples}
    for part, split in ((evaluation.train, "train"), (evaluation.test, "test")):
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
            for explanation in document.explanation:
                for term in explanation.terms:
                    assert term.words == [term.term]
                    for place in term.occurrences or []:
                        assert example["text"][place.start : place.end] == term.term


def test_texts_are_returned_only_if_requested_and_if_the_data_set_exists(ctx: AppContext) -> None:
    from app.datasets import service as datasets

    dataset = in_process.dataset(ctx, departments(80, words_each=2))
    train(ctx, dataset)
    assert all(
        document.text is None for document in service.get_of_training(ctx, "m", 1, texts=False).train.worst
    )
    datasets.delete(ctx, dataset)
    evaluation = service.get_of_training(ctx, "m", 1, texts=True)
    assert evaluation.dataset_id == dataset
    assert evaluation.train.worst
    assert all(document.text is None for document in evaluation.train.worst)


def test_single_label_data_has_a_confusion_matrix(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, single_label(60))
    train(ctx, dataset, decision={"kind": "single_label"})
    part = service.get_of_training(ctx, "m", 1, texts=False).train
    assert part.co_errors is None
    assert part.confusion is not None
    assert sum(pair.count for pair in part.confusion) == part.measures["n_examples"] == 45
    for row in part.labels:
        assert row.tp == sum(p.count for p in part.confusion if p.label == p.predicted == row.label)
        assert row.tp + row.fn == sum(p.count for p in part.confusion if p.label == row.label)


def test_a_version_is_evaluated_on_another_data_set(ctx: AppContext) -> None:
    train(ctx, in_process.dataset(ctx, departments(80)))
    other = in_process.dataset(
        ctx, [{"text": "invoice refund", "labels": ["billing"]}, {"text": "zzz", "labels": ["new"]}]
    )
    evaluation = evaluate(ctx, other)
    assert (evaluation.state, evaluation.part) == ("queued", "all")
    assert in_process.work(ctx) == ["evaluate"]
    part = result(ctx, evaluation)
    assert part.measures["n_examples"] == 2
    assert part.warnings == ["labels without a training example are not measured: new"]
    page = service.page(ctx.db, "m", 1, Page(10, None))
    assert [item.id for item in page.items] == [evaluation.id]
    assert page.items[0].result is None


def test_a_part_of_the_training_data_gives_the_same_evaluation_as_the_training(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(80))
    train(ctx, dataset)
    of_training = service.get_of_training(ctx, "m", 1, texts=False)
    evaluations = {part: evaluate(ctx, dataset, part=part) for part in ("train", "test", "all")}
    in_process.work(ctx)
    assert result(ctx, evaluations["train"]) == of_training.train
    assert result(ctx, evaluations["test"]) == of_training.test
    assert result(ctx, evaluations["all"]).measures["n_examples"] == 80


def test_numeric_examples_have_no_text(ctx: AppContext) -> None:
    examples = [{"features": {"a": float(i % 4), "b": 1.0}, "labels": [["x", "y"][i % 2]]} for i in range(12)]
    dataset = in_process.dataset(ctx, examples)
    train(ctx, dataset, learner={"algorithm": "svm"})
    evaluation = evaluate(ctx, dataset)
    in_process.work(ctx)
    assert all(document.text is None for document in result(ctx, evaluation, texts=True).worst)


def test_features_that_the_model_does_not_know_are_named_in_a_warning(ctx: AppContext) -> None:
    examples = [{"features": {"a": float(i % 4)}, "labels": [["x", "y"][i % 2]]} for i in range(12)]
    train(ctx, in_process.dataset(ctx, examples), learner={"algorithm": "svm"})
    others = in_process.dataset(ctx, [{"features": {"a": 1.0, "A": 2.0}, "labels": ["x"]}])
    evaluation = evaluate(ctx, others)
    in_process.work(ctx)
    (warning,) = (text for text in result(ctx, evaluation).warnings if "does not know" in text)
    assert warning.startswith("features that the model does not know: 1 ('A'); ")


def test_the_text_of_an_email_includes_its_subject(ctx: AppContext) -> None:
    examples = [
        {
            "email": {"subject": f"Bill {i}", "text": "please pay" if i % 3 else "hello"},
            "labels": [["x", "y"][i % 2]],
        }
        for i in range(12)
    ]
    dataset = in_process.dataset(ctx, examples)
    train(ctx, dataset, learner={"algorithm": "mp_boost", "rounds": 1})
    worst = service.get_of_training(ctx, "m", 1, texts=True).train.worst
    assert worst
    assert all(document.text is not None and document.text.startswith("Bill ") for document in worst)


@pytest.mark.parametrize(
    ("examples", "fields", "pointer"),
    [
        ([{"features": {"a": 1.0}, "labels": ["x"]}], {}, "/dataset_id"),
        ([{"text": "a", "labels": ["billing"]}], {"part": "test"}, "/part"),
    ],
)
def test_an_impossible_evaluation_is_rejected_immediately(
    ctx: AppContext, examples: list[dict[str, Any]], fields: dict[str, Any], pointer: str
) -> None:
    train(ctx, in_process.dataset(ctx, departments(40)))
    other = in_process.dataset(ctx, examples)
    with pytest.raises(Invalid) as rejected:
        evaluate(ctx, other, **fields)
    assert [actual for actual, _ in rejected.value.errors] == [pointer]
    assert in_process.queued(ctx) == []


def test_a_missing_version_or_evaluation_is_not_found(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(40))
    with pytest.raises(NotFound):
        service.get_of_training(ctx, "m", 1, texts=False)
    train(ctx, dataset)
    with pytest.raises(NotFound):
        service.get(ctx, "m", 1, "evl_none", texts=False)
    with pytest.raises(NotFound):
        service.create(ctx, "m", 2, EvaluationCreate(dataset_id=dataset), in_process.WITHOUT_KEY)
    assert in_process.queued(ctx) == []
    with ctx.db.read() as session:
        of_training = session.scalars(select(tables.Evaluation.id)).one()
    with pytest.raises(NotFound):
        service.get(ctx, "m", 1, of_training, texts=False)


def test_the_error_for_an_imported_version_explains_how_to_evaluate_it(ctx: AppContext) -> None:
    train(ctx, in_process.dataset(ctx, departments(40)))
    path, _ = versions.artifact_path(ctx, "m", 1)
    with ctx.storage.temporary_file() as copy:
        copy.write_bytes(path.read_bytes())
        versions.import_version(ctx, "copy", copy, in_process.WITHOUT_KEY)
    with pytest.raises(NotFound, match="to evaluate it on a data set") as rejected:
        service.get_of_training(ctx, "copy", 1, texts=False)
    assert rejected.value.code == "not_evaluated"


def test_a_version_cannot_be_deleted_while_it_is_evaluated(ctx: AppContext) -> None:
    dataset = in_process.dataset(ctx, departments(40))
    train(ctx, dataset)
    train(ctx, dataset)
    aliases.put(ctx.db, "m", "live", AliasPut(version=2), None)
    evaluation = evaluate(ctx, dataset)
    with pytest.raises(Conflict) as rejected:
        versions.delete_version(ctx, "m", 1)
    assert rejected.value.code == "version_in_use"
    with pytest.raises(Conflict):
        versions.delete_model(ctx, "m")
    in_process.work(ctx)
    assert result(ctx, evaluation).measures["n_examples"] == 40
    versions.delete_version(ctx, "m", 1)
    with ctx.db.read() as session:
        assert session.scalars(select(tables.Evaluation.version)).all() == [2]
    versions.delete_model(ctx, "m")
    with ctx.db.read() as session:
        assert session.scalar(select(func.count()).select_from(tables.Evaluation)) == 0


def test_a_failed_evaluation_has_an_error(ctx: AppContext) -> None:
    from workers import job_kinds

    dataset = in_process.dataset(ctx, departments(40))
    train(ctx, dataset)
    evaluation = evaluate(ctx, dataset)
    (job_id,) = in_process.queued(ctx)
    problem = {"type": "t", "title": "t", "status": 500, "code": "test", "detail": "for the test"}
    job_kinds.fail(ctx, rows.claimed(ctx.db, job_id), problem)
    ended = service.get(ctx, "m", 1, evaluation.id, texts=True)
    assert (ended.state, ended.result) == ("failed", None)
    assert ended.error is not None
    assert ended.error.detail == "for the test"
