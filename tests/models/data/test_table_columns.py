"""Tables as spreadsheets and ticket systems export them, and the options that assign their columns."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from pydantic import ValidationError

from models.data.examples import Examples, FeatureRows
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.readers.csv import CSVOptions
from models.data.store import StoredExamples
from models.errors import BadDataError


def read(content: str | bytes, folder: Path, **options: Any) -> tuple[DatasetReport, Examples]:
    max_bad_records = options.pop("max_bad_records", 0)
    report = ingest(
        io.BytesIO(content.encode() if isinstance(content, str) else content),
        "csv",
        folder / "set.parquet",
        options=CSVOptions.model_validate({"format": "csv", **options}),
        max_bad_records=max_bad_records,
    )
    return report, Examples.concatenate(list(StoredExamples(folder / "set.parquet").batches()))


def texts(examples: Examples) -> list[str]:
    return list(cast("list[str]", examples.documents))


JIRA = (
    "Summary,Issue key,Labels,Labels,Labels,Comment,Comment,Description\n"
    'No invoice,SUP-1,billing,urgent,,"01/Feb/24;ann;First",,It never came\n'
    "Hello,SUP-2,,,,,,\n"
)


def test_repeated_columns_of_jira_are_joined(tmp_path: Path) -> None:
    report, examples = read(
        JIRA, tmp_path, text=["Summary", "Description", "Comment"], labels="Labels", id="Issue key"
    )
    assert texts(examples) == ["No invoice\n\nIt never came\n\n01/Feb/24;ann;First", "Hello"]
    assert list(examples.labels) == [("billing", "urgent"), ()]
    assert list(examples.ids) == ["SUP-1", "SUP-2"]
    assert report.warnings[0] == (
        "columns with the same name: 'Labels' (3 columns), 'Comment' (2 columns); their cells are joined"
    )


def test_repeated_columns_without_a_role_do_not_matter(tmp_path: Path) -> None:
    report, _ = read(JIRA, tmp_path, text="Summary", labels="Labels")
    assert report.warnings[0] == "unused columns: 'Issue key', 'Comment', 'Description'"


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("text,text,labels\na,b,x\n", {}),
        ("id,id,text,labels\n1,2,a,x\n", {}),
        ("split,split,text,labels\n,,a,x\n", {}),
        ("f,f,labels\n1,2,x\n", {}),
        ("f,f,labels\n1,2,x\n", {"features": ["f"]}),
        ("text,x,x\na,1,0\n", {"labels": ["x"]}),
        ("s,s,labels\na,b,x\n", {"email": {"subject": "s"}}),
    ],
)
def test_repeated_columns_are_rejected_if_only_one_could_be_used(
    content: str, options: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(BadDataError, match="two columns have the name"):
        read(content, tmp_path, **options)


def test_ignored_columns_are_not_features_and_may_be_repeated(tmp_path: Path) -> None:
    report, examples = read("f,when,f2,when,labels\n1,May,2,June,x\n", tmp_path, ignore=["when"])
    assert list(cast("FeatureRows", examples.documents).names) == ["f", "f2"]
    assert not [warning for warning in report.warnings if warning.startswith("unused")]
    _, examples = read("text,id,labels\na,1,x\nb,1,x\n", tmp_path, ignore=["id"])
    assert list(examples.ids) == ["1", "2"]
    with pytest.raises(BadDataError, match="the option ignore names the column 'When', which does not exist"):
        read("f,when,labels\n1,May,x\n", tmp_path, ignore=["When"])
    with pytest.raises(BadDataError, match="'f' is in the option ignore and has a role; choose one"):
        read("f,when,labels\n1,May,x\n", tmp_path, ignore=["f"], features=["f"])


def test_the_error_for_a_column_of_words_states_how_to_ignore_it(tmp_path: Path) -> None:
    content = "f,colour,labels\n1,red,x\n"
    with pytest.raises(
        BadDataError, match=r"'red' is not .*; if it is the text, .* text; .* not a feature, .* ignore"
    ):
        read(content, tmp_path)
    with pytest.raises(BadDataError, match=r"'red' is not a finite number such as -1\.5 or 2e-3$"):
        read(content, tmp_path, features=["f", "colour"])


def test_delimiters_in_quotes_do_not_count(tmp_path: Path) -> None:
    _, examples = read('"a, ""b"", c";labels\n"x, y";l\n', tmp_path, text='a, "b", c')
    assert texts(examples) == ["x, y"]


def test_a_column_label_is_used_if_there_is_no_column_labels(tmp_path: Path) -> None:
    report, _ = read("text,label\na,x\n", tmp_path)
    assert report.label_counts == {"x": 1}
    report, _ = read("text,label,labels\na,x,y\n", tmp_path)
    assert report.label_counts == {"y": 1}


def test_empty_columns_at_the_end_do_not_matter(tmp_path: Path) -> None:
    for content in (
        "text,labels,,,\na,x,,,\nb,y,,,\n",
        "text,labels,,,\na,x\nb,y,,\n",
        "text,labels\na,x,,,\nb,y,\n",
        "text,labels\na,x\n,\nb,y\n",
    ):
        report, examples = read(content, tmp_path)
        assert list(filter(None, texts(examples))) == ["a", "b"]
        assert not [warning for warning in report.warnings if "column" in warning]


def test_cells_without_a_column_are_not_lost_silently(tmp_path: Path) -> None:
    report, _ = read("text,labels,,,\na,x,,remark,\n", tmp_path)
    assert report.warnings[0] == (
        "columns without a name, which were not read: 4; if they are not row numbers, "
        "name them in the header row"
    )
    with pytest.raises(BadDataError, match="line 2: the row has 4 cells, but the table has 2 columns"):
        read("text,labels\na,x,,remark\n", tmp_path)
    with pytest.raises(BadDataError, match="line 2: the row has 1 cells, but the table has 3 columns"):
        read("text,labels,\na\n", tmp_path)


@pytest.mark.parametrize("first", ["sep=;", "SEP=;", '"sep=;"', "\ufeffsep=;"])
def test_the_line_in_which_excel_states_the_delimiter_is_read(first: str, tmp_path: Path) -> None:
    content = f'{first}\r\ntext,more;labels\r\n"a; b";x\r\nshort\r\n'
    report, examples = read(content, tmp_path, text="text,more", max_bad_records=1)
    assert texts(examples) == ["a; b"]
    assert [record.line for record in report.bad_records] == [4]


def test_the_option_delimiter_takes_precedence_over_the_first_line(tmp_path: Path) -> None:
    _, examples = read("sep=,\ntext;labels\na,b;x\n", tmp_path, delimiter=";")
    assert texts(examples) == ["a,b"]


def test_unicode_text_of_excel_is_read(tmp_path: Path) -> None:
    content = 'Betreff\tTeam\r\n"Größe\tund ""€"""\tVertrieb\r\n'.encode("utf-16")
    _, examples = read(content, tmp_path, text="Betreff", labels="Team")
    assert texts(examples) == ['Größe\tund "€"']
    assert list(examples.labels) == [("Vertrieb",)]


def test_booleans_of_spreadsheets_are_read(tmp_path: Path) -> None:
    content = "Text;a;b\r\neins;WAHR;FALSCH\r\nzwei;TRUE;ja\r\n"
    _, examples = read(content, tmp_path, text="Text", labels=["a", "b"])
    assert list(examples.labels) == [("a",), ("a", "b")]


def test_the_option_columns_names_the_columns_of_a_file_without_a_header(tmp_path: Path) -> None:
    content = '1,"my invoice, again",billing\n2,parcel late,ship\n,,,\nx\n'
    report, examples = read(content, tmp_path, columns=[None, "text", "labels"], max_bad_records=1)
    assert texts(examples) == ["my invoice, again", "parcel late", ""]
    assert report.label_counts == {"billing": 1, "ship": 1}
    assert [record.line for record in report.bad_records] == [4]


def test_the_delimiter_of_a_file_without_a_header_is_the_one_that_gives_its_columns(tmp_path: Path) -> None:
    _, examples = read("one, two, three;x\n", tmp_path, columns=["text", "labels"])
    assert texts(examples) == ["one, two, three"]
    _, examples = read("sep=,\n1;2,x\n", tmp_path, columns=["text", "labels"])
    assert texts(examples) == ["1;2"]


def test_the_option_columns_is_rejected_if_the_file_has_the_header(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="the first row contains the names in the option columns"):
        read("id,Text,labels\n1,a,x\n", tmp_path, columns=[None, "text", "labels"])


def test_a_bad_first_row_without_a_header_is_reported_in_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadDataError) as caught:
        read("a\nb\rc,x\n", tmp_path, columns=["text", "labels"])
    assert [record.line for record in caught.value.records] == [1, 2]
    with pytest.raises(BadDataError, match="line 1: invalid quotes"):
        read("a\rb,x\n", tmp_path, columns=["text", "labels"])


def test_numbers_with_a_decimal_comma_are_read(tmp_path: Path) -> None:
    _, examples = read('f1;f2;labels\n1,5;-2,25e1;a\n3;"";b\n', tmp_path, decimal=",")
    matrix = cast("FeatureRows", examples.documents).matrix.toarray()
    np.testing.assert_array_equal(matrix, [[1.5, -22.5], [3, 0]])
    with pytest.raises(BadDataError, match=r"'1\.234' is not .* such as -1,5 .* without separators of thous"):
        read("f1;labels\n1.234;a\n", tmp_path, decimal=",")
    with pytest.raises(BadDataError, match=r"'1,5' is not a finite number .* set the option decimal"):
        read("f1;labels\n1,5;a\n", tmp_path)


def test_label_columns_can_state_that_nobody_knows(tmp_path: Path) -> None:
    content = "text,a,b,c\none,1,-1,0\ntwo,?,Unknown,\nthree,1,0,-1.0\n"
    report, examples = read(content, tmp_path, labels=["a", "b", "c"])
    assert list(examples.labels) == [("a",), (), ("a",)]
    assert list(examples.unknown) == [("b",), ("a", "b"), ("c",)]
    assert report.unknown_counts == {"a": 1, "b": 2, "c": 1}
    assert report.warnings[0] == (
        "empty cells in label columns: 1; they were read as no; write -1 or ? if it is not known"
    )


def test_numbers_of_labels_get_names(tmp_path: Path) -> None:
    content = 'text,labels\na,"1,3"\nb,2.0\nc,\n'
    report, examples = read(content, tmp_path, label_names=["x", "y", "z", "never"], first_label=1)
    assert list(examples.labels) == [("x", "z"), ("y",), ()]
    assert report.label_counts == {"never": 0, "x": 1, "y": 1, "z": 1}
    with pytest.raises(BadDataError, match="line 2, labels: the label '3' is not a number from 0 to 1, for"):
        read(content, tmp_path, label_names=["x", "y"], max_bad_records=0)
    with pytest.raises(BadDataError, match="label_names contains 'x' twice"):
        read(content, tmp_path, label_names=["x", "x"])
    with pytest.raises(BadDataError, match="label_names needs one column of labels"):
        read("text,a\nt,1\n", tmp_path, labels=["a"], label_names=["x"])


def test_words_for_splits_can_be_added(tmp_path: Path) -> None:
    content = "text,labels,split\na,x,Lernen\nb,x, DEV \nc,x,Test\nd,x,\ne,x,prüfen\n"
    words = {"train": ["lernen"], "test": ["Prüfen"]}
    _, examples = read(content, tmp_path, split_words=words)
    assert examples.splits() == ["train", "validation", "test", None, "test"]
    with pytest.raises(BadDataError, match=r"line 2, split: .* 'Lernen'; set the option split_words"):
        read(content, tmp_path)
    with pytest.raises(ValidationError, match="'A' stands for two splits"):
        CSVOptions.model_validate({"format": "csv", "split_words": {"train": ["a"], "test": ["A"]}})


def test_ids_can_be_missing(tmp_path: Path) -> None:
    _, examples = read("id,text,labels\n7,a,x\n,b,x\n", tmp_path)
    assert list(examples.ids) == ["7", "2"]
