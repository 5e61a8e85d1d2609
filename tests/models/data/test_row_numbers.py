"""Row numbers and ids in a table are not features, or the report warns about them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from models.data.examples import Examples, FeatureRows
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.readers.registry import FORMATS
from models.data.roles.row_numbers import RowNumberFinder
from models.data.store import StoredExamples

DROPPED = "columns of row numbers: "
SUSPECTED = "features that look like row numbers or ids: "


def to_parquet(columns: dict[str, list[Any]], index_columns: object) -> bytes:
    table = pa.table(columns).replace_schema_metadata(
        {"pandas": json.dumps({"index_columns": index_columns})}
    )
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def to_csv(columns: dict[str, list[Any]]) -> bytes:
    rows = [columns, *zip(*columns.values(), strict=True)]
    return "".join(",".join(map(str, row)) + "\n" for row in rows).encode()


def read(content: bytes, folder: Path, **options: Any) -> tuple[DatasetReport, list[str]]:
    format_ = "parquet" if content.startswith(b"PAR1") else "csv"
    report = ingest(
        io.BytesIO(content),
        format_,
        folder / "set.parquet",
        options=FORMATS[format_].options.model_validate({"format": format_, **options}),
    )
    examples = Examples.concatenate(list(StoredExamples(folder / "set.parquet").batches()))
    assert isinstance(examples.documents, FeatureRows)
    return report, list(examples.documents.names)


def with_prefix(report: DatasetReport, prefix: str) -> list[str]:
    return [
        warning.removeprefix(prefix).partition(";")[0]
        for warning in report.warnings
        if warning.startswith(prefix)
    ]


FRAME: dict[str, list[Any]] = {"f": [3.5, 1.0, 1.0], "labels": ["a", "b", "a"]}
INDEX = [5, 9, 2]


@pytest.mark.parametrize("name", ["__index_level_0__", "row of the export"])
def test_the_index_that_the_metadata_of_pandas_states_is_not_a_feature(name: str, tmp_path: Path) -> None:
    content = to_parquet({**FRAME, name: INDEX}, [name])
    report, names = read(content, tmp_path)
    assert names == ["f"]
    assert with_prefix(report, DROPPED) == [repr(name)]
    _, names = read(content, tmp_path, features=[name, "f"])
    assert set(names) == {name, "f"}
    report, names = read(content, tmp_path, id=name)
    assert names == ["f"]
    assert with_prefix(report, DROPPED) == []


def test_the_index_that_pandas_writes_to_csv_is_not_a_feature(tmp_path: Path) -> None:
    report, names = read(to_csv({"": INDEX, **FRAME}), tmp_path)
    assert names == ["f"]
    assert with_prefix(report, "columns without a name, which were not read: ") == ["1"]
    report, names = read(to_csv({"Unnamed: 0.1": INDEX, "Unnamed: 0": INDEX, **FRAME}), tmp_path)
    assert names == ["f"]
    assert with_prefix(report, DROPPED) == ["'Unnamed: 0.1', 'Unnamed: 0'"]


def test_the_metadata_of_pandas_can_be_damaged(tmp_path: Path) -> None:
    for metadata in (b"{", b"[]", b'{"index_columns": 5}', b'{"index_columns": [{}]}', b"[" * 10_000):
        table = pa.table({"a": [1.5], "labels": ["x"]}).replace_schema_metadata({b"pandas": metadata})
        out = io.BytesIO()
        pq.write_table(table, out)
        assert ingest(io.BytesIO(out.getvalue()), "parquet", tmp_path / "set.parquet").n_features == 1


@pytest.mark.parametrize(
    "name", ["ID", "Ticket_ID", "ticketId", "nr", "Lfd. Nr.", "index", "Issue key", "level_0"]
)
def test_a_feature_with_the_name_and_the_values_of_an_id_gets_a_warning(name: str, tmp_path: Path) -> None:
    report, names = read(to_csv({name: [17, 4, 12], **FRAME}), tmp_path)
    assert set(names) == {name, "f"}
    assert with_prefix(report, SUSPECTED) == [repr(name)]
    report, names = read(to_csv({name: [17, 4, 12], **FRAME}), tmp_path, ignore=[name])
    assert names == ["f"]
    assert with_prefix(report, SUSPECTED) == []
    assert not [warning for warning in report.warnings if warning.startswith("unused columns")]


@pytest.mark.parametrize(
    ("name", "values"),
    [("ID", [1, 2, 1]), ("ID", [1, 2.5, 3]), ("paid", [7, 4, 12]), ("humid", [1, 2, 3]), ("grid", [7, 8, 9])],
)
def test_a_feature_with_other_names_or_values_gets_no_warning(
    name: str, values: list[float], tmp_path: Path
) -> None:
    report, _ = read(to_csv({name: values, **FRAME}), tmp_path)
    assert with_prefix(report, SUSPECTED) == []


def test_a_feature_that_counts_many_rows_gets_a_warning_whatever_its_name() -> None:
    finder = RowNumberFinder(["a", "from 0", "from 1", "squares"])
    for j in range(10):
        finder.add({"a": 1.0, "from 0": float(j), "from 1": j + 1.0, "squares": float(j * j)})
    (warning,) = finder.warnings()
    assert warning.startswith(f"{SUSPECTED}'from 0', 'from 1'; ")


def test_the_finder_stops_when_nothing_is_left_to_watch() -> None:
    finder = RowNumberFinder(["id", "a"])
    watching = []
    for value in (5.0, 6.0):
        finder.add({"id": 7.0, "a": value})
        watching.append(finder.is_watching)
    assert watching == [True, False]
    finder = RowNumberFinder(["id"])
    n_rows = 0
    while finder.is_watching:
        finder.add({"id": 2.0 * n_rows + 3})
        n_rows += 1
    assert n_rows == 10_000
    assert len(finder.warnings()) == 1
