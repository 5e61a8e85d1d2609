"""Parquet files that other tools write."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.data.examples import Examples, FeatureRows
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.readers.parquet import ParquetOptions
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.mail.email import Email


def write_table(columns: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def read(content: bytes, folder: Path, **options: Any) -> tuple[DatasetReport, Examples]:
    arguments = {name: options.pop(name) for name in ("limits", "max_bad_records") if name in options}
    report = ingest(
        io.BytesIO(content),
        "parquet",
        folder / "set.parquet",
        options=ParquetOptions.model_validate({"format": "parquet", **options}),
        **arguments,
    )
    return report, Examples.concatenate(list(StoredExamples(folder / "set.parquet").batches()))


def test_text_with_lists_of_labels(tmp_path: Path) -> None:
    content = write_table(
        {
            "id": [7, 8, 9],
            "text": pa.array(["a", None, "c"], pa.large_string()),
            "labels": [["x", "y"], [], ["x"]],
            "split": pa.array(["train", None, "test"]).dictionary_encode(),
            "more": [[1], [2], [3]],
        }
    )
    report, examples = read(content, tmp_path)
    assert list(cast("list[str]", examples.documents)) == ["a", "", "c"]
    assert list(examples.labels) == [("x", "y"), (), ("x",)]
    assert list(examples.ids) == ["7", "8", "9"]
    assert examples.splits() == ["train", None, "test"]
    assert report.warnings[:1] == ["unused columns: 'more'"]


def test_numeric_columns_and_label_columns(tmp_path: Path) -> None:
    content = write_table(
        {
            "b": [1.5, None],
            "a": pa.array([2, 0], pa.int8()),
            "flag": [True, False],
            "name": ["p", "q"],
            "x": [1, 0],
            "y": [True, None],
        }
    )
    report, examples = read(content, tmp_path, labels=["x", "y"])
    assert isinstance(examples.documents, FeatureRows)
    assert list(examples.documents.names) == ["a", "b", "flag"]
    np.testing.assert_array_equal(examples.documents.matrix.toarray(), [[2, 1.5, 1], [0, 0, 0]])
    assert list(examples.labels) == [("x", "y"), ()]
    assert report.warnings[:2] == [
        "unused columns: 'name'",
        "missing feature values: 1; they were read as 0",
    ]


def test_maps_of_features(tmp_path: Path) -> None:
    type_ = pa.map_(pa.string(), pa.float64())
    content = write_table(
        {"features": pa.array([[("b", 2.0)], [("a", 1.0), ("b", 0.0)]], type_), "labels": ["x", "x,y"]}
    )
    report, examples = read(content, tmp_path)
    assert isinstance(examples.documents, FeatureRows)
    assert list(examples.documents.names) == ["a", "b"]
    np.testing.assert_array_equal(examples.documents.matrix.toarray(), [[0, 2], [1, 0]])
    assert report.label_counts == {"x": 2, "y": 1}
    twice = write_table({"features": pa.array([[("b", 2.0), ("b", 1.0)]], type_), "labels": ["x"]})
    with pytest.raises(BadDataError, match="line 1, features: the name 'b' occurs twice"):
        read(twice, tmp_path)


def test_raw_and_parsed_mail(tmp_path: Path) -> None:
    content = write_table({"message": [b"Subject: \xff\n\n", None], "labels": [["x"], ["y"]]})
    _, examples = read(content, tmp_path, raw_email="message")
    assert list(cast("list[Email]", examples.documents)) == [Email(raw=b"Subject: \xff\n\n"), Email(raw=b"")]
    content = write_table({"s": ["hi"], "h": ["<p>"], "labels": ["x"]})
    _, examples = read(content, tmp_path, email={"subject": "s", "html": "h"})
    assert list(cast("list[Email]", examples.documents)) == [Email(subject="hi", html="<p>")]


def test_labels_can_be_numbers_lists_with_arrays_texts_and_maps(tmp_path: Path) -> None:
    numbers = {"id": [5.0, None, 7.0], "text": ["a", "b", "c"]}
    for labels in (
        [[1, 2], [3], None],
        pa.array([[1, 2], [3], []], pa.large_list(pa.int8())),
        ["['1' '2']", '["3"]', None],
        [{"1": 1, "2": 1, "3": 0}, {"1": 0, "2": 0, "3": 1}, {"1": 0, "2": 0, "3": 0}],
        pa.array([[("1", 1.0), ("2", 1.0)], [("3", 1.0)], []], pa.map_(pa.string(), pa.float64())),
    ):
        _, examples = read(write_table({**numbers, "labels": labels}), tmp_path)
        assert list(examples.labels) == [("1", "2"), ("3",), ()]
        assert list(examples.ids) == ["5", "2", "7"]
    report, _ = read(
        write_table({"text": ["a", "b"], "labels": pa.array([3, 4]).dictionary_encode()}), tmp_path
    )
    assert report.label_counts == {"3": 1, "4": 1}
    twice = pa.array([[("1", 1), ("1", 0)]], pa.map_(pa.string(), pa.int8()))
    with pytest.raises(BadDataError, match="line 1, labels: the name '1' occurs twice"):
        read(write_table({"text": ["a"], "labels": twice}), tmp_path)


def test_label_columns_and_maps_can_have_unknown_labels(tmp_path: Path) -> None:
    columns = {"text": ["a", "b"], "x": [1, -1], "y": pa.array([None, 1.0]), "z": [True, False]}
    report, examples = read(write_table(columns), tmp_path, labels=["x", "y", "z"])
    assert list(examples.labels) == [("x", "z"), ("y",)]
    assert list(examples.unknown) == [(), ("x",)]
    assert report.warnings[0].startswith("missing values in label columns: 1; they were read as no")
    _, examples = read(write_table({"text": ["a"], "labels": [{"x": 1, "y": None, "z": -1}]}), tmp_path)
    assert list(examples.labels) == [("x",)]
    assert list(examples.unknown) == [("y", "z")]


CLASSES = {"names": ["neg", "pos", "odd"], "_type": "ClassLabel"}


@pytest.mark.parametrize(
    ("feature", "labels"),
    [
        (CLASSES, [2, 0]),
        ({"feature": CLASSES, "_type": "Sequence"}, [[2], [0]]),
        ([CLASSES], [[2], [0]]),
    ],
)
def test_names_of_classes_in_the_metadata_of_datasets_are_used(
    feature: object, labels: list[Any], tmp_path: Path
) -> None:
    table = pa.table({"text": ["a", "b"], "label": labels})
    metadata = {"huggingface": json.dumps({"info": {"features": {"label": feature}}})}
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), out)
    report, _ = read(out.getvalue(), tmp_path)
    assert report.label_counts == {"neg": 1, "odd": 1, "pos": 0}
    report, _ = read(out.getvalue(), tmp_path, label_names=["A", "B", "C"])
    assert report.label_counts == {"A": 1, "B": 0, "C": 1}


def test_decimals_small_floats_and_dictionaries_are_features(tmp_path: Path) -> None:
    content = write_table(
        {
            "a": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
            "b": pa.array([2.5, 0.5], pa.float16()),
            "c": pa.array([3, 4]).dictionary_encode(),
            "labels": pa.array(["x", "y"]).dictionary_encode(),
            "id": pa.array([Decimal(1), Decimal(2)], pa.decimal256(40, 0)),
        }
    )
    report, examples = read(content, tmp_path)
    np.testing.assert_array_equal(
        cast("FeatureRows", examples.documents).matrix.toarray(), [[1.5, 2.5, 3], [0, 0.5, 4]]
    )
    assert list(examples.ids) == ["1", "2"]
    assert report.label_counts == {"x": 1, "y": 1}


def test_columns_of_other_types_are_named_in_the_error(tmp_path: Path) -> None:
    when = pa.array([0], pa.date32())
    content = write_table({"when": when, "tags": [["a"]], "labels": ["x"]})
    with pytest.raises(BadDataError, match=r"no column is left .* 'when' \(date32\[day\]\), 'tags' \(list<"):
        read(content, tmp_path)
    with pytest.raises(BadDataError, match=r"'when' has the type date32\[day\], which is not a number"):
        read(content, tmp_path, features=["when"])
    report, _ = read(write_table({"a": [1.5], "when": when, "labels": ["x"]}), tmp_path)
    assert report.warnings[0] == "unused columns: 'when'"


def test_texts_can_be_joined_bytes_or_views(tmp_path: Path) -> None:
    content = write_table(
        {
            "subject": [b"\xc3\xa4", b"\xff"],
            "body": pa.array(["a", "b"], pa.string_view()),
            "labels": ["x", "y"],
        }
    )
    report, examples = read(content, tmp_path, text=["subject", "body"], max_bad_records=1)
    assert list(cast("list[str]", examples.documents)) == ["ä\n\na"]
    assert [(record.line, record.field) for record in report.bad_records] == [(2, "subject")]


def test_repeated_columns_matter_only_with_a_role(tmp_path: Path) -> None:
    def write(names: list[str]) -> bytes:
        out = io.BytesIO()
        pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * len(names), names=names), out)
        return out.getvalue()

    report, _ = read(write(["text", "labels", "more", "more"]), tmp_path)
    assert report.warnings[0] == "unused columns: 'more'"
    with pytest.raises(BadDataError, match="two columns have the name 'labels'"):
        read(write(["text", "labels", "labels"]), tmp_path)


def test_words_for_splits_can_be_added(tmp_path: Path) -> None:
    content = write_table({"text": ["a", "b"], "labels": ["x", "x"], "split": ["Lernen", "VAL"]})
    _, examples = read(content, tmp_path, split_words={"train": ["lernen"]})
    assert examples.splits() == ["train", "validation"]


BAD_COLUMNS: dict[str, tuple[dict[str, Any], str]] = {
    "nan": (
        {"a": [1.0, float("nan")], "labels": ["x", "x"]},
        r"line 2, a: a feature must be a finite number that fits in 64 bits$",
    ),
    "infinity": ({"a": [1.0, float("inf")], "labels": ["x", "x"]}, "line 2, a: a feature must be a finite"),
    "labels booleans": ({"text": ["a"], "labels": [True]}, "list of strings, not a boolean"),
    "labels fractions": ({"text": ["a"], "labels": [[0.5]]}, "line 1, labels: a label must be a string"),
    "label null": (
        {"text": ["a"], "labels": [["x", None]]},
        "line 1, labels: a label must be .* missing value",
    ),
    "label empty": ({"text": ["a"], "labels": [[""]]}, "a label must not be empty"),
    "text number": ({"text": [3], "labels": ["x"]}, "line 1, text: must be a string, not a number"),
    "split": ({"text": ["a"], "labels": ["x"], "split": ["odd"]}, "line 1, split: .*'odd'"),
    "id fraction": ({"text": ["a"], "labels": ["x"], "id": [1.5]}, "line 1, id: the id must be"),
    "not utf-8": (
        {"text": pa.array([b"a", b"\xff"], pa.binary()).view(pa.string()), "labels": ["x", "x"]},
        "line 2: a string in the row is not valid UTF-8",
    ),
    "no labels": ({"text": ["a"]}, "there is no column 'labels'"),
    "no rows": (
        {"text": pa.array([], pa.string()), "labels": pa.array([], pa.string())},
        "contains no examples",
    ),
    "no document": ({"name": ["a"], "labels": ["x"]}, "no column is left for the document"),
    "two columns": ({"raw_email": [b"a"], "text": ["a"], "labels": ["x"]}, "omit the option text"),
}


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_unusable_tables_are_rejected(case: str, tmp_path: Path) -> None:
    columns, reason = BAD_COLUMNS[case]
    options = {"text": "text"} if case == "two columns" else {}
    with pytest.raises(BadDataError, match=reason):
        read(write_table(columns), tmp_path, **options)


def test_documents_over_the_limit_are_rejected(tmp_path: Path) -> None:
    content = write_table({"text": ["a" * 2000, "b"], "labels": ["x", "x"]})
    report, _ = read(content, tmp_path, limits=IngestLimits(record_bytes=1000), max_bad_records=1)
    assert report.n_examples == 1
    with pytest.raises(BadDataError, match="limit of 1,000 bytes after decompression"):
        read(content, tmp_path, limits=IngestLimits(decompressed_bytes=1000))


GOOD = write_table({"text": ["some text"] * 50, "labels": [["x", "y"]] * 50})


def test_column_names_that_are_not_utf8_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="the Parquet file cannot be read"):
        read(GOOD.replace(b"labels", b"label\xff"), tmp_path)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, len(GOOD)), st.binary(min_size=1, max_size=20), st.booleans())
def test_damaged_files_are_read_or_rejected(
    tmp_path_factory: pytest.TempPathFactory, place: int, junk: bytes, cut: bool
) -> None:
    damaged = GOOD[:place] + (b"" if cut else junk + GOOD[place + len(junk) :])
    try:
        report, examples = read(damaged, tmp_path_factory.mktemp("fuzz"), max_bad_records=99)
    except BadDataError as error:
        assert str(error)  # noqa: PT017 - both outcomes are valid
    else:
        assert report.n_examples == examples.n_examples >= 1
