"""Folds that users assign are read from every format with named fields, checked, stored and counted."""

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
from models.data.options import FormatOptionsBase
from models.data.readers.csv import CSVOptions
from models.data.readers.jsonl import JSONLOptions
from models.data.store import StoredExamples
from models.errors import BadDataError


def read(
    tmp_path: Path, content: bytes, format_: str, options: FormatOptionsBase | None = None
) -> tuple[StoredExamples, DatasetReport]:
    report = ingest(io.BytesIO(content), format_, tmp_path / "set.parquet", options=options)
    return StoredExamples(tmp_path / "set.parquet"), report


def lines(*rows: dict[str, Any]) -> bytes:
    return "\n".join(
        json.dumps({"text": f"text {i}", "labels": ["a"]} | row) for i, row in enumerate(rows)
    ).encode()


def test_folds_of_json_lines_are_stored_and_counted(tmp_path: Path) -> None:
    stored, report = read(tmp_path, lines({"fold": 2}, {"fold": 0}, {"fold": 2.0}, {"fold": 999}), "jsonl")
    assert stored.folds() == [2, 0, 2, 999]
    assert report.folds == {0: 1, 2: 2, 999: 1}
    assert not any("fold" in warning for warning in report.warnings)
    part = stored.where(np.array([False, True, True, False]))
    assert part.folds() == [0, 2]
    assert [fold for batch in part.batches() for fold in batch.folds()] == [0, 2]


def test_examples_without_a_fold_are_counted_in_a_warning(tmp_path: Path) -> None:
    stored, report = read(tmp_path, lines({"fold": 1}, {}, {"fold": None}), "jsonl")
    assert stored.folds() == [1, None, None]
    assert "examples without a fold: 2; the others have one, so the folds cannot be used" in report.warnings


def test_data_without_folds_has_none(tmp_path: Path) -> None:
    stored, report = read(tmp_path, lines({}, {}), "jsonl")
    assert stored.folds() == [None, None]
    assert report.folds == {}
    assert not any("fold" in warning for warning in report.warnings)


@pytest.mark.parametrize("fold", [-1, 1.5, "one", True, 1000, [1]])
def test_an_invalid_fold_is_rejected(tmp_path: Path, fold: object) -> None:
    with pytest.raises(BadDataError, match="line 1, /fold: the fold must be a whole number from 0 to 999"):
        read(tmp_path, lines({"fold": fold}), "jsonl")


def test_a_csv_column_is_the_fold_by_its_name_or_by_the_option(tmp_path: Path) -> None:
    stored, _ = read(tmp_path, b"text,labels,fold\nx,a,3\ny,b, 4.0\nz,b,\n", "csv")
    assert stored.folds() == [3, 4, None]
    options = CSVOptions(format="csv", fold="part")
    stored, _ = read(tmp_path, b"text,labels,part\nx,a,3\ny,b,4\n", "csv", options)
    assert stored.folds() == [3, 4]


def test_a_csv_column_fold_is_a_feature_if_the_options_say_so(tmp_path: Path) -> None:
    options = CSVOptions(format="csv", features=["fold", "height"])
    stored, _ = read(tmp_path, b"height,labels,fold\n1,a,3.5\n2,b,4\n", "csv", options)
    assert stored.feature_names == ["fold", "height"]
    assert stored.folds() == [None, None]


def test_a_column_fold_of_numeric_data_is_no_feature(tmp_path: Path) -> None:
    stored, _ = read(tmp_path, b"height,labels,fold\n1,a,3\n2,b,4\n", "csv")
    assert stored.feature_names == ["height"]
    assert stored.folds() == [3, 4]


def test_a_parquet_column_is_the_fold(tmp_path: Path) -> None:
    out = io.BytesIO()
    table = pa.table({"text": ["x", "y"], "labels": [["a"], []], "fold": pa.array([7, None], pa.int64())})
    pq.write_table(table, out)
    stored, _ = read(tmp_path, out.getvalue(), "parquet")
    assert stored.folds() == [7, None]


def test_a_nested_field_can_be_the_fold(tmp_path: Path) -> None:
    content = json.dumps({"text": "x", "labels": ["a"], "meta": {"part": 5}}).encode()
    options = JSONLOptions(format="jsonl", text="text", labels="labels", fold="/meta/part")
    assert read(tmp_path, content, "jsonl", options)[0].folds() == [5]


def test_an_export_keeps_the_folds(tmp_path: Path) -> None:
    stored, _ = read(tmp_path, lines({"fold": 1}, {}), "jsonl")
    out = io.BytesIO()
    export_jsonl(stored, out)
    assert [json.loads(line).get("fold") for line in out.getvalue().splitlines()] == [1, None]
    assert read(tmp_path, out.getvalue(), "jsonl")[0].folds() == [1, None]


def test_folds_of_some_batches_are_concatenated() -> None:
    first, second = Examples("text", ["a"], [("x",)]), Examples("text", ["b"], [()], fold_column=[3])
    assert Examples.concatenate([first, second]).folds() == [None, 3]
    assert Examples.concatenate([first, first]).fold_column == ()
