"""Examples in memory and on disk behave the same."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from models.data import store
from models.data.examples import Examples, ExampleSource, FeatureRows
from models.data.ingestion.ingest import ingest
from models.data.ingestion.processing import RecordProcessor
from models.data.limits import IngestLimits
from models.data.record import Record
from models.data.store import StoredExamples
from models.errors import BadDataError


def documents_of(examples: Examples) -> list[Any]:
    return list(cast("list[Any]", examples.documents))


def in_memory() -> Examples:
    return Examples(
        kind="text",
        documents=["a", "b", "c", "d"],
        labels=[("x",), (), ("x", "y"), ("y",)],
        ids=["1", "2", "3", "4"],
        split_column=["train", "validation", None, "test"],
        unknown=[(), ("x", "z"), (), ("x",)],
    )


def on_disk(folder: Path, monkeypatch: pytest.MonkeyPatch, group_rows: int) -> StoredExamples:
    monkeypatch.setattr(store, "_MAX_GROUP_ROWS", group_rows)
    examples = in_memory()
    rows = [
        {"text": text, "labels": labels, "unknown_labels": unknown} | ({"split": split} if split else {})
        for text, labels, split, unknown in zip(
            documents_of(examples), examples.labels, examples.split_column, examples.unknown, strict=True
        )
    ]
    content = "\n".join(map(json.dumps, rows)).encode()
    ingest(io.BytesIO(content), "jsonl", folder / "set.parquet")
    return StoredExamples(folder / "set.parquet")


def all_rows(source: ExampleSource) -> list[Any]:
    batches = list(source.batches())
    documents = [document for batch in batches for document in documents_of(batch)]
    labels = [labels for batch in batches for labels in batch.labels]
    ids = [id_ for batch in batches for id_ in batch.ids]
    assert labels == source.label_sets()
    assert [split for batch in batches for split in batch.split_column] == source.splits()
    unknown = source.unknown_sets()
    assert [names for batch in batches for names in batch.unknown_sets()] == unknown
    assert len(labels) == source.n_examples
    return list(zip(documents, labels, ids, source.splits(), unknown, strict=True))


@pytest.mark.parametrize("group_rows", [1, 3, 4])
@pytest.mark.parametrize("keep", [[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
def test_memory_and_disk_give_the_same_rows(
    group_rows: int, keep: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, disk = in_memory(), on_disk(tmp_path, monkeypatch, group_rows)
    assert all_rows(disk) == all_rows(memory)
    mask = np.array(keep, dtype=bool)
    assert all_rows(disk.where(mask)) == all_rows(memory.where(mask))
    assert all_rows(disk.where(mask)) == [
        row for row, is_kept in zip(all_rows(disk), keep, strict=True) if is_kept
    ]
    assert disk.n_examples == 4


def test_subsets_of_subsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for source in (in_memory(), on_disk(tmp_path, monkeypatch, 3)):
        subset = source.where(np.array([True, False, True, True])).where(np.array([False, True, True]))
        assert subset.label_sets() == [("x", "y"), ("y",)]
        with pytest.raises(ValueError, match=r"shape \(3,\); there are 2"):
            subset.where(np.ones(3, dtype=bool))


def test_a_page_reads_a_range_of_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = on_disk(tmp_path, monkeypatch, 3)
    assert documents_of(disk.page(1, 3)) == ["b", "c", "d"]
    assert list(disk.page(3, 9).ids) == ["4"]
    assert disk.page(9, 9).n_examples == 0


def test_numeric_examples_can_be_subset_and_concatenated() -> None:
    matrix = csr_array(np.array([[1.0, 0], [0, 2], [3, 0]]))
    examples = Examples("features", FeatureRows(["a", "b"], matrix), [(), ("x",), ("y",)])
    first, rest = (
        examples.where(np.array([True, False, False])),
        examples.where(np.array([False, True, True])),
    )
    joined = Examples.concatenate([first, rest])
    assert isinstance(rest.documents, FeatureRows)
    assert isinstance(joined.documents, FeatureRows)
    np.testing.assert_array_equal(rest.documents.matrix.toarray(), [[0, 2], [3, 0]])
    np.testing.assert_array_equal(joined.documents.matrix.toarray(), matrix.toarray())
    assert joined.label_sets() == [(), ("x",), ("y",)]
    assert joined.splits() == [None, None, None]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from("abcdefg"), st.floats(allow_nan=False, allow_infinity=False), max_size=7
        ),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 5),
)
def test_features_round_trip_with_any_row_group_size(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, float]], group_rows: int
) -> None:
    folder = tmp_path_factory.mktemp("features")
    content = "\n".join(json.dumps({"features": row, "labels": ["x"]}) for row in rows).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_MAX_GROUP_ROWS", group_rows)
        ingest(io.BytesIO(content), "jsonl", folder / "set.parquet")
    stored = StoredExamples(folder / "set.parquet")
    batches = list(stored.batches())
    assert len(batches) == -(-len(rows) // group_rows)
    documents = Examples.concatenate(batches).documents
    assert isinstance(documents, FeatureRows)
    names = sorted({name for row in rows for name in row})
    expected = np.array([[row.get(name, 0.0) for name in names] for row in rows]).reshape(
        len(rows), len(names)
    )
    assert list(documents.names) == names
    np.testing.assert_array_equal(documents.matrix.toarray(), expected)


def test_other_files_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "set.parquet"
    path.write_bytes(b"PAR1 no PAR1")
    with pytest.raises(BadDataError, match=r"set\.parquet is not a stored data set"):
        StoredExamples(path)


def test_unknown_labels_of_some_batches_are_concatenated() -> None:
    first, second = Examples("text", ["a"], [("x",)]), Examples("text", ["b"], [()], unknown=[("x",)])
    assert Examples.concatenate([first, second]).unknown_sets() == [(), ("x",)]
    assert Examples.concatenate([first, first]).unknown == ()


def test_new_features_are_found_without_a_look_at_all_others() -> None:
    """Otherwise, reading takes time for each pair of an example and a feature of the data set."""

    class Names(dict[str, int]):
        def keys(self) -> NoReturn:
            raise AssertionError

        def __iter__(self) -> NoReturn:
            raise AssertionError

    class Sink:
        def append(self, record: Record, id_: str, labels: list[str], /) -> None:
            pass

    names = Names()
    processor = RecordProcessor(Sink(), names, None, IngestLimits(), 0, None)
    processor.process(Record(line, ["x"], features={"b": 1.0, f"a{line}": 2.0}) for line in (1, 2))
    assert [*names.items()] == [("a1", 0), ("b", 1), ("a2", 2)]
