"""Text files in UTF-16 are read like files in UTF-8, in every format that consists of lines."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from models.data.examples import Examples
from models.data.files.lines import as_utf8, find_wide_encoding
from models.data.ingestion.ingest import ingest
from models.data.readers.csv import CSVOptions
from models.data.store import StoredExamples
from models.errors import BadDataError

ENCODINGS = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]


def converted(content: bytes) -> bytes:
    return as_utf8(cast("BinaryIO", io.BufferedReader(io.BytesIO(content)))).read()


def documents(path: Path) -> list[str]:
    return list(Examples.concatenate(list(StoredExamples(path).batches())).documents)  # type: ignore[arg-type]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_any_text_is_converted(encoding: str) -> None:
    rng = random.Random(1)  # noqa: S311 - no secret
    text = "\ufeff" + "".join(rng.choices("aß€漢👩\r\n\0", k=200_000))
    assert converted(text.encode(encoding)) == text.encode()


def test_a_text_without_a_byte_order_mark_is_recognized_by_its_first_characters() -> None:
    for encoding in ENCODINGS[:2]:
        assert find_wide_encoding("id;text".encode(encoding)) == encoding
        assert converted("id;€".encode(encoding)) == "\ufeffid;€".encode()
    for content in (b"", b"a", b"a\0", b"\0\0\0\0", b"a\0b", b"text", "é€".encode("utf-16-le")):
        assert find_wide_encoding(content) is None
        assert converted(content) == content


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_the_option_encoding_reads_tables_in_utf16_without_ascii_at_the_start(
    encoding: str, tmp_path: Path
) -> None:
    content = "質問,labels\n漢字,x\n".encode(encoding)
    options = CSVOptions(format="csv", encoding="utf-16", text="質問")
    ingest(io.BytesIO(content), "csv", tmp_path / "set.parquet", options=options)
    assert documents(tmp_path / "set.parquet") == ["漢字"]


def test_half_a_surrogate_pair_is_a_bad_record(tmp_path: Path) -> None:
    content = "\ufefftext,labels\na,x\n\ud800,x\nc,x\n".encode("utf-16-le", "surrogatepass")
    report = ingest(io.BytesIO(content), "csv", tmp_path / "set.parquet", max_bad_records=1)
    assert [(record.line, record.field) for record in report.bad_records] == [(3, "text")]
    assert documents(tmp_path / "set.parquet") == ["a", "c"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_truncated_file_is_rejected(encoding: str, tmp_path: Path) -> None:
    content = "\ufefftext,labels\na,x\n".encode(encoding)[:-1]
    with pytest.raises(BadDataError, match=f"not valid {encoding.upper()}: .*; upload the complete file"):
        ingest(io.BytesIO(content), "csv", tmp_path / "set.parquet")
