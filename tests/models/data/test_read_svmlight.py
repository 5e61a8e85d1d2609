"""Multi-label svmlight: valid lines, and bad lines reported by line and column."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.data.examples import Examples, FeatureRows
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.readers.svmlight import SVMLightOptions
from models.data.store import StoredExamples
from models.errors import BadDataError


def read(
    content: bytes, folder: Path, *, max_bad_records: int = 0, **options: Any
) -> tuple[DatasetReport, Examples, FeatureRows]:
    report = ingest(
        io.BytesIO(content),
        "svmlight",
        folder / "set.parquet",
        options=SVMLightOptions.model_validate({"format": "svmlight", **options}),
        max_bad_records=max_bad_records,
    )
    examples = Examples.concatenate(list(StoredExamples(folder / "set.parquet").batches()))
    assert isinstance(examples.documents, FeatureRows)
    return report, examples, examples.documents


def test_labels_features_comments_and_order(tmp_path: Path) -> None:
    content = b"# head\n1,0 3:1.5 1:-2e-1 # comment 9:9\r\n\n 2:4\n2:5 3:0\n5\n"
    _, examples, rows = read(content, tmp_path)
    assert list(examples.labels) == [("0", "1"), (), (), ("5",)]
    assert list(rows.names) == ["1", "2", "3"]
    np.testing.assert_array_equal(rows.matrix.toarray(), [[-0.2, 0, 1.5], [0, 4, 0], [0, 5, 0], [0, 0, 0]])


def test_names_replace_numbers(tmp_path: Path) -> None:
    report, examples, rows = read(
        b"1 1:2 3:4\n", tmp_path, label_names=["x", "y"], feature_names=["c", "b", "a"]
    )
    assert list(examples.labels) == [("y",)]
    assert list(rows.names) == ["a", "b", "c"]
    np.testing.assert_array_equal(rows.matrix.toarray(), [[4, 0, 2]])
    assert report.label_counts == {"x": 0, "y": 1}
    _, examples, rows = read(
        b"1 0:2\n", tmp_path, label_names=["x"], feature_names=["a"], first_label=1, first_feature=0
    )
    assert list(examples.labels) == [("x",)]
    assert list(rows.names) == ["a"]
    with pytest.raises(BadDataError, match="label_names contains the same name twice"):
        read(b"0 1:1\n", tmp_path, label_names=["x", "x"])


BAD_LINES = {
    "repeated": (b"1 2:1 3:1 2:1", "column 11: '2:1': the index occurs twice"),
    "repeated, with a leading zero": (b"1 2:1 02:1", "column 7: '02:1': the index occurs twice"),
    "huge": (b"1 2147483648:1", "column 3: .*at most 2,147,483,647"),
    "gigantic": (b"1 " + b"9" * 5000 + b":1", "column 3: .*at most"),
    "negative": (b"1 -1:1", "column 3: '-1:1': the feature must be a whole number"),
    "word": (b"1 id:1", "column 3: 'id:1': the feature must be a whole number"),
    "a query that is not first": (b"1 2:1 qid:1", "column 7: 'qid:1': the feature must be a whole number"),
    "no colon": (b"1 2:1 3", "column 7: '3': the value after the colon must be a finite number"),
    "no colon or comma": (b"1 2 3:1", "column 3: '2': a feature needs a colon, .* a label a comma before it"),
    "label after white space": (b" 1 2:1", "column 2: '1': .* delete the white space at the beginning"),
    "fraction": (b"0.73 2:1", "the label '0.73' is a fraction"),
    "no value": (b"1 2:", "column 3: '2:': the value"),
    "not a number": (b"1  2:x", "column 4: '2:x': the value"),
    "nan": (b"1 2:nan", "column 3: '2:nan': the value"),
    "infinity": (b"1 2:1 3:inf", "column 7: '3:inf': the value"),
    "overflow": (b"1 2:1e999", "column 3: '2:1e999': the value"),
    "underscore": (b"1 2:1_0", "column 3: '2:1_0': the value"),
    "not utf-8": (b"\xff 2:1", "byte 0xff is not valid UTF-8"),
    "broken pair": (b"1 2:1:1", "column 3: '2:1:1': the value"),
    "label control": (b"\x01 2:1", "control characters"),
}


@pytest.mark.parametrize("case", BAD_LINES)
@pytest.mark.parametrize("known", [b"7 2:1 3:1\n", b"7 8:1\n"])
def test_a_bad_line_is_reported_by_line_column_and_reason(case: str, known: bytes, tmp_path: Path) -> None:
    line, reason = BAD_LINES[case]
    with pytest.raises(BadDataError, match=reason) as caught:
        read(known + line + b"\n1 1:1\n", tmp_path)
    assert [record.line for record in caught.value.records] == [2]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"2 1:1", "label 2 has no name; the option label_names covers 0 to 1"),
        (b"x 1:1", r"the label must be a whole number, not 'x'"),
        (b"1 0:1", "column 3: '0:1': feature 0 has no name; the option feature_names covers 1 to 2"),
        (b"1 3:1", "feature 3 has no name"),
    ],
)
def test_numbers_without_a_name_are_rejected(line: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match=reason):
        read(line, tmp_path, label_names=["x", "y"], feature_names=["a", "b"])


def test_white_space_after_a_comma_between_labels_is_accepted(tmp_path: Path) -> None:
    _, examples, rows = read(b"0, 2 1:0.5\n0 , 2,\t3 1:1\n0,_1\n", tmp_path)
    assert list(examples.labels) == [("0", "2"), ("0", "2", "3"), ("0", "_1")]
    np.testing.assert_array_equal(rows.matrix.toarray(), [[0.5], [1], [0]])


def test_a_whole_number_is_one_label_however_it_is_written(tmp_path: Path) -> None:
    content = b"1 1:1\n1.0 1:1\n+1 1:1\n1.000e+00 1:1\n-1.0 1:1\n007,a.5,2e3 1:1\n"
    report, _, _ = read(content, tmp_path)
    assert report.label_counts == {"-1": 1, "007": 1, "1": 4, "2e3": 1, "a.5": 1}
    report, _, _ = read(content.rpartition(b"-1.0")[0], tmp_path, label_names=["zero", "one"])
    assert report.label_counts == {"one": 4, "zero": 0}


def test_queries_are_ignored_with_a_warning(tmp_path: Path) -> None:
    report, examples, rows = read(b"0,1 qid:7 1:0.5\n1 qid:7 2:1\nqid:8 2:4\n1 qid:9\n", tmp_path)
    assert list(examples.labels) == [("0", "1"), ("1",), (), ("1",)]
    np.testing.assert_array_equal(rows.matrix.toarray(), [[0.5, 0], [0, 1], [0, 4], [0, 0]])
    assert report.warnings[:1] == ["lines with a query (qid): 4; the queries were ignored"]


def test_the_first_line_can_announce_the_numbers_of_examples_features_and_labels(tmp_path: Path) -> None:
    report, examples, rows = read(b"2 5 3\n0,1 0:0.5 4:1\n2 1:1\n", tmp_path)
    assert list(examples.labels) == [("0", "1"), ("2",)]
    assert list(rows.names) == ["0", "1", "4"]
    assert not any("announces" in warning for warning in report.warnings)
    report, examples, _ = read(b"# c\n3 5 3\n0,1 0:0.5\n 1:1\n", tmp_path)
    assert list(examples.labels) == [("0", "1"), ()]
    assert report.warnings[0].startswith("the first line announces 3 examples, but the file has 2 lines")
    with pytest.raises(BadDataError, match="line 1: this is the head line of a matrix without labels"):
        read(b"2 5\n0:0.5 4:1\n1:1\n", tmp_path)
    with pytest.raises(BadDataError, match="line 2: column 3: '5': a feature needs a colon"):
        read(b"0,1 0:0.5\n2 5 3\n", tmp_path)


def test_files_with_two_classes_get_a_warning(tmp_path: Path) -> None:
    report, _, _ = read(b"-1 1:1\n+1 2:1\n", tmp_path)
    assert report.label_counts == {"-1": 1, "1": 1}
    assert report.warnings[0].startswith("the labels are 1 and -1, as in a file with two classes")
    report, _, _ = read(b"-1,2 1:1\n+1 2:1\n", tmp_path)
    assert not any("two classes" in warning for warning in report.warnings)


def test_a_file_without_examples_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="contains no examples"):
        read(b"# nothing\n", tmp_path)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 5), max_size=3, unique=True),
            st.dictionaries(st.integers(1, 40), st.floats(allow_nan=False, allow_infinity=False), max_size=6),
        ),
        min_size=1,
        max_size=10,
    )
)
def test_written_lines_round_trip(
    tmp_path_factory: pytest.TempPathFactory, examples: list[tuple[list[int], dict[int, float]]]
) -> None:
    lines = [
        ",".join(map(str, labels)) + "".join(f" {index}:{value!r}" for index, value in features.items())
        for labels, features in [*examples, ([9], {})]
    ]
    _, read_back, rows = read("\n".join(lines).encode(), tmp_path_factory.mktemp("svm"))
    non_empty = [example for example in examples if example[0] or example[1]]  # empty lines are skipped
    for i, (labels, features) in enumerate(non_empty):
        assert list(read_back.labels[i]) == sorted(map(str, labels))
        values = dict(zip(rows.names, rows.matrix[[i]].toarray()[0], strict=True))
        assert {int(name): v for name, v in values.items() if v} == {k: v for k, v in features.items() if v}


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=100) | st.text(alphabet="0123:,. #\n-e", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_rejected(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    report, examples, _ = read(b"1 1:1\n" + content, tmp_path_factory.mktemp("fuzz"), max_bad_records=100)
    assert report.n_examples == examples.n_examples >= 1
