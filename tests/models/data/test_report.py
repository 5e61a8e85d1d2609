"""The report of a data set: each warning names what a person should look at."""

from __future__ import annotations

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


def many(n: int, **example: Any) -> list[dict[str, Any]]:
    return [{"text": f"text {i} of {example}", **example} for i in range(n)]


def test_nothing_to_say_of_a_good_set(tmp_path: Path) -> None:
    report = report_on(tmp_path, *many(6, labels=["a"]), *many(6, labels=["b"]))
    assert report.warnings == []
    assert report.by_frequency() == [("a", 6), ("b", 6)]


def test_unlabelled_and_empty_documents(tmp_path: Path) -> None:
    report = report_on(
        tmp_path,
        *many(9, labels=["a"]),
        *many(2, labels=[]),
        {"text": " \n", "labels": ["a"]},
        *many(6, labels=["b"]),
    )
    assert (report.n_unlabelled, report.n_empty) == (2, 1)
    assert report.warnings == [
        "2 of 18 examples have no label; they count against every label",
        "1 documents are empty: line 12",
    ]


@pytest.mark.parametrize(
    "empty",
    [{"text": ""}, {"features": {"a": 0}}, {"email": {"to": "me"}}, {"raw_email": "DQo="}, {"features": {}}],
)
def test_what_is_empty(empty: dict[str, Any], tmp_path: Path) -> None:
    assert report_on(tmp_path, {**empty, "labels": ["a"]}).n_empty == 1


def test_duplicates_conflicts_and_shared_documents(tmp_path: Path) -> None:
    report = report_on(
        tmp_path,
        {"text": "same", "labels": ["a"], "split": "train"},
        {"text": "other", "labels": ["a"], "split": "train"},
        {"text": "same", "labels": ["a"], "split": "train"},
        {"text": "same", "labels": ["a", "b"], "split": "test"},
    )
    assert (report.n_duplicates, report.n_conflicting) == (2, 1)
    assert report.warnings[:3] == [
        "2 documents are the same as an earlier one",
        "1 of those have other labels than the earlier one: lines 1 and 4",
        "1 documents of the test part are also in the training part; measures will be too good",
    ]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from(["train", "test", None])),
        max_size=12,
    )
)
def test_duplicates_are_those_of_a_plain_comparison(examples: list[tuple[str, str, Any]]) -> None:
    finder = DuplicateFinder()
    for i, (text, label, split) in enumerate(examples):
        finder.add(Record(line=i + 1, labels=[label], text=text, split=split), [label])
    found = finder.found()
    first: dict[str, int] = {}
    repeated, conflicts = 0, []
    for i, (text, label, _) in enumerate(examples):
        if text in first:
            repeated += 1
            if examples[first[text]][1] != label:
                conflicts.append((first[text] + 1, i + 1))
        first.setdefault(text, i)
    trained = {text for text, _, split in examples if split == "train"}
    assert found.n_duplicates == repeated
    assert found.n_conflicting == len(conflicts)
    assert found.conflicts == sorted(conflicts)[:3]
    assert found.n_in_both_splits == sum(split == "test" and text in trained for text, _, split in examples)


def test_features_and_mail_are_compared_as_wholes(tmp_path: Path) -> None:
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


def test_labels_that_differ_by_case_or_spaces(tmp_path: Path) -> None:
    report = report_on(
        tmp_path, *many(5, labels=["Help Desk", "help  desk ", "helpdesk", "Straße", "other", "STRASSE"])
    )
    assert report.warnings[0] == (
        "labels that differ only by case or spaces: 'Help Desk' and 'help  desk ' and 'helpdesk'; "
        "'STRASSE' and 'Straße'"
    )


@pytest.mark.parametrize("text", ["GrÃ¼ÃŸe", "itâ€™s", "what \ufffd is", "a \x92 b"])
def test_wrongly_decoded_documents(text: str, tmp_path: Path) -> None:
    report = report_on(tmp_path, *many(6, labels=["a"]), {"text": text, "labels": ["b"]})
    assert "1 documents look as if they were decoded wrongly once" in report.warnings[0]
    assert report.warnings[0].endswith(": line 7")
    mail = report_on(tmp_path, {"email": {"subject": text}, "labels": ["b"]})
    assert any("decoded wrongly" in warning for warning in mail.warnings)


@pytest.mark.parametrize("text", ["Grüße", "São Paulo, ÃO", "«été» – 100 €", "日本語", "👩‍🚀"])
def test_rightly_decoded_documents(text: str, tmp_path: Path) -> None:
    report = report_on(
        tmp_path, *many(6, labels=["a"]), *many(6, labels=["b"]), {"text": text, "labels": ["b"]}
    )
    assert report.warnings == []


def test_rare_frequent_and_unbalanced_labels(tmp_path: Path) -> None:
    report = report_on(
        tmp_path,
        *many(396, labels=["all", "most"]),
        *many(4, labels=["all", "rare"]),
        tree=LabelTree({"most": "all", "rare": "all", "none": "all"}),
    )
    assert report.warnings == [
        "labels without an example: 'none'",
        "labels with fewer than 5 examples, too few to learn or to measure: 'rare'",
        "labels that every example has, which tell nothing: 'all'",
        "labels are far from balanced: 'all' has 400 examples, 'rare' 4; look at macro measures",
    ]
    report = report_on(tmp_path, *many(19, labels=["most"]), *many(1, labels=[]))
    assert "the label 'most' stands on 95% of all examples" not in report.warnings  # the only one
    report = report_on(tmp_path, *many(95, labels=["most"]), *many(5, labels=["b"]))
    assert "the label 'most' stands on 95% of all examples" in report.warnings


def test_parts(tmp_path: Path) -> None:
    report = report_on(
        tmp_path,
        *many(5, labels=["a"], split="train"),
        *many(5, labels=["a", "b"], split="test"),
        *many(2, labels=["a"]),
    )
    assert report.splits == {"train": 5, "test": 5, "none": 2}
    assert report.warnings[:2] == [
        "2 examples are in neither part, the others in train or test",
        "labels without an example in the training part, which no model can learn: 'b'",
    ]
    report = report_on(tmp_path, *many(5, labels=["a"], split="test"))
    assert (
        report.warnings[0] == "every example with a split is in the test part; there is nothing to train from"
    )


def test_labels_outside_the_tree(tmp_path: Path) -> None:
    report = report_on(tmp_path, *many(5, labels=["a", "z"]), tree=LabelTree({"a": "r"}))
    assert "labels that are not in the label tree: 'z'" in report.warnings


def test_refused_records_are_mentioned(tmp_path: Path) -> None:
    report = report_on(tmp_path, *many(5, labels=["a"]), {}, {}, max_bad_records=2)
    assert report.warnings[-1] == "2 records were refused and left out"


def test_inspecting_gives_the_same_report_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('{"features": {"a": 1, "b": 0}, "labels": ["x"]}\n')
    stored = ingest(io.BytesIO(path.read_bytes()), None, tmp_path / "set.parquet")
    assert inspect(path) == stored
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "set.parquet"]
    path.write_text("{}")
    with pytest.raises(BadDataError, match="line 1"):
        inspect(path, "jsonl")
