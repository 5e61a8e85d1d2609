"""Labels of which nobody knows whether they apply are read, checked, stored and counted."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.labels import LabelTree


def read(
    tmp_path: Path, *rows: dict[str, Any], tree: LabelTree | None = None
) -> tuple[StoredExamples, DatasetReport]:
    content = "\n".join(json.dumps({"text": f"text {i}"} | row) for i, row in enumerate(rows)).encode()
    report = ingest(io.BytesIO(content), "jsonl", tmp_path / "set.parquet", tree=tree)
    return StoredExamples(tmp_path / "set.parquet"), report


def test_unknown_labels_are_stored_and_counted(tmp_path: Path) -> None:
    stored, report = read(
        tmp_path,
        {"labels": ["a"], "unknown_labels": ["c", "b", "c"]},
        {"labels": ["b"], "unknown_labels": []},
        {"labels": [], "unknown_labels": ["b"], "split": "train"},
    )
    assert stored.unknown_sets() == [("b", "c"), (), ("b",)]
    assert stored.label_sets() == [("a",), ("b",), ()]
    assert stored.labels == ["a", "b", "c"]
    assert report.label_counts == {"a": 1, "b": 1, "c": 0}
    assert report.unknown_counts == {"b": 2, "c": 1}
    assert (report.n_with_unknown, report.n_training_with_unknown) == (2, 1)
    assert (
        "examples with unknown labels: 2 of 3 ('b', 'c'); only learners that train one label at a time can "
        "use the data set" in report.warnings
    )
    assert (
        "labels without a negative example, because they are unknown for every other example: 'b'"
        in report.warnings
    )


def test_examples_without_a_label_are_negative_for_the_labels_that_are_not_unknown(tmp_path: Path) -> None:
    _, report = read(tmp_path, {"labels": ["a"]}, {"labels": [], "unknown_labels": ["a"]})
    assert (
        "examples without a label: 1 of 2; they are negative examples of every label that is not unknown"
        in report.warnings
    )


def test_data_without_unknown_labels_reports_none(tmp_path: Path) -> None:
    stored, report = read(tmp_path, {"labels": ["a"]}, {"labels": []})
    assert stored.unknown_sets() == [(), ()]
    assert (report.unknown_counts, report.n_with_unknown) == ({}, 0)
    assert not any("unknown" in warning for warning in report.warnings)


def test_a_label_cannot_apply_and_be_unknown(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="line 1: the label 'a' applies and is also unknown"):
        read(tmp_path, {"labels": ["a", "b"], "unknown_labels": ["a"]})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("a", "line 1, /unknown_labels: unknown_labels must be a list of strings, not a string"),
        (["a", 1.5], "line 1, /unknown_labels/1"),
        ([""], "line 1, /unknown_labels/0: a label must not be empty or blank"),
    ],
)
def test_invalid_unknown_labels_are_rejected(tmp_path: Path, value: object, reason: str) -> None:
    with pytest.raises(BadDataError, match=reason):
        read(tmp_path, {"labels": [], "unknown_labels": value})


def test_ancestors_of_an_unknown_label_are_unknown_unless_they_apply(tmp_path: Path) -> None:
    tree = LabelTree({"a1": "a", "a11": "a1", "a12": "a1"})
    stored, _ = read(
        tmp_path,
        {"labels": [], "unknown_labels": ["a11"]},
        {"labels": ["a12"], "unknown_labels": ["a11"]},
        {"labels": [], "unknown_labels": ["a"]},
        {"labels": ["a11"], "unknown_labels": ["a1"]},
        tree=tree,
    )
    assert stored.unknown_sets() == [("a", "a1", "a11"), ("a11",), ("a",), ()]
    assert stored.label_sets() == [(), ("a", "a1", "a12"), (), ("a", "a1", "a11")]


def test_a_split_can_be_validation(tmp_path: Path) -> None:
    stored, report = read(
        tmp_path,
        {"labels": ["a"], "split": "train", "text": "x"},
        {"labels": ["a"], "split": "validation", "text": "x"},
        {"labels": [], "split": "test"},
        {"labels": []},
    )
    assert stored.splits() == ["train", "validation", "test", None]
    assert report.splits == {"train": 1, "validation": 1, "test": 1, "none": 1}
    assert "examples without a split: 1; the others are in train, validation or test" in report.warnings
    assert (
        "documents of the validation split that are also in the training split: 1; measures on the validation"
        " split will be too high" in report.warnings
    )


def test_a_validation_split_without_training_examples_is_reported(tmp_path: Path) -> None:
    _, report = read(tmp_path, {"labels": ["a"], "split": "validation"}, {"labels": [], "split": "test"})
    assert (
        "every example with a split is in the validation or test split; there are no training examples"
        in report.warnings
    )
