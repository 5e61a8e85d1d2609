"""What a report or an error suggests: other ways to read the file, which a form can apply."""

from __future__ import annotations

import copy
import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from models.data.advice import Advice, Suggestion, suggestions_of
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.errors import BadDataError

COLUMNS = ["subject", "body", "team"]


def read(content: bytes, folder: Path, format_: str | None = None, **fields: Any) -> DatasetReport:
    return ingest(io.BytesIO(content), format_, folder / "set.parquet", **fields)


def rejected(content: bytes, folder: Path, format_: str | None = None) -> BadDataError:
    with pytest.raises(BadDataError) as caught:
        read(content, folder, format_)
    return caught.value


def test_a_report_suggests_a_separator_and_changes_of_labels(tmp_path: Path) -> None:
    content = b"text,labels\na,sales;support\nb,support\nc,sales\nd,Sales\ne,nan\n"
    report = read(content, tmp_path)
    assert report.format == "csv"
    assert [*report.suggestions.values()] == [
        Suggestion("merge_labels", "similar"),
        Suggestion("remove_labels", ["nan"]),
        Suggestion("options/label_separator", ";"),
    ]


@pytest.mark.parametrize(
    ("content", "suggestion"),
    [
        ("text,labels\nGrüße,x\nhello,y\n".encode("cp1252"), Suggestion("options/encoding", "cp1252")),
        ("text,Straße,labels\n".encode("cp1252"), Suggestion("options/encoding", "cp1252")),
        (b"height;labels\n1,5;x\n", Suggestion("options/decimal", ",")),
        (b"subject,body,team\na,b,c\n", Suggestion("options/labels", choices=COLUMNS)),
        (b"subject,body,labels\na,b,c\n", Suggestion("options/text", choices=COLUMNS[:2])),
    ],
)
def test_an_error_suggests_the_option_to_set(content: bytes, suggestion: Suggestion, tmp_path: Path) -> None:
    error = rejected(content, tmp_path)
    assert suggestion in suggestions_of(error).values()
    assert error.format == "csv"


def test_few_bad_records_can_be_skipped(tmp_path: Path) -> None:
    content = b"text,labels\na,x\nb,x,y\nc,y\n"
    assert [*suggestions_of(rejected(content, tmp_path)).values()] == [Suggestion("max_bad_records", 1)]
    assert read(content, tmp_path, max_bad_records=1).n_examples == 2


def test_another_format_is_suggested(tmp_path: Path) -> None:
    error = rejected(b"text\tlabels\na\tx\n", tmp_path, "jsonl")
    assert [*suggestions_of(error).values()] == [Suggestion("options/format", "csv")]
    error = rejected(b'{"text": "a", "labels": ["x"]}\n', tmp_path, "svmlight")
    assert [*suggestions_of(error).values()] == [Suggestion("options/format", "jsonl")]


def test_a_file_in_a_zip_suggests_the_same(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("tickets.csv", b"text,labels\na,x;y\nb,x\n")
    assert Suggestion("options/label_separator", ";") in read(out.getvalue(), tmp_path).suggestions.values()


def test_advice_can_be_copied() -> None:
    advice = Advice("set label_separator", Suggestion("options/label_separator", ";"))
    copied = copy.deepcopy(advice)
    assert (copied, copied.suggestion) == (advice, advice.suggestion)


def test_the_choices_of_a_suggestion_are_few_and_short() -> None:
    names = ["\0" * 10_000_000, *(f"column {number}" for number in range(100_000))]
    choices = Suggestion("options/labels", choices=names).choices
    assert choices == names[1:1001]
