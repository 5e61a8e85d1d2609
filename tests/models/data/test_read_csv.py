"""CSV: columns get roles by name, and bad rows are reported by line and column."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from models.data.examples import Examples, FeatureRows
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.readers.csv import CSVOptions
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.mail.email import Email


def read(content: str | bytes, folder: Path, **options: Any) -> tuple[DatasetReport, Examples]:
    limits = options.pop("limits", None)
    max_bad_records = options.pop("max_bad_records", 0)
    report = ingest(
        io.BytesIO(content.encode() if isinstance(content, str) else content),
        "csv",
        folder / "set.parquet",
        options=CSVOptions.model_validate({"format": "csv", **options}),
        limits=limits,
        max_bad_records=max_bad_records,
    )
    return report, Examples.concatenate(list(StoredExamples(folder / "set.parquet").batches()))


def test_columns_have_roles_by_their_names(tmp_path: Path) -> None:
    content = 'id,split,labels,text\r\n7,train,"a, b",eins\r\n8,,,"zwei, \r\n""drei"""\r\n'
    report, examples = read(content, tmp_path)
    assert list(examples.documents) == ["eins", 'zwei, \r\n"drei"']  # type: ignore[arg-type]
    assert list(examples.labels) == [("a", "b"), ()]
    assert list(examples.ids) == ["7", "8"]
    assert examples.splits() == ["train", None]
    assert report.n_unlabelled == 1


def test_the_options_assign_columns(tmp_path: Path) -> None:
    content = "Ticket;Body;Team;Mood\n1;Hallo;Sales|Support;good\n"
    report, examples = read(content, tmp_path, text="Body", labels="Team", label_separator="|", id="Ticket")
    assert list(examples.documents) == ["Hallo"]  # type: ignore[arg-type]
    assert list(examples.labels) == [("Sales", "Support")]
    assert report.warnings[:1] == ["unused columns: 'Mood'"]


@pytest.mark.parametrize("option", ["label_columns", "labels"])
def test_label_columns_with_all_other_columns_as_features(tmp_path: Path, option: str) -> None:
    content = "height\twidth\tred\tgreen, dark\n1.5\t\t1\t0\n-2e1\t0\tno\tYES\n"
    report, examples = read(content, tmp_path, **{option: ["red", "green, dark"]})
    assert isinstance(examples.documents, FeatureRows)
    assert list(examples.documents.names) == ["height", "width"]
    np.testing.assert_array_equal(examples.documents.matrix.toarray(), [[1.5, 0], [-20, 0]])
    assert list(examples.labels) == [("red",), ("green, dark",)]
    assert report.warnings[:1] == ["empty feature cells: 1; they were read as 0"]
    assert report.label_counts == {"green, dark": 1, "red": 1}


def test_labels_and_label_columns_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="set either labels or label_columns"):
        read("a,red,labels\n1,1,x\n", tmp_path, labels="labels", label_columns=["red"])


def test_an_unknown_label_column_is_named_with_its_option(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="option label_columns names the column 'red'"):
        read("a,b\n1,1\n", tmp_path, label_columns=["red"])


def test_a_column_without_a_name_is_not_a_feature(tmp_path: Path) -> None:
    report, _ = read(",a,labels\n0,1,x\n1,2,x\n", tmp_path)
    assert report.n_features == 1
    assert report.warnings[0].startswith("columns without a name, which were not read: 1; ")


def test_columns_of_an_email(tmp_path: Path) -> None:
    content = "Subject,Sender,Body,labels\nhi,me@example.org,text,x\n"
    _, examples = read(content, tmp_path, email={"subject": "Subject", "from": "Sender", "text": "Body"})
    assert examples.kind == "email"
    assert list(examples.documents) == [Email(None, "hi", "me@example.org", "", "text", "")]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ['say "hi"', "👩‍🚀 crew", "a;b", "'"])
def test_label_names_with_quotes_and_emoji(name: str, tmp_path: Path) -> None:
    quoted = name.replace('"', '""')
    report, _ = read(f'text,labels\nt,"{quoted}"\n', tmp_path)
    assert report.label_counts == {name: 1}


def test_a_byte_order_mark_and_other_encodings_are_read(tmp_path: Path) -> None:
    report, _ = read(b"\xef\xbb\xbflabels,text\nx,t\n", tmp_path)
    assert report.n_examples == 1
    _, examples = read("text,labels\nGrüße €,x\n".encode("cp1252"), tmp_path, encoding="cp1252")
    assert list(examples.documents) == ["Grüße €"]  # type: ignore[arg-type]
    _, examples = read("\ufefftext,labels\nGrüße €,x\n".encode(), tmp_path, encoding="cp1252")
    assert list(examples.documents) == ["Grüße €"]  # type: ignore[arg-type]


BAD_ROWS = {
    "too few cells": (b"only", None, "the row has 1 cells, but the table has 4 columns"),
    "too many cells": (b"a,b,train,1,2", None, "the row has 5 cells"),
    "not a number": (b"1x,x,,q", "a", "'1x' is not a finite number"),
    "decimal comma": (b'"1,5",x,,q', "a", "'1,5' is not a finite number"),
    "underscore": (b"1_0,x,,q", "a", "not a finite number"),
    "nan": (b"NaN,x,,q", "a", "not a finite number"),
    "infinity": (b"-inf,x,,q", "a", "not a finite number"),
    "overflow": (b"1e999,x,,q", "a", "not a finite number"),
    "split": (b"1,x,odd,q", "split", "'odd'"),
    "id": (b"1,x,,q\x01", "id", "control characters"),
    "label control": (b"1,x\x01y,,1", "labels", "control characters"),
    "quotes": (b'1,"x"y,,1', None, "invalid quotes"),
    "not utf-8": ("1,é".encode() + b"\xff,,1", "labels", "line 3, column 4: byte 0xff is not valid utf-8"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_reported_by_line_column_and_reason(case: str, tmp_path: Path) -> None:
    row, field, reason = BAD_ROWS[case]
    with pytest.raises(BadDataError) as caught:
        read(b"a,labels,split,id\n1,x,,good\n" + row + b"\n2,y,,better\n", tmp_path)
    (record,) = caught.value.records
    assert record.line == 3
    assert record.field == field
    assert reason in record.reason
    assert list(tmp_path.iterdir()) == []


def test_rows_after_a_bad_row_are_read(tmp_path: Path) -> None:
    content = b'text,labels\n"a"b,x\n\xff,x\nshort\n"two\nlines",y\n'
    report, examples = read(content, tmp_path, max_bad_records=3)
    assert [record.line for record in report.bad_records] == [2, 3, 4]
    assert list(examples.documents) == ["two\nlines"]  # type: ignore[arg-type]


def test_cells_of_a_label_column_must_be_yes_or_no(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match=r"line 2, b: a label column must contain 1 .* not '2'"):
        read("text,b\nt,2\n", tmp_path, labels=["b"])


@pytest.mark.parametrize(
    ("content", "options", "reason"),
    [
        ("", {}, "the file is empty"),
        ("text,labels\n", {}, "contains no examples"),
        ("text,tags\na,x\n", {}, "there is no column 'labels'.*the columns are 'text', 'tags'"),
        ("text,labels,text\na,x,b\n", {}, "two columns have the name 'text'"),
        (
            "text,labels\na,x\n",
            {"text": "body"},
            r"the option text names the column 'body', which does not exist",
        ),
        ("text,labels\na,x\n", {"labels": ["text", "y"]}, "names the column 'y'"),
        ("text,labels\na,x\n", {"features": ["text"], "text": "text"}, "the options set text and features"),
        ("id,labels\na,x\n", {}, "no column is left for the document"),
        ("a,labels\n1,x\n", {"features": ["labels"]}, "is a feature and has another role"),
        ("a, \x01,labels\n1,2,x\n", {}, "a column name must not contain control characters"),
        ('"a,labels\n1,x\n', {}, "header row cannot be read"),
        (b"a\xff,labels\n1,x\n", {}, "the first line is not valid utf-8"),
    ],
)
def test_unusable_files_are_rejected(
    content: str | bytes, options: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(BadDataError, match=reason):
        read(content, tmp_path, **options)


def test_a_missing_closing_quote_is_found_in_bounded_memory(tmp_path: Path) -> None:
    content = 'text,labels\n"' + "a line\n" * 100_000
    with pytest.raises(BadDataError, match="line 2: the record is longer than the limit of 1,000 bytes"):
        read(content, tmp_path, limits=IngestLimits(record_bytes=1000))


def test_cells_can_be_long(tmp_path: Path) -> None:
    _, examples = read("text,labels\n" + "a" * 300_000 + ",x\n", tmp_path)
    assert len(examples.documents[0]) == 300_000  # type: ignore[arg-type, index]


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet='a,"\n\r;\t1.', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_rejected(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    good = b"a,labels\n1,x\n"
    report, examples = read(good + content.replace(b'"', b"'"), folder, max_bad_records=1000)
    assert report.n_examples == examples.n_examples >= 1
    for whole in (content, good + content):
        try:
            read(whole, folder)
        except BadDataError as error:
            assert str(error)  # noqa: PT017 - both outcomes are valid


def test_lists_in_label_cells_are_labels_and_half_a_list_is_rejected_by_line(tmp_path: Path) -> None:
    content = (
        """text,labels\none,"['a', 'b']"\ntwo,"[""b""]"\nthree,[]\nfour,"{""choices"":[""a"",""b""]}"\n"""
    )
    _, examples = read(content, tmp_path)
    assert list(examples.labels) == [("a", "b"), ("b",), (), ("a", "b")]
    with pytest.raises(BadDataError, match="line 6, labels: the cell contains a list that is not complete"):
        read(content + "five,\"['a',\"\n", tmp_path)


def test_several_columns_with_labels_are_joined(tmp_path: Path) -> None:
    content = 'text,first,second\na,sales,\nb,sales,"support,legal"\nc,,\n'
    report, examples = read(content, tmp_path, labels_in=["first", "second"])
    assert list(examples.labels) == [("sales",), ("legal", "sales", "support"), ()]
    assert report.warnings[0].startswith("examples without a label: 1")
    with pytest.raises(ValidationError, match="set only one of labels, labels_in and label_columns"):
        CSVOptions(format="csv", labels="first", labels_in=["second"])
