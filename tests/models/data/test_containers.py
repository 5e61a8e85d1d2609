"""Files in a zip, files of another kind than the format says, and lines that end in CR alone."""

from __future__ import annotations

import gzip
import io
import re
import sqlite3
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from models.data.examples import Examples
from models.data.files.containers import foreign_file
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.store import StoredExamples
from models.errors import BadDataError


def read(content: bytes, format_: str | None, folder: Path, **options: Any) -> tuple[DatasetReport, Examples]:
    report = ingest(io.BytesIO(content), format_, folder / "set.parquet", **options)
    return report, Examples.concatenate(list(StoredExamples(folder / "set.parquet").batches()))


def make_zip(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def parquet(text: str) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"text": [text], "labels": [["x"]]}), out)
    return out.getvalue()


WRITERS: dict[str, tuple[str, Callable[[str], bytes]]] = {
    "csv": (".csv", lambda text: f"text,labels\n{text},x\n".encode()),
    "jsonl": (".jsonl", lambda text: f'{{"text": "{text}", "labels": ["x"]}}\n'.encode()),
    "fasttext": (".txt", lambda text: f"__label__x {text}\n".encode()),
    "parquet": (".parquet", parquet),
    "mbox": (
        ".mbox",
        lambda text: f"From a Thu Jan  1 00:00:00 2026\nX-Gmail-Labels: x\n\n{text}\n".encode(),
    ),
    "svmlight": (".svm", lambda text: f"x {len(text)}:1\n".encode()),
    "arff": (
        ".arff",
        lambda text: (
            f"@relation 'r: -C 1'\n@attribute x{{0,1}}\n@attribute t string\n@data\n1,{text}\n".encode()
        ),
    ),
}


@pytest.mark.parametrize("format_", WRITERS)
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_the_only_data_file_in_a_zip_is_read(
    format_: str, compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    suffix, write = WRITERS[format_]
    junk = {f"__MACOSX/._a{suffix}": b"", f".hidden/a{suffix}": b"", ".DS_Store": b"", ".gitattributes": b"x"}
    junk |= {"README.md": b"hello", "d/LICENSE.txt": b"x"}
    content = make_zip({**junk, "d/a" + suffix: write("one")})
    report, _ = read(compress(content), format_, tmp_path)
    plain, _ = read(write("one"), format_, tmp_path)
    assert report == plain
    assert read(make_zip({"a" + suffix + ".gz": gzip.compress(write("one"))}), format_, tmp_path)[0] == plain
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("format_", WRITERS)
@pytest.mark.parametrize(
    ("train", "validation", "test"),
    [
        ("NAME-train", "NAME-dev", "NAME-test"),
        ("name_Train", "name_valid", "name_TEST"),
        ("train/a", "validation/a", "test/a"),
        ("d/train-00000-of-00001", "d/validation-00000-of-00001", "d/test-00000-of-00001"),
    ],
)
def test_files_named_after_their_split_become_one_data_set(
    format_: str, train: str, validation: str, test: str, tmp_path: Path
) -> None:
    suffix, write = WRITERS[format_]
    members = {
        test + suffix: write("three"),
        train + suffix: write("one"),
        validation + suffix: write("twos"),
    }
    for named in (format_, None):
        _, examples = read(make_zip(members), named, tmp_path)
        assert examples.splits() == ["train", "validation", "test"]


def test_several_files_of_one_split_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    _, write = WRITERS["csv"]
    names = ["test/1.csv", "train/2.csv", "train/1.csv"]
    report, examples = read(make_zip({name: write(name) for name in [*names, "all.csv"]}), "csv", tmp_path)
    assert list(examples.documents) == ["train/1.csv", "train/2.csv", "test/1.csv"]  # type: ignore[arg-type]
    assert examples.splits() == ["train", "train", "test"]
    assert report.warnings[0] == "files in the zip that were not read: 1 ('all.csv')"


def test_a_split_in_the_file_takes_precedence_over_its_name(tmp_path: Path) -> None:
    content = make_zip(
        {"train.csv": b"text,labels,split\na,x,test\nb,x,\n", "test.csv": b"text,labels\nc,x\n"}
    )
    _, examples = read(content, "csv", tmp_path)
    assert examples.splits() == ["test", "train", "test"]


def test_errors_and_warnings_name_the_file_in_the_zip(tmp_path: Path) -> None:
    content = make_zip({"train.csv": b"text,labels\na,x\n", "test.csv": b"text,labels\nb\n"})
    with pytest.raises(BadDataError, match=r"line 2: test\.csv: the row has 1 cell"):
        read(content, "csv", tmp_path)
    content = make_zip({"train.csv": b"text,labels\na,x\n", "test.csv": b"text\nb\n"})
    with pytest.raises(BadDataError, match=r"test\.csv: .*labels"):
        read(content, "csv", tmp_path)
    content = make_zip(dict.fromkeys(("train.csv", "test.csv"), b"id,text,labels\n1,a,x\n"))
    with pytest.raises(BadDataError, match=r"line 2, /id: test\.csv: an earlier example has the same id '1'"):
        read(content, "csv", tmp_path)


@pytest.mark.parametrize(
    ("members", "format_", "reason"),
    [
        (
            {"a.csv": b"x", "b.csv": b"x"},
            "csv",
            "a zip archive with 2 files of data: 'a.csv', 'b.csv'; keep one",
        ),
        ({"a.csv": b"x", "b.jsonl": b"x"}, None, "files of several formats: jsonl, csv"),
        ({"a.png": b"x", "b.png": b"x"}, "csv", "a zip archive without a file that ends in .csv"),
        ({"a.zip": make_zip({"a.csv": b"x"})}, "csv", "a zip archive inside the zip"),
        ({"a.csv": b"%PDF-1.7"}, "csv", "the file is a PDF document"),
        ({"a.csv": b"x"}, "eml_zip", "the zip contains no "),
        ({"a.csv": b"text,labels\na,x\n" * 100}, "csv", "limit of 1,000 bytes after decompression"),
    ],
)
def test_other_zips_are_rejected(
    members: dict[str, bytes], format_: str | None, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(BadDataError, match=reason):
        read(make_zip(members), format_, tmp_path, limits=IngestLimits(decompressed_bytes=1000))


def test_decompression_bombs_in_a_zip_are_stopped(tmp_path: Path) -> None:
    whole = b"text,labels\n" + (b"a" * 2**16 + b",x\n") * 2**9
    content = make_zip({"a.csv": whole})
    with pytest.raises(BadDataError, match="expands to more than 200 times"):
        read(content, "csv", tmp_path)
    nested = make_zip({"a.csv.gz": gzip.compress(whole)})
    with pytest.raises(BadDataError, match="expands to more than 200 times"):
        read(nested, "csv", tmp_path)


def tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo("a.csv")
        info.size = 5
        archive.addfile(info, io.BytesIO(b"a,b\n1"))
    return out.getvalue()


def feather() -> bytes:
    out = io.BytesIO()
    pyarrow.feather.write_feather(pa.table({"a": [1]}), out)
    return out.getvalue()


def sqlite() -> bytes:
    with sqlite3.connect(":memory:") as connection:
        connection.execute("create table t (a)")
        content = connection.serialize()
    connection.close()
    return content


XLSX = {"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": b"<workbook/>"}
FOREIGN: dict[str, tuple[bytes, str]] = {
    "xlsx": (make_zip(XLSX), r"an Excel workbook \(.xlsx\); .* save the sheet .* as CSV in UTF-8"),
    "docx": (make_zip({"[Content_Types].xml": b"", "word/document.xml": b""}), "a Word document"),
    "pptx": (make_zip({"[Content_Types].xml": b"", "ppt/presentation.xml": b""}), "a PowerPoint"),
    "ods": (make_zip({"mimetype": b"x", "content.xml": b""}), "OpenDocument"),
    "numbers": (make_zip({"Index/Document.iwa": b""}), "Apple Numbers"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old Excel, Word or Outlook file"),
    "pdf": (b"%PDF-1.7\n", "a PDF document"),
    "png": (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    "jpeg": (b"\xff\xd8\xff\xe0", "a JPEG image"),
    "tar": (tar(), "a tar archive; extract it"),
    "empty zip": (make_zip({}), "an empty zip archive"),
    "rar": (b"Rar!\x1a\x07\x01\x00", "a RAR archive"),
    "7z": (b"7z\xbc\xaf\x27\x1c\x00", "a 7z archive"),
    "xz": (b"\xfd7zXZ\x00\x00", "compressed with xz; compress it with gzip or zstd"),
    "bzip2": (b"BZh91AY&SY\x00", "compressed with bzip2"),
    "feather": (feather(), "Arrow"),
    "sqlite": (sqlite(), "an SQLite database"),
    "pickle": (b"\x80\x04\x95\x0b\x00\x00\x00", "a Python pickle"),
    "docbin": (
        zlib.compress(b"\x85\xa7version\xa30.1\xa5attrs"),
        r'a DocBin of spaCy; .* json.dumps\({"text": doc.text, "cats": doc.cats}\)',
    ),
    "html": (b"\n<!DOCTYPE html>\n<html>", "a web page"),
    "xml": (b"\xef\xbb\xbf<?xml version='1.0'?><Workbook/>", "an XML document; open it in the program"),
    "xml of labels": (b"<?xml version='1.0'?><labels/>", "an XML document; put it in a zip with the ARFF"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a pointer of Git LFS"),
}


@pytest.mark.parametrize("kind", ["xlsx", "docx", "pptx", "xls", "pdf", "png", "rar", "lfs"])
def test_the_first_bytes_show_most_kinds(kind: str) -> None:
    content, reason = FOREIGN[kind]
    foreign = foreign_file(content)
    assert foreign is not None
    assert re.match(reason, f"{foreign.what}; {foreign.hint}")


@pytest.mark.parametrize(
    "members", [{"a.csv": b""}, {"mail/1.eml": b"", "mail/book.xlsx": make_zip({"a": b""})}]
)
def test_the_first_bytes_of_other_zips_show_nothing(members: dict[str, bytes]) -> None:
    assert foreign_file(make_zip(members)) is None


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("format_", ["csv", "jsonl", "svmlight", "arff", "fasttext", None])
def test_files_of_another_kind_are_named(kind: str, format_: str | None, tmp_path: Path) -> None:
    content, reason = FOREIGN[kind]
    with pytest.raises(BadDataError, match=reason):
        read(content, format_, tmp_path)


def test_a_parquet_file_sent_as_another_format_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="the file is a Parquet file; set the format to parquet"):
        read(parquet("a"), "csv", tmp_path)


@pytest.mark.parametrize(
    ("format_", "content", "other"),
    [
        ("csv", WRITERS["jsonl"][1]("a"), "jsonl"),
        ("jsonl", WRITERS["csv"][1]("a"), "csv"),
        ("svmlight", WRITERS["arff"][1]("a"), "arff"),
        ("arff", WRITERS["svmlight"][1]("a"), "svmlight"),
        ("mbox", WRITERS["fasttext"][1]("a"), "fasttext"),
        ("parquet", WRITERS["mbox"][1]("a"), "mbox"),
        ("eml_zip", WRITERS["csv"][1]("a"), "csv"),
    ],
)
def test_an_error_names_the_format_that_the_content_looks_like(
    format_: str, content: bytes, other: str, tmp_path: Path
) -> None:
    with pytest.raises(BadDataError, match=f"; the content looks like the format {other}$"):
        read(content, format_, tmp_path)


def test_an_error_in_a_file_of_the_stated_format_names_no_other(tmp_path: Path) -> None:
    with pytest.raises(BadDataError) as caught:
        read(b"text,labels\na\n", "csv", tmp_path)
    assert "looks like" not in str(caught.value)
    with pytest.raises(BadDataError) as caught:
        read(b"0 2,x 1:1\n", "svmlight", tmp_path)
    assert "looks like" not in str(caught.value)


@pytest.mark.parametrize("format_", [name for name in WRITERS if name != "parquet"])
def test_lines_can_end_in_cr_alone(format_: str, tmp_path: Path) -> None:
    _, write = WRITERS[format_]
    lines = write("one").replace(b"\n", b"\r")
    for named in (format_, None):
        assert read(lines, named, tmp_path)[0] == read(write("one"), format_, tmp_path)[0]


def test_a_cr_in_a_cell_is_kept_if_lines_end_otherwise(tmp_path: Path) -> None:
    _, examples = read(b'text,labels\n"a\rb",x\n', "csv", tmp_path)
    assert list(examples.documents) == ["a\rb"]  # type: ignore[arg-type]


def test_long_files_with_cr_alone_are_read_whole(tmp_path: Path) -> None:
    rows = b"text,labels\r" + b"".join(b"text %d,x\r" % j for j in range(60_000)) + b"end,y\r\n"
    report, _ = read(rows, "csv", tmp_path)
    assert report.n_examples == 60_001
    assert report.label_counts == {"x": 60_000, "y": 1}
