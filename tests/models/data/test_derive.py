"""Data sets that are made from other data sets."""

from __future__ import annotations

import base64
import gc
import io
import json
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from models.data import store
from models.data.examples import Examples
from models.data.export import export_jsonl
from models.data.ingestion.derive import Source, derive
from models.data.ingestion.example_filter import ExampleFilter
from models.data.ingestion.ingest import ingest
from models.data.ingestion.label_changes import LabelChanges
from models.data.limits import IngestLimits
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.labels import LabelTree


def stored(folder: Path, name: str, examples: list[dict[str, Any]], **options: Any) -> Source:
    """Return a stored data set as a source."""
    content = "".join(json.dumps(example) + "\n" for example in examples).encode()
    path = folder / f"{name}.parquet"
    ingest(io.BytesIO(content), "jsonl", path, **options)
    return Source(f"data set {name}", StoredExamples(path))


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the examples of a stored data set as they would be uploaded."""
    out = io.BytesIO()
    export_jsonl(StoredExamples(path), out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def text(id_: str, *labels: str, **fields: Any) -> dict[str, Any]:
    return {"id": id_, "text": f"text {id_}", "labels": list(labels), **fields}


RAW = b"Message-ID: <1@example.org>\r\nFrom: ann@example.org\r\nSubject: Bill\r\n\r\nWrong.\r\n"


@pytest.mark.parametrize(
    "examples",
    [
        [
            text("a", "x", split="train", weight=2.0, fold=1, selected_by="doubt"),
            text("b", split="test", unknown_labels=["x"]),
        ],
        [
            {"id": "a", "features": {"one": 1.5, "two": 0.0}, "labels": ["x"]},
            {"id": "b", "features": {"three": -2.0}, "labels": []},
        ],
        [
            {"id": "a", "raw_email": base64.b64encode(RAW).decode(), "labels": ["x"]},
            {
                "id": "b",
                "email": {"subject": "s", "list_id": "l", "attachments": [{"name": "a.pdf"}]},
                "labels": ["y"],
            },
        ],
    ],
)
def test_a_copy_has_the_same_examples(examples: list[dict[str, Any]], tmp_path: Path) -> None:
    source = stored(tmp_path, "a", examples)
    report, counts = derive([source], tmp_path / "copy.parquet")
    assert lines(tmp_path / "copy.parquet") == lines(source.examples.path)
    assert report.n_examples == counts[0].n_used == len(examples)
    assert StoredExamples(tmp_path / "copy.parquet").feature_names == source.examples.feature_names


def test_data_sets_are_appended_in_their_order(tmp_path: Path) -> None:
    sources = [
        stored(tmp_path, "a", [{"id": "1", "features": {"f": 1.0}, "labels": ["x"]}]),
        stored(tmp_path, "b", [{"id": "2", "features": {"g": 2.0, "f": 3.0}, "labels": ["y"]}]),
    ]
    derive(sources, tmp_path / "both.parquet")
    examples = lines(tmp_path / "both.parquet")
    assert [(example["id"], example["labels"]) for example in examples] == [("1", ["x"]), ("2", ["y"])]
    assert [example["features"] for example in examples] == [{"f": 1.0}, {"f": 3.0, "g": 2.0}]


def test_the_last_example_with_an_id_wins_or_is_an_error_or_gets_a_new_id(tmp_path: Path) -> None:
    sources = [
        stored(tmp_path, "a", [text("1", "old"), text("2", "old")]),
        stored(tmp_path, "b", [text("2", "new"), text("3", "new")]),
        stored(tmp_path, "c", [text("3", "newest")]),
    ]
    target = tmp_path / "all.parquet"
    with pytest.raises(BadDataError, match=r"data set b and data set c both have .* id '3'; set"):
        derive(sources, target)
    assert not target.exists()
    _, counts = derive(sources, target, repeated_ids="last")
    assert [(example["id"], example["labels"]) for example in lines(target)] == [
        ("1", ["old"]),
        ("2", ["new"]),
        ("3", ["newest"]),
    ]
    assert [(count.n_examples, count.n_replaced, count.n_used) for count in counts] == [
        (2, 1, 1),
        (2, 1, 1),
        (1, 0, 1),
    ]
    derive(sources, target, repeated_ids="renumber")
    assert [example["id"] for example in lines(target)] == ["1", "2", "3", "4", "5"]


def test_an_example_that_the_filter_drops_replaces_no_other(tmp_path: Path) -> None:
    sources = [
        stored(tmp_path, "a", [text("1", "x")]),
        stored(tmp_path, "b", [text("1", "y"), text("2", "x")]),
    ]
    derive(sources, tmp_path / "t.parquet", filter=ExampleFilter(labels={"x"}), repeated_ids="last")
    assert [(example["id"], example["labels"]) for example in lines(tmp_path / "t.parquet")] == [
        ("1", ["x"]),
        ("2", ["x"]),
    ]


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        (ExampleFilter(labels={"x", "y"}), "abd"),
        (ExampleFilter(labels={"x", "y"}, without_labels={"y"}), "ad"),
        (ExampleFilter(ids={"a", "c"}), "ac"),
        (ExampleFilter(without_ids={"a"}), "bcd"),
        (ExampleFilter(splits={"train"}), "a"),
        (ExampleFilter(splits={"test", None}), "bcd"),
        (ExampleFilter(labelled=False), "c"),
        (ExampleFilter(labelled=True, with_text=True), "ab"),
        (ExampleFilter(with_text=False), "d"),
    ],
)
def test_a_filter_keeps_the_examples_that_meet_all_conditions(
    conditions: ExampleFilter, kept: str, tmp_path: Path
) -> None:
    examples = [
        text("a", "x", split="train"),
        text("b", "x", "y", split="test"),
        text("c"),
        {"id": "d", "text": " \n", "labels": ["x"]},
    ]
    source = stored(tmp_path, "a", examples)
    _, (counts,) = derive([source], tmp_path / "t.parquet", filter=conditions)
    assert "".join(example["id"] for example in lines(tmp_path / "t.parquet")) == kept
    assert (counts.n_filtered, counts.n_used) == (4 - len(kept), len(kept))


def test_the_text_of_mail_and_the_features_are_content(tmp_path: Path) -> None:
    raw = base64.b64encode(b"From: ann@example.org\r\n\r\n\r\n").decode()
    mail: list[dict[str, Any]] = [
        {"id": "a", "raw_email": base64.b64encode(RAW).decode(), "labels": ["x"]},
        {"id": "b", "raw_email": raw, "labels": ["x"]},
        {"id": "c", "email": {"from": "ann@example.org"}, "labels": ["x"]},
        {"id": "d", "email": {"html": "<p>hi</p>"}, "labels": ["x"]},
    ]
    numbers: list[dict[str, Any]] = [
        {"id": "a", "features": {"f": 1.0}, "labels": ["x"]},
        {"id": "b", "features": {"f": 0.0}, "labels": ["x"]},
    ]
    cases: list[tuple[str, list[dict[str, Any]], list[str]]] = [
        ("mail", mail, ["a", "d"]),
        ("numbers", numbers, ["a"]),
    ]
    for name, examples, kept in cases:
        target = tmp_path / "t.parquet"
        derive([stored(tmp_path, name, examples)], target, filter=ExampleFilter(with_text=True))
        assert [example["id"] for example in lines(target)] == kept


def test_a_filter_does_not_apply_to_appended_examples(tmp_path: Path) -> None:
    added = stored(tmp_path, "b", [text("2")])
    sources = [
        stored(tmp_path, "a", [text("1"), text("3", "x")]),
        Source("new", added.examples, filtered=False),
    ]
    derive(sources, tmp_path / "t.parquet", filter=ExampleFilter(labelled=True))
    assert [example["id"] for example in lines(tmp_path / "t.parquet")] == ["3", "2"]


def test_names_in_the_filter_that_do_not_occur_give_a_warning(tmp_path: Path) -> None:
    source = stored(tmp_path, "a", [text("1", "x"), text("2", "y")])
    conditions = ExampleFilter(labels={"x", "biling"}, without_ids={"2", "77"})
    report, _ = derive([source], tmp_path / "t.parquet", filter=conditions)
    assert "labels in the filter that no example has: 'biling'" in report.warnings
    assert "ids in the filter that no example has: '77'" in report.warnings


def test_a_filter_that_keeps_nothing_is_an_error(tmp_path: Path) -> None:
    source = stored(tmp_path, "a", [text("1", "x")])
    with pytest.raises(BadDataError, match="no example meets the conditions of the filter"):
        derive([source], tmp_path / "t.parquet", filter=ExampleFilter(splits={"test"}))


def test_labels_are_renamed_merged_and_removed(tmp_path: Path) -> None:
    source = stored(
        tmp_path,
        "a",
        [text("1", "Hilfe", "nan"), text("2", "help desk"), text("3", "Help Desk"), text("4", "Help Desk")],
    )
    changes = LabelChanges({"Hilfe": "Support"}, frozenset({"nan"}), merge_similar=True)
    report, _ = derive([source], tmp_path / "t.parquet", changes=changes)
    assert report.label_counts == {"Help Desk": 3, "Support": 1}
    again, _ = derive(
        [Source("b", StoredExamples(tmp_path / "t.parquet"))],
        tmp_path / "u.parquet",
        changes=LabelChanges({"Help Desk": "Support"}),
    )
    assert again.label_counts == {"Support": 4}


def test_a_label_tree_closes_the_labels(tmp_path: Path) -> None:
    source = stored(tmp_path, "a", [text("1", "a/b")])
    report, _ = derive([source], tmp_path / "t.parquet", tree=LabelTree({"a/b": "a"}))
    assert report.label_counts == {"a": 1, "a/b": 1}
    assert report.label_tree == {"a/b": "a"}


def test_labels_without_an_example_stay_labels(tmp_path: Path) -> None:
    source = stored(tmp_path, "a", [text("1", "x"), text("2", "y")], tree=LabelTree({"x": "top", "z": "top"}))
    report, _ = derive([source], tmp_path / "t.parquet", filter=ExampleFilter(labels={"x"}))
    assert report.label_counts == {"top": 1, "x": 1, "z": 0}, "y has an example, which was dropped"


def test_sources_of_different_kinds_are_an_error(tmp_path: Path) -> None:
    sources = [
        stored(tmp_path, "a", [text("1", "x")]),
        stored(tmp_path, "b", [{"id": "2", "features": {"f": 1}, "labels": ["x"]}]),
    ]
    with pytest.raises(BadDataError, match="of kind features, but the first example is of kind text"):
        derive(sources, tmp_path / "t.parquet")


def test_the_limits_apply_to_all_sources_together(tmp_path: Path) -> None:
    sources = [stored(tmp_path, name, [text(name, name)]) for name in "abc"]
    with pytest.raises(BadDataError, match="more than 2 examples"):
        derive(sources, tmp_path / "t.parquet", limits=IngestLimits(examples=2))
    with pytest.raises(BadDataError, match="more than 2 labels"):
        derive(sources, tmp_path / "t.parquet", limits=IngestLimits(labels=2))


class Tracked(StoredExamples):
    """Counts the examples with documents that are in memory at the same time."""

    rows = most_rows = 0

    def batches(self) -> Iterator[Examples]:
        for batch in super().batches():
            gc.collect()
            self._add(batch.n_examples)
            weakref.finalize(batch, self._add, -batch.n_examples)
            yield batch

    @classmethod
    def _add(cls, n: int) -> None:
        cls.rows += n
        cls.most_rows = max(cls.most_rows, cls.rows)


def test_no_more_than_two_row_groups_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_MAX_GROUP_ROWS", 10)
    sources = []
    for name in "ab":
        path = stored(tmp_path, name, [text(f"{name}{i}", "x") for i in range(100)]).examples.path
        sources.append(Source(name, Tracked(path)))
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        seen.append((done, total))

    gc.freeze()  # a collection for each batch then passes over all objects of other tests
    try:
        report, _ = derive(
            sources, tmp_path / "t.parquet", filter=ExampleFilter(with_text=True), progress=progress
        )
    finally:
        gc.unfreeze()
    assert report.n_examples == 200
    assert 0 < Tracked.most_rows <= 20
    assert seen[-1] == (200, 200)
    assert len(seen) == 40, "progress after every row group of both passes"


def test_an_exception_of_the_progress_stops_the_work(tmp_path: Path) -> None:
    def stop(_done: int, _total: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        derive([stored(tmp_path, "a", [text("1", "x")])], tmp_path / "t.parquet", progress=stop)
    assert not (tmp_path / "t.parquet").exists()
