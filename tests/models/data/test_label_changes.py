"""Labels are renamed, removed and merged during ingestion, and the report states it."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.data.examples import Examples
from models.data.ingestion.ingest import ingest
from models.data.ingestion.inspect import inspect
from models.data.ingestion.label_changes import LabelChanger, LabelChanges
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.store import StoredExamples
from models.errors import BadDataError, ParameterError
from models.labels import LabelTree

SIMILAR = LabelChanges(merge_similar=True)


def change(
    folder: Path, changes: LabelChanges, *label_sets: list[str], **options: Any
) -> tuple[DatasetReport, list[tuple[str, ...]]]:
    """Ingest examples with these labels; return the report and the stored label sets."""
    unknown = options.pop("unknown", {})
    content = "\n".join(
        json.dumps({"text": f"text {i}", "labels": labels, "unknown_labels": unknown.get(i, [])})
        for i, labels in enumerate(label_sets)
    )
    target = folder / "set.parquet"
    report = ingest(io.BytesIO(content.encode()), "jsonl", target, changes=changes, **options)
    stored = StoredExamples(target)
    assert stored.labels == list(report.label_counts)
    examples = Examples.concatenate(list(stored.batches()))
    assert list(examples.labels) == stored.label_sets()
    assert all(list(labels) == sorted(set(labels)) for labels in examples.labels)
    return report, list(examples.labels)


def test_similar_labels_get_the_most_frequent_spelling(tmp_path: Path) -> None:
    report, labels = change(
        tmp_path, SIMILAR, ["help desk", "zoo"], ["Help Desk", "b"], ["Help Desk", "help desk", "1.0"], ["1"]
    )
    assert labels == [("Help Desk", "zoo"), ("Help Desk", "b"), ("1", "Help Desk"), ("1",)]
    assert report.label_counts == {"1": 2, "Help Desk": 3, "b": 1, "zoo": 1}
    assert report.warnings[0] == (
        "labels merged or renamed, with their numbers of examples: '1.0' (1) as '1'; "
        "'help desk' (2) as 'Help Desk'"
    )
    assert not any("differ only in spelling" in warning for warning in report.warnings)


def test_equally_frequent_spellings_get_the_first_in_label_order(tmp_path: Path) -> None:
    report, _ = change(tmp_path, SIMILAR, ["b"], ["B"])
    assert report.label_counts == {"B": 2}


def test_renamed_and_removed_labels(tmp_path: Path) -> None:
    changes = LabelChanges({"Hilfe": "Help Desk", "Support": "Help Desk", "never": "x"}, {"nan", "gone"})
    report, labels = change(tmp_path, changes, ["Hilfe", "Support"], ["nan"], ["help desk", "nan"])
    assert labels == [("Help Desk",), (), ("help desk",)]
    assert report.n_unlabelled == 1
    assert report.warnings[:3] == [
        (
            "labels merged or renamed, with their numbers of examples: "
            "'Hilfe' (1) and 'Support' (1) as 'Help Desk'"
        ),
        "labels removed, with their numbers of examples: 'nan' (2)",
        (
            "labels in rename_labels or remove_labels that do not occur: 'gone', 'never'; "
            "write them exactly as in the file"
        ),
    ]


def test_a_name_in_rename_labels_is_the_name_of_merged_labels(tmp_path: Path) -> None:
    changes = LabelChanges({"Help Desk": "Help Desk", "Hilfe": "HELP"}, merge_similar=True)
    report, _ = change(tmp_path, changes, ["help desk"], ["help desk"], ["help"], ["Hilfe"])
    assert report.label_counts == {"HELP": 2, "Help Desk": 2}


def test_the_names_of_the_label_tree_stay(tmp_path: Path) -> None:
    tree = LabelTree({"Help Desk": "IT", "it": "All"})
    report, labels = change(tmp_path, SIMILAR, ["help desk"], ["help desk"], ["it"], ["It"], tree=tree)
    assert labels == [("Help Desk", "IT"), ("Help Desk", "IT"), ("All", "it"), ("IT",)]
    assert report.label_counts == {"All": 1, "Help Desk": 2, "IT": 3, "it": 1}
    for changes in (LabelChanges({"IT": "x"}), LabelChanges(remove={"IT"})):
        with pytest.raises(BadDataError, match="'IT' is a label of the label tree"):
            change(tmp_path, changes, ["a"], tree=tree)


def test_unknown_labels_are_changed_too(tmp_path: Path) -> None:
    unknown = {0: ["b", "nan"], 1: ["B", "c"], 2: ["A"]}
    changes = LabelChanges({"c": "d"}, {"nan"}, merge_similar=True)
    report, _ = change(tmp_path, changes, ["B"], ["a"], ["a"], ["B"], unknown=unknown)
    stored = StoredExamples(tmp_path / "set.parquet")
    assert stored.unknown_sets() == [(), ("B", "d"), (), ()]
    assert report.unknown_counts == {"B": 1, "d": 1}
    with pytest.raises(BadDataError, match="'d' applies and is also unknown"):
        change(tmp_path, changes, ["c"], unknown={0: ["c"]})


def test_label_columns_are_merged(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("text,labels,x\none,b,1\ntwo,B,2\n")
    assert inspect(path, changes=SIMILAR).label_counts == {"B": 2}


def test_the_split_counts_have_the_final_names(tmp_path: Path) -> None:
    lines = [{"text": "a", "labels": ["b"], "split": "train"}, *[{"text": "a", "labels": ["B"]}] * 2]
    path = tmp_path / "file.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    report = inspect(path, changes=SIMILAR)
    assert report.label_counts == {"B": 3}
    assert not any("in the training split" in warning for warning in report.warnings)
    assert report.n_conflicting == 0


def test_spellings_are_limited_like_labels(tmp_path: Path) -> None:
    spellings = [["a"], ["A"], ["a "], [" a"]]
    assert change(tmp_path, SIMILAR, *spellings, limits=IngestLimits(labels=4))[0].n_labels == 1
    with pytest.raises(BadDataError, match="more than 3 labels"):
        change(tmp_path, SIMILAR, *spellings, limits=IngestLimits(labels=3))


@pytest.mark.parametrize(
    ("rename", "remove", "pointer"),
    [
        ({"a": "b", "b": "c"}, set(), "/rename_labels"),
        ({"a": " "}, set(), "/rename_labels"),
        ({"a": "b"}, {"a"}, "/remove_labels"),
        ({"a": "b"}, {"b"}, "/remove_labels"),
    ],
)
def test_contradictory_changes_are_rejected(rename: dict[str, str], remove: set[str], pointer: str) -> None:
    with pytest.raises(ParameterError) as caught:
        LabelChanges(rename, remove)
    assert caught.value.pointer == pointer


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["a", "A", "a ", "b", "B", "c", "C", "c-c"]), max_size=4), max_size=8),
    st.dictionaries(st.sampled_from("abcAB"), st.sampled_from(["x", "X", "y"]), max_size=2),
    st.sets(st.sampled_from(["C", "b"]), max_size=1),
)
def test_final_names_equal_a_naive_computation(
    label_sets: list[list[str]], rename: dict[str, str], remove: set[str]
) -> None:
    remove -= rename.keys()
    changer = LabelChanger(LabelChanges(rename, remove, merge_similar=True))
    changed = [changer.apply(labels) for labels in label_sets]
    final = changer.final_names()
    counts = Counter(label for labels in label_sets for label in set(labels))
    fixed = {name.lower(): name for name in sorted(set(rename.values()), reverse=True)}

    def naive(label: str) -> str:
        if label in rename:
            return rename[label]
        key = label.lower().strip()
        if key in fixed:
            return fixed[key]
        same = [
            other for other in sorted(counts.keys() - rename.keys() - remove) if other.lower().strip() == key
        ]
        return max(same, key=counts.__getitem__)

    assert [{final.get(name, name) for name in labels} for labels in changed] == [
        {naive(label) for label in labels if label not in remove} for labels in label_sets
    ]
