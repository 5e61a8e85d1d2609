"""Weights of examples are read from every format that has a place for them, checked, stored and counted."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from models.data.examples import Examples
from models.data.export import export_jsonl
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.readers.registry import FORMATS
from models.data.store import StoredExamples
from models.errors import BadDataError


def read(
    folder: Path, format_: str, content: bytes, **options: Any
) -> tuple[StoredExamples, DatasetReport, list[float]]:
    target = folder / "set.parquet"
    parsed = FORMATS[format_].options.model_validate({"format": format_, **options})
    report = ingest(io.BytesIO(content), format_, target, options=parsed)
    stored = StoredExamples(target)
    weights = stored.example_weights()
    return stored, report, [] if weights is None else weights.tolist()


def lines(*rows: dict[str, Any]) -> bytes:
    return "\n".join(
        json.dumps({"text": f"text {i}", "labels": ["a"], **row}) for i, row in enumerate(rows)
    ).encode()


def test_weights_of_json_lines_are_stored_and_counted(tmp_path: Path) -> None:
    content = lines({"weight": 2, "split": "train"}, {}, {"weight": 1.0}, {"weight": 0.5}, {"weight": None})
    stored, report, weights = read(tmp_path, "jsonl", content)
    assert weights == [2, 1, 1, 0.5, 1]
    assert [list(batch.weights) for batch in stored.batches()] == [weights]
    assert (report.n_weighted, report.n_training_weighted) == (2, 1)
    assert (
        "examples with a weight: 2 of 5 (from 0.5 to 2); only learners with a meaning for weights can use "
        "the data set, and measures count every example once" in report.warnings
    )


def test_parts_and_pages_keep_the_weights(tmp_path: Path) -> None:
    stored, _, _ = read(tmp_path, "jsonl", lines({"weight": 2}, {}, {"weight": 3}))
    weights = stored.where(np.array([False, True, True])).example_weights()
    assert weights is not None
    assert weights.tolist() == [1, 3]
    assert stored.where(np.array([False, True, False])).example_weights() is None
    assert list(stored.page(2, 5).weights) == [3]
    memory = Examples.concatenate([Examples("text", ["x"], [()]), Examples("text", ["y"], [()], weights=[4])])
    assert list(memory.weights) == [1, 4]
    assert list(memory.where(np.array([False, True])).weights) == [4]


def test_data_without_weights_has_none(tmp_path: Path) -> None:
    stored, report, _ = read(tmp_path, "jsonl", lines({"weight": 1}, {}))
    assert stored.example_weights() is None
    assert [batch.weights for batch in stored.batches()] == [()]
    assert report.n_weighted == 0
    assert not any("weight" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (0, "line 1, /weight: the weight must be a number from 1e-06 to 1e.06, not 0"),
        (-2, "not -2; omit an example that must not count"),
        (1e7, "not 1e.07"),
        ("2", "line 1, /weight: the weight must be a number, not a string"),
        (True, "the weight must be a number, not a boolean"),
        (10**400, "the weight must be a finite number"),
    ],
)
def test_an_invalid_weight_is_rejected(tmp_path: Path, value: object, reason: str) -> None:
    with pytest.raises(BadDataError, match=reason):
        read(tmp_path, "jsonl", lines({"weight": value}))


def test_json_lines_with_named_fields_need_the_option(tmp_path: Path) -> None:
    content = lines({"weight": 72, "meta": {"w": 3}})
    _, report, weights = read(tmp_path, "jsonl", content, text="text", labels="labels")
    assert weights == []
    assert "unused fields: 'weight', 'meta'" in report.warnings
    assert read(tmp_path, "jsonl", content, text="text", weight="/meta/w")[2] == [3]
    with pytest.raises(BadDataError, match="the option weight names the field 'Gewicht', which no example"):
        read(tmp_path, "jsonl", content, weight="Gewicht")


def test_json_lines_can_ignore_the_field(tmp_path: Path) -> None:
    assert read(tmp_path, "jsonl", lines({"weight": "heavy"}), ignore=["weight"])[2] == []


def test_weights_of_a_table_need_the_option(tmp_path: Path) -> None:
    content = b"weight,height,labels\n2,0.5,a\n,1.5,b\n"
    stored, _, weights = read(tmp_path, "csv", content)
    assert (stored.feature_names, weights) == (["height", "weight"], [])
    stored, _, weights = read(tmp_path, "csv", content, weight="weight")
    assert (stored.feature_names, weights) == (["height"], [2, 1])
    german = b"g;h;labels\n2,5;0,5;a\n1;1;b\n"
    assert read(tmp_path, "csv", german, weight="g", decimal=",")[2] == [2.5, 1]
    with pytest.raises(BadDataError, match="line 2, weight: the weight must be a number from"):
        read(tmp_path, "csv", b"weight,height,labels\n-1,0.5,a\n", weight="weight")
    with pytest.raises(BadDataError, match="the option weight names the column 'w', which does not exist"):
        read(tmp_path, "csv", content, weight="w")


def test_weights_of_a_parquet_file_need_the_option(tmp_path: Path) -> None:
    table = pa.table({"text": ["x", "y", "z"], "labels": [["a"], ["b"], []], "w": [2.5, None, 1.0]})
    stream = io.BytesIO()
    pq.write_table(table, stream)
    assert read(tmp_path, "parquet", stream.getvalue())[2] == []
    assert read(tmp_path, "parquet", stream.getvalue(), weight="w")[2] == [2.5, 1, 1]


def test_exported_weights_are_read_again(tmp_path: Path) -> None:
    stored, _, weights = read(tmp_path, "jsonl", lines({"weight": 2}, {}, {"weight": 0.1}))
    out = io.BytesIO()
    export_jsonl(stored, out)
    assert read(tmp_path, "jsonl", out.getvalue())[2] == weights
