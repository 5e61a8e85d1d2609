"""fastText: labels are words with a prefix."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.data.examples import Examples
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.readers.fasttext import FastTextOptions
from models.data.store import StoredExamples
from models.errors import BadDataError


def read(content: bytes, folder: Path, **options: Any) -> tuple[DatasetReport, Examples]:
    arguments = {name: options.pop(name) for name in ("limits", "max_bad_records") if name in options}
    report = ingest(
        io.BytesIO(content),
        "fasttext",
        folder / "set.parquet",
        options=FastTextOptions.model_validate({"format": "fasttext", **options}),
        **arguments,
    )
    return report, Examples.concatenate(list(StoredExamples(folder / "set.parquet").batches()))


def test_words_with_the_prefix_are_labels_and_the_rest_is_the_text(tmp_path: Path) -> None:
    content = (
        "__label__sauce __label__food-safety  How  much, salt?\r\n"
        "\n"
        "no label __label\n"
        "__label__a\ttext __label__b more\n"
        "__label__été\u00a0x label_c\n"
        "__label__a,__label__b-c text\n"
    ).encode()
    _, examples = read(content, tmp_path)
    assert list(examples.labels) == [("food-safety", "sauce"), (), ("a", "b"), ("été\u00a0x",), ("a", "b-c")]
    assert list(examples.documents) == [  # type: ignore[arg-type]
        "How  much, salt?",
        "no label __label",
        "text more",
        "label_c",
        "text",
    ]


def test_the_prefix_can_be_set(tmp_path: Path) -> None:
    _, examples = read(b"#a #b text __label__c\n", tmp_path, label_prefix="#")
    assert list(examples.labels) == [("a", "b")]
    assert list(examples.documents) == ["text __label__c"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"__label__ text\n", "line 1: a label must not be empty"),
        (b"a\n__label__a\x01 text\n", "line 2: a label must not contain control characters"),
        (b"__label__a \xff\n", "line 1: column 12: byte 0xff is not valid UTF-8"),
        (b"\n", "contains no examples"),
        (b"__label__a,b text\n", "line 1: the label 'a,b' contains ',';"),
        (b"__label__a;text\n", "line 1: the label 'a;text' contains ';';"),
        (b"__label__a__label__b text\n", "line 1: the label 'a__label__b' does not end where it should"),
        (b'__label__"help desk" text\n', "line 1: the label '\"help' does not end where it should"),
        *(
            (
                f"__label__z z\n{word} text\n".encode(),
                f"line 2: the word {re.escape(repr(word))} is nearly a label",
            )
            for word in (
                *(
                    "_label__a",
                    "__LABEL__a",
                    "__label_a",
                    "_label_a",
                    "label__a",
                    "___label__a",
                    "__labels__a",
                ),
                *("**label**a", r"\_\_label\_\_a", "--label--a", "x__label__a"),
            )
        ),
    ],
)
def test_bad_lines_are_rejected(content: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match=reason):
        read(content, tmp_path)


@pytest.mark.parametrize(
    ("lines", "warning"),
    [
        (["__label__a, __label__b, text", "__label__a: __label__b| text"], "labels with a comma"),
        (['"__label__a __label__b text"', "'__label__a __label__b text'"], "lines in quotation marks"),
        (["label text", "__label__a __label__b text"], "head lines with names of columns"),
        (["17 __label__a __label__b text", "3,__label__a __label__b text"], "lines with a row number"),
        (['"0","__label__a __label__b text"', '"1 __label__a __label__b text"'], "lines with a row number"),
    ],
)
def test_markers_that_are_nearly_right_are_read_as_they_are_meant(
    lines: list[str], warning: str, tmp_path: Path
) -> None:
    report, examples = read("\n".join(lines).encode(), tmp_path)
    assert set(examples.labels) == {("a", "b")}
    assert set(examples.documents) == {"text"}  # type: ignore[arg-type]
    assert any(text.startswith(warning) and "first in line 1" in text for text in report.warnings)


def test_long_lines_are_bad_records(tmp_path: Path) -> None:
    content = b"__label__a " + b"x " * 1000 + b"\n__label__a x\n"
    report, examples = read(content, tmp_path, limits=IngestLimits(record_bytes=100), max_bad_records=1)
    assert (report.n_bad_records, examples.n_examples) == (1, 1)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=100) | st.text(alphabet="__label ab\n\t\r\0", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_rejected(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    whole = b"__label__a b\n" + content
    report, examples = read(whole, tmp_path_factory.mktemp("fuzz"), max_bad_records=100)
    assert report.n_examples == examples.n_examples >= 1
