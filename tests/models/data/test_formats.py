"""Formats are detected from the content, and options belong to one format."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pydantic import TypeAdapter, ValidationError

from models.data.ingestion.ingest import ingest
from models.data.readers.csv import CSVOptions
from models.data.readers.registry import FORMATS, FormatOptions
from models.errors import BadDataError, ParameterError


def zipped(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("folder/", b"")
        archive.writestr(name, content)
    return out.getvalue()


def parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"text": ["a"], "labels": [["x"]]}), out)
    return out.getvalue()


HIERARCHICAL = (
    b"% comment\n\n@RELATION r\n@attribute a numeric\n@attribute c hierarchical x,x/y\n@data\n1,x/y\n"
)
CONTENTS = [
    ("jsonl", b'\n {"text": "a", "labels": ["x"]}\n'),
    ("jsonl", b'\xef\xbb\xbf{"text": "a, b: 1:2", "labels": ["x"]}'),
    ("csv", b"text,labels\na,x\n"),
    ("csv", b"text;labels\r\na;x\r\n"),
    ("csv", b"a\tlabels\n1:2\tx\n".replace(b"1:2", b"1.2")),
    ("svmlight", b"# comment\n1,2 3:0.5 7:1e-3 # one\n"),
    ("svmlight", b"1 3:-0.5\r\n"),
    ("svmlight", b"1 qid:2 3:-0.5\n"),
    ("svmlight", b"0, 2 3:-0.5\n"),
    ("svmlight", b"1 5 3\n0,1 0:0.5 4:1\n"),
    ("fasttext", b"__label__x a, b\n"),
    ("fasttext", b"\n__label__x\r\n"),
    ("fasttext", b'"__label__x, a"\n'),
    ("fasttext", b"0 __label__x, a, b\n"),
    ("csv", zipped("folder/train.csv", b"text,labels\na,x\n")),
    ("csv", zipped("data.tsv", b"text\tlabels\na\tx\n")),
    ("svmlight", zipped("data.txt", b"1,2 3:0.5 7:1e-3 # one\n")),
    ("jsonl", zipped("a", b'{"text": "a", "labels": ["x"]}\n')),
    ("parquet", zipped("train-00000-of-00001.parquet", parquet())),
    ("csv", b"text,labels\ra,x\r"),
    ("csv", "text,labels\na,x\n".encode("utf-16-be")),
    ("jsonl", '{"text": "a", "labels": ["x"]}\n'.encode("utf-16")),
    ("svmlight", "\ufeff1,2 3:0.5\r".encode("utf-32-be")),
    ("arff", HIERARCHICAL.decode().encode("utf-16-le")),
    ("arff", HIERARCHICAL),
    ("arff", HIERARCHICAL.replace(b"@RELATION r", b"")),
    ("arff", zipped("folder/x.arff", HIERARCHICAL)),
    ("eml_zip", zipped("folder/x.eml", b"Subject: x.arff\n\n")),
    ("mbox", b"From me Thu Jan 01 00:00:00 1970\nX-Gmail-Labels: x\n\nbody\n"),
    ("parquet", parquet()),
]


@pytest.mark.parametrize(("name", "content"), CONTENTS)
@pytest.mark.parametrize("compress", [bytes, gzip.compress, lambda c: zstandard.ZstdCompressor().compress(c)])
def test_a_detected_format_gives_the_same_data_set_as_a_named_one(
    name: str, content: bytes, compress: type[bytes], tmp_path: Path
) -> None:
    detected = ingest(io.BytesIO(compress(content)), None, tmp_path / "detected.parquet")
    named = ingest(io.BytesIO(compress(content)), name, tmp_path / "named.parquet")
    assert detected == named
    assert detected.n_examples == 1
    assert (tmp_path / "detected.parquet").read_bytes() == (tmp_path / "named.parquet").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf\r\n", "the file is empty"),
        (b"some words\n", "cannot be detected from the content; set format to one of jsonl, csv"),
        (b"some words \n", "cannot be detected from the content"),
        ("some words\n".encode("utf-16"), "cannot be detected from the content"),
    ],
)
def test_unknown_content_is_rejected(content: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match=reason):
        ingest(io.BytesIO(content), None, tmp_path / "set.parquet")


def test_empty_lines_at_the_beginning_take_linear_time(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="cannot be detected"):
        ingest(io.BytesIO(b" \n" * 30_000 + b"some words\n"), None, tmp_path / "set.parquet")


def test_unknown_formats_and_options_of_another_format_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="unknown format 'xls'") as caught:
        ingest(io.BytesIO(b""), "xls", tmp_path / "set.parquet")
    assert caught.value.pointer == "/format"
    with pytest.raises(ParameterError, match="submit the options of the format jsonl") as caught:
        ingest(io.BytesIO(b""), "jsonl", tmp_path / "set.parquet", options=CSVOptions(format="csv"))
    assert caught.value.pointer == "/options"


def test_the_field_format_selects_the_options() -> None:
    adapter: TypeAdapter[object] = TypeAdapter(FormatOptions)
    for name, known in FORMATS.items():
        assert type(adapter.validate_python({"format": name})) is known.options
        fields = known.options.model_json_schema()["properties"].values()
        assert all("description" in field for field in fields if "const" not in field)
    with pytest.raises(ValidationError):
        adapter.validate_python({"format": "jsonl", "delimiter": ";"})
    with pytest.raises(ValidationError):
        adapter.validate_python({})
