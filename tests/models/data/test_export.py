"""A data set that is exported and ingested again is equal to the original."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.data.examples import Examples, ExampleSource, FeatureRows
from models.data.export import export_jsonl
from models.data.ingestion.ingest import ingest
from models.data.readers.svmlight import SVMLightOptions
from models.data.store import StoredExamples

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
    lambda name: not name.isspace()
)
LABELS = NAMES.filter(lambda name: name not in {"0", "1"})  # lists of these are rejected
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
DOCUMENTS = {
    "text": TEXTS,
    "features": st.dictionaries(NAMES, st.floats(allow_nan=False, allow_infinity=False), max_size=4),
    "email": st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(["subject", "from", "to", "text", "html", "list_id"], TEXTS),
            "attachments": st.lists(
                st.dictionaries(st.sampled_from(["name", "content_type"]), TEXTS), max_size=2
            ),
        },
    ),
    "raw_email": st.sampled_from(["", "AA==", "U3ViamVjdDog/w0KDQo="]),
}


def assert_equal_sources(one: ExampleSource, other: ExampleSource) -> None:
    assert one.kind == other.kind
    assert one.label_sets() == other.label_sets()
    assert one.splits() == other.splits()
    assert one.unknown_sets() == other.unknown_sets()
    first, second = Examples.concatenate(list(one.batches())), Examples.concatenate(list(other.batches()))
    assert list(first.ids) == list(second.ids)
    assert first.selections() == second.selections()
    if isinstance(first.documents, FeatureRows):
        assert isinstance(second.documents, FeatureRows)
        assert list(first.documents.names) == list(second.documents.names)
        for attribute in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(
                getattr(first.documents.matrix, attribute), getattr(second.documents.matrix, attribute)
            )
    else:
        assert first.documents == second.documents


def export_and_ingest(source: ExampleSource, folder: Path) -> StoredExamples:
    out = io.BytesIO()
    assert export_jsonl(source, out) == source.n_examples
    out.seek(0)
    ingest(out, "jsonl", folder / "again.parquet")
    return StoredExamples(folder / "again.parquet")


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_examples_of_every_kind_round_trip(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("export")
    field = data.draw(st.sampled_from(sorted(DOCUMENTS)))
    example = st.fixed_dictionaries(
        {field: DOCUMENTS[field], "labels": st.lists(LABELS, max_size=3)},
        optional={
            "split": st.sampled_from(["train", "validation", "test"]),
            "unknown_labels": st.lists(NAMES, max_size=3),
            "selected_by": st.sampled_from(["sample", "doubt", "fallback", "volunteered", None]),
        },
    )
    first: dict[str, Any] = {field: data.draw(DOCUMENTS[field]), "labels": ["x"], "id": "first, 🚀"}
    examples = [first, *data.draw(st.lists(example, max_size=5))]
    for row in examples:
        row["labels"] = [name for name in row["labels"] if name not in row.get("unknown_labels", ())]
    content = "\n".join(map(json.dumps, examples)).encode()
    ingest(io.BytesIO(content), "jsonl", folder / "set.parquet")
    stored = StoredExamples(folder / "set.parquet")
    assert_equal_sources(stored, export_and_ingest(stored, folder))


def test_features_that_are_zero_everywhere_are_kept(tmp_path: Path) -> None:
    options = SVMLightOptions(format="svmlight", feature_names=["c", "b", "a"])
    ingest(io.BytesIO(b"1 2:5\n1 2:4\n"), "svmlight", tmp_path / "set.parquet", options=options)
    stored = StoredExamples(tmp_path / "set.parquet")
    assert stored.feature_names == ["a", "b", "c"]
    assert_equal_sources(stored, export_and_ingest(stored, tmp_path))


def test_a_subset_can_be_exported(tmp_path: Path) -> None:
    ingest(io.BytesIO(b"1 2:5\n2 3:4\n"), "svmlight", tmp_path / "set.parquet")
    part = StoredExamples(tmp_path / "set.parquet").where(np.array([False, True]))
    assert_equal_sources(part, export_and_ingest(part, tmp_path))


def test_examples_without_ids_get_running_numbers(tmp_path: Path) -> None:
    memory = Examples("text", ["a", "b"], [("x",), ()])
    again = export_and_ingest(memory, tmp_path)
    assert list(Examples.concatenate(list(again.batches())).ids) == ["1", "2"]
    assert again.label_sets() == memory.label_sets()
