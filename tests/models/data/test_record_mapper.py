"""One mapper reads the fields of examples in files of all formats with named fields."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from models.data.examples import Examples
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.readers.registry import FORMATS
from models.data.record import Record
from models.data.record_mapper import EXAMPLE_FIELDS
from models.data.roles.roles import ROLES
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.mail.email import Email

Rows = list[dict[str, Any]]


def as_jsonl(rows: Rows) -> bytes:
    return "\n".join(map(json.dumps, rows)).encode()


def as_csv(rows: Rows) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_parquet(rows: Rows) -> bytes:
    return table_bytes(pa.Table.from_pylist(rows))


def table_bytes(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


WRITERS: dict[str, Callable[[Rows], bytes]] = {"jsonl": as_jsonl, "csv": as_csv, "parquet": as_parquet}
VALUES = {"id": "a7", "split": "test", "weight": 2.5, "fold": 3}
"""A value of each role that has an option."""


def read(
    name: str, content: bytes, folder: Path, *, max_bad_records: int = 0, **options: Any
) -> tuple[DatasetReport, Examples]:
    report = ingest(
        io.BytesIO(content),
        name,
        folder / "set.parquet",
        options=FORMATS[name].options.model_validate({"format": name, **options}),
        max_bad_records=max_bad_records,
    )
    return report, Examples.concatenate(list(StoredExamples(folder / "set.parquet").batches()))


def values(examples: Examples) -> dict[str, Any]:
    return {
        "id": examples.ids[0],
        "split": examples.splits()[0],
        "weight": examples.weights[0] if len(examples.weights) else None,
        "fold": examples.fold_column[0] if len(examples.fold_column) else None,
    }


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("role", VALUES)
def test_each_format_reads_each_role_from_the_field_that_an_option_names(
    name: str, role: str, tmp_path: Path
) -> None:
    content = WRITERS[name]([{"text": "x", "labels": "l", "other": VALUES[role]}])
    options: dict[str, Any] = {role: "other"}
    _, examples = read(name, content, tmp_path, **options)
    assert values(examples)[role] == VALUES[role]


@pytest.mark.parametrize("name", WRITERS)
def test_each_format_reads_roles_by_name_and_leaves_the_others(name: str, tmp_path: Path) -> None:
    content = WRITERS[name]([{"text": "x", "labels": "l", **VALUES}])
    report, examples = read(name, content, tmp_path, text="text", labels="labels")
    assert values(examples) == {**VALUES, "weight": None}
    assert any(warning.startswith("unused ") and "'weight'" in warning for warning in report.warnings)


def test_the_fields_of_examples_are_the_roles_the_labels_and_the_documents() -> None:
    names = {"labels", "unknown_labels", "text", "features", "email", "raw_email"}
    assert set(EXAMPLE_FIELDS) == names | {role.name for role in ROLES}
    record = Record(1, [])
    assert all(hasattr(record, role.name) for role in ROLES)
    assert {role.name for role in ROLES} == {*VALUES, "selected_by"}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("options", [{"text": "fold"}, {"email": {"subject": "fold"}}])
def test_a_fold_with_another_role_is_no_fold(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    content = WRITERS[name]([{"labels": "l", "fold": "first"}, {"labels": "l", "fold": "second"}])
    _, examples = read(name, content, tmp_path, **options)
    assert not len(examples.fold_column)


@pytest.mark.parametrize("name", WRITERS)
def test_blank_label_columns_are_counted(name: str, tmp_path: Path) -> None:
    content = WRITERS[name]([{"text": "x", "a": "1", "b": " "}, {"text": "y", "a": "", "b": "no"}])
    report, examples = read(name, content, tmp_path, labels=["a", "b"])
    assert list(examples.labels) == [("a",), ()]
    assert any(": 2; they were read as no" in warning for warning in report.warnings)


def test_the_label_field_with_content_counts(tmp_path: Path) -> None:
    content = as_jsonl(
        [{"text": "x", "labels": [], "label": "a"}, {"text": "y", "labels": ["b"], "cats": {}}]
    )
    _, examples = read("jsonl", content, tmp_path)
    assert list(examples.labels) == [("a",), ("b",)]


def test_ignored_labels_are_not_read(tmp_path: Path) -> None:
    content = as_jsonl([{"text": "x", "labels": ["a"], "label": "b"}])
    _, examples = read("jsonl", content, tmp_path, ignore=["labels"])
    assert list(examples.labels) == [("b",)]
    with pytest.raises(BadDataError, match="the field labels is missing"):
        read("jsonl", content, tmp_path, ignore=["labels", "label"])


def test_a_field_that_only_rejected_examples_have_is_not_called_missing(tmp_path: Path) -> None:
    content = as_jsonl([{"text": "x", "labels": ["a", 1.5], "key": "k"}])
    with pytest.raises(BadDataError, match=r"line 1, /labels/1: a label must be .* not 1\.5"):
        read("jsonl", content, tmp_path, id="key")
    with pytest.raises(BadDataError, match="contains no examples"):
        read("jsonl", content, tmp_path, id="key", max_bad_records=1)


def test_every_field_that_is_not_read_is_called_unused(tmp_path: Path) -> None:
    content = as_jsonl([{"text": "x", "labels": ["a"], "topic": "b", "selected_by": "sample"}])
    report, _ = read("jsonl", content, tmp_path, labels="topic")
    assert report.warnings[0] == "unused fields: 'labels', 'selected_by'"


def test_objects_can_have_any_number_of_different_fields(tmp_path: Path) -> None:
    rows = [{"text": f"text {i}", "labels": ["a"], f"extra {i}": i} for i in range(300)]
    report, examples = read("jsonl", as_jsonl(rows), tmp_path, text="text")
    assert report.n_examples == 300
    assert report.warnings[0].startswith("unused fields: 'extra 0', 'extra 1'")
    sparse = [{"labels": ["a"], **{f"f{j}": 1 for j in range(9) if i >> j & 1}} for i in range(1, 400)]
    names = [f"f{j}" for j in range(9)]
    _, examples = read("jsonl", as_jsonl(sparse), tmp_path, features=names)
    rows_ = cast("Any", examples.documents).matrix.toarray()
    assert [[f"f{j}" in row for j in range(9)] for row in sparse] == rows_.astype(bool).tolist()


def test_an_email_without_parts_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="the option email names no field"):
        read("jsonl", as_jsonl([{"text": "x", "labels": []}]), tmp_path, email={})


def test_the_column_of_raw_messages_must_exist_and_can_be_base64(tmp_path: Path) -> None:
    content = as_parquet([{"message": "U3ViamVjdDogaGkKCmhp", "labels": ["a"], "text": "x"}])
    _, examples = read("parquet", content, tmp_path, raw_email="message")
    assert list(cast("list[Email]", examples.documents)) == [Email(raw=b"Subject: hi\n\nhi")]
    with pytest.raises(
        BadDataError, match="the option raw_email names the column 'raw', which does not exist"
    ):
        read("parquet", content, tmp_path, raw_email="raw")
    with pytest.raises(BadDataError, match="the options set text and raw_email; set only one of them"):
        read("parquet", content, tmp_path, raw_email="message", text="text")


@pytest.mark.parametrize(
    ("items", "type_"), [([("a", Decimal("1.5"))], pa.decimal128(5, 2)), ([("a", True)], pa.bool_())]
)
def test_maps_of_decimals_and_booleans_are_features(items: Any, type_: pa.DataType, tmp_path: Path) -> None:
    features = pa.array([items, None], pa.map_(pa.string(), type_))
    content = table_bytes(pa.table({"features": features, "labels": [["x"], ["y"]]}))
    _, examples = read("parquet", content, tmp_path)
    assert cast("Any", examples.documents).matrix.toarray().tolist() == [[float(items[0][1])], [0]]
