"""The report on a data set: its counts and warnings."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.data.ingestion.duplicates import DuplicateFinder
from models.data.ingestion.ingest import ingest
from models.data.ingestion.inspect import inspect
from models.data.ingestion.report import DatasetReport
from models.data.record import Record
from models.errors import BadDataError
from models.labels import LabelTree


def report_on(folder: Path, *examples: dict[str, Any], **options: Any) -> DatasetReport:
    content = "\n".join(json.dumps(example) for example in examples).encode()
    return ingest(io.BytesIO(content), "jsonl", folder / "set.parquet", **options)


def repeat(n: int, **example: Any) -> list[dict[str, Any]]:
    return [{"text": f"text {i} of {example}", **example} for i in range(n)]


def test_a_good_data_set_has_no_warnings(tmp_path: Path) -> None:
    report = report_on(tmp_path, *repeat(6, labels=["a"]), *repeat(6, labels=["b"]))
    assert report.warnings == []
    assert report.by_frequency() == [("a", 6), ("b", 6)]


def test_unlabelled_and_empty_documents(tmp_path: Path) -> None:
    report = report_on(
        tmp_path,
        *repeat(9, labels=["a"]),
        *repeat(2, labels=[]),
        {"text": " \n", "labels": ["a"]},
        *repeat(6, labels=["b"]),
    )
    assert (report.n_unlabelled, report.n_empty) == (2, 1)
    assert report.warnings == [
        "examples without a label: 2 of 18; they are negative examples of every label",
        "empty documents: 1 (line 12)",
    ]


@pytest.mark.parametrize(
    "empty",
    [{"text": ""}, {"features": {"a": 0}}, {"email": {"to": "me"}}, {"raw_email": "DQo="}, {"features": {}}],
)
def test_each_kind_of_empty_document_is_counted(empty: dict[str, Any], tmp_path: Path) -> None:
    assert report_on(tmp_path, {**empty, "labels": ["a"]}).n_empty == 1


def test_duplicates_conflicts_and_documents_in_several_parts(tmp_path: Path) -> None:
    report = report_on(
        tmp_path,
        {"text": "same", "labels": ["a"], "split": "train", "fold": 0},
        {"text": "other", "labels": ["a"], "split": "train", "fold": 0},
        {"text": "same", "labels": ["a"], "split": "train", "fold": 0},
        {"text": "same", "labels": ["a", "b"], "split": "test", "fold": 1},
    )
    assert (report.n_duplicates, report.n_conflicting) == (2, 1)
    assert report.warnings[:4] == [
        "documents that are equal to an earlier document: 2",
        "equal documents with different labels: 1 (lines 1 and 4)",
        (
            "documents of the test split that are also in the training split: 1; "
            "measures on the test split will be too high"
        ),
        ("documents that are in several folds: 3; measures of experiments with these folds will be too high"),
    ]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from("xy"),
            st.sampled_from(["train", "validation", "test", None]),
            st.sampled_from([0, 1, None]),
        ),
        max_size=12,
    )
)
def test_duplicate_counts_equal_a_naive_comparison(examples: list[tuple[str, str, Any, Any]]) -> None:
    finder = DuplicateFinder()
    for i, (text, label, split, fold) in enumerate(examples):
        finder.add(Record(line=i + 1, labels=[label], text=text, split=split, fold=fold), [label])
    summary = finder.summary()
    first: dict[str, int] = {}
    n_duplicates, conflicts = 0, []
    for i, (text, label, *_) in enumerate(examples):
        if text in first:
            n_duplicates += 1
            if examples[first[text]][1] != label:
                conflicts.append((first[text] + 1, i + 1))
        first.setdefault(text, i)
    in_train = {text for text, _, split, _ in examples if split == "train"}
    folds = {text: {fold for other, _, _, fold in examples if other == text} - {None} for text in "abc"}
    texts = [text for text, *_ in examples]
    assert summary.n_duplicates == n_duplicates
    assert summary.n_equal == sum(texts.count(text) > 1 for text in texts)
    assert summary.n_conflicting == len(conflicts)
    assert summary.conflicting_lines == sorted(conflicts)[:3]
    assert summary.n_test_in_training == sum(
        split == "test" and text in in_train for text, _, split, _ in examples
    )
    assert summary.n_validation_in_training == sum(
        split == "validation" and text in in_train for text, _, split, _ in examples
    )
    assert summary.n_in_several_folds == sum(
        fold is not None and len(folds[text]) > 1 for text, _, _, fold in examples
    )


def test_features_and_mail_are_compared_as_a_whole(tmp_path: Path) -> None:
    numeric = report_on(
        tmp_path,
        {"features": {"a": 1, "b": 2}, "labels": ["x"]},
        {"features": {"b": 2, "a": 1}, "labels": ["x"]},
        {"features": {"a": 1}, "labels": ["x"]},
    )
    mail = report_on(
        tmp_path,
        {"email": {"text": "a"}, "labels": ["x"]},
        {"email": {"html": "a"}, "labels": ["x"]},
        {"email": {"text": "a"}, "labels": ["x"]},
    )
    assert numeric.n_duplicates == mail.n_duplicates == 1


def raw(content: bytes, label: str) -> dict[str, Any]:
    return {"raw_email": base64.b64encode(content).decode(), "labels": [label]}


def test_copies_of_a_message_with_contradicting_labels_are_a_conflict(tmp_path: Path) -> None:
    content = b"Received: from one\nSubject: Invoice\n\nHello\n"
    report = report_on(tmp_path, raw(content, "a"), raw(content.replace(b"one", b"two"), "b"))
    assert (report.n_duplicates, report.n_conflicting) == (1, 1)
    assert "equal documents with different labels: 1 (lines 1 and 2)" in report.warnings


@pytest.mark.parametrize("text", ["GrÃ¼ÃŸe", "itâ€™s", "what \ufffd is", "a \x92 b"])
def test_wrongly_decoded_documents_get_a_warning(text: str, tmp_path: Path) -> None:
    report = report_on(tmp_path, *repeat(6, labels=["a"]), {"text": text, "labels": ["b"]})
    assert "documents with signs of a wrong character encoding" in report.warnings[0]
    assert report.warnings[0].endswith(": 1 (line 7)")
    mail = report_on(tmp_path, {"email": {"subject": text}, "labels": ["b"]})
    assert any("wrong character encoding" in warning for warning in mail.warnings)


@pytest.mark.parametrize("text", ["Grüße", "São Paulo, ÃO", "«été» – 100 €", "日本語", "👩‍🚀"])
def test_correctly_decoded_documents_get_no_warning(text: str, tmp_path: Path) -> None:
    report = report_on(
        tmp_path, *repeat(6, labels=["a"]), *repeat(6, labels=["b"]), {"text": text, "labels": ["b"]}
    )
    assert report.warnings == []


def test_rare_frequent_and_imbalanced_labels(tmp_path: Path) -> None:
    report = report_on(
        tmp_path,
        *repeat(396, labels=["all", "most"]),
        *repeat(4, labels=["all", "rare"]),
        tree=LabelTree({"most": "all", "rare": "all", "unused": "all"}),
    )
    assert report.warnings == [
        "labels without an example: 'unused'",
        "labels with fewer than 5 examples, too few for training and evaluation: 'rare'",
        "labels that every example has, which carry no information: 'all'",
        "the labels are imbalanced: 'all' has 400 examples, 'rare' has 4; use macro-averaged measures",
    ]
    report = report_on(tmp_path, *repeat(19, labels=["most"]), *repeat(1, labels=[]))
    assert "the label 'most' applies to 95% of all examples" not in report.warnings  # it is the only label
    report = report_on(tmp_path, *repeat(95, labels=["most"]), *repeat(5, labels=["b"]))
    assert "the label 'most' applies to 95% of all examples" in report.warnings


def test_splits(tmp_path: Path) -> None:
    report = report_on(
        tmp_path,
        *repeat(5, labels=["a"], split="train"),
        *repeat(5, labels=["a", "b"], split="test"),
        *repeat(2, labels=["a"]),
    )
    assert report.splits == {"train": 5, "validation": 0, "test": 5, "none": 2}
    assert report.warnings[:2] == [
        "examples without a split: 2; the others are in train or test",
        "labels without an example in the training split, which no model can learn: 'b'",
    ]
    report = report_on(tmp_path, *repeat(5, labels=["a"], split="test"))
    assert (
        report.warnings[0]
        == "every example with a split is in the test split; there are no training examples"
    )


def test_labels_outside_the_tree(tmp_path: Path) -> None:
    report = report_on(tmp_path, *repeat(5, labels=["a", "z"]), tree=LabelTree({"a": "r"}))
    assert "labels that are not in the label tree: 'z'" in report.warnings


def test_rejected_records_are_counted(tmp_path: Path) -> None:
    report = report_on(tmp_path, *repeat(5, labels=["a"]), {}, {}, max_bad_records=2)
    assert report.warnings[-1] == "rejected records: 2; they are not in the data set"


def test_inspecting_gives_the_same_report_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('{"features": {"a": 1, "b": 0}, "labels": ["x"]}\n')
    stored = ingest(io.BytesIO(path.read_bytes()), None, tmp_path / "set.parquet")
    assert inspect(path) == stored
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "set.parquet"]
    path.write_text("{}")
    with pytest.raises(BadDataError, match="line 1"):
        inspect(path, "jsonl")
