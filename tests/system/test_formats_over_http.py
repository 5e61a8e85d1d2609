"""Data sets in every file format: upload, training and prediction over HTTP."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from stack import Stack, departments

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("stack")]

EXAMPLES = departments(80)
TEXT = {"text": "invoice payment charged refund"}
NUMBERS = {"features": {"1": 3.0, "2": 0.5}}


def as_jsonl() -> bytes:
    return "".join(json.dumps(example) + "\n" for example in EXAMPLES).encode()


def as_csv() -> bytes:
    rows = [f"{e['id']};{e['text']};{'|'.join(e['labels'])};{e['split']}" for e in EXAMPLES]
    return "\r\n".join(["Ticket;Body;Team;Part", *rows]).encode("utf-8-sig")


def as_parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(EXAMPLES), file)
    return file.getvalue()


def as_svmlight() -> bytes:
    return "".join(f"{i % 3},{(i + 1) % 3} 2:{i % 5} 1:{i % 3 + 1}.5\n" for i in range(60)).encode()


def as_fasttext() -> bytes:
    lines = [" ".join(f"__label__{name}" for name in e["labels"]) + f" {e['text']}\n" for e in EXAMPLES]
    parts = {"train.txt": lines[:60], "test.txt": lines[60:], "__MACOSX/._train.txt": ["junk"]}
    return make_zip({name: "".join(part).encode() for name, part in parts.items()})


def as_arff() -> bytes:
    rows = "".join(f"{i % 3 + 1}.5,{i % 5},{i % 2},{(i % 3) // 2}\n" for i in range(60))
    arff = (
        "@relation test\n@attribute 1 numeric\n@attribute 2 numeric\n"
        f"@attribute odd {{0,1}}\n@attribute last {{0,1}}\n@data\n{rows}"
    )
    xml = (
        '<labels xmlns="http://mulan.sourceforge.net/labels">'
        '<label name="odd"></label><label name="last"></label></labels>'
    )
    return make_zip({"test.arff": arff.encode(), "test.xml": xml.encode()})


def as_mbox() -> bytes:
    return b"".join(b"From mailer Thu Jan  1 00:00:00 2026\n" + raw + b"\n" for _, raw in raw_messages())


def as_eml_zip() -> bytes:
    return make_zip({f"{labels[0]}/{i}.eml": raw for i, (labels, raw) in enumerate(raw_messages())})


def raw_messages() -> list[tuple[list[str], bytes]]:
    return [
        (
            e["labels"],
            f"Message-ID: <{e['id']}@example.org>\nX-Team: {','.join(e['labels'])}\n"
            f"Subject: hello\n\n{e['text']}\n".encode(),
        )
        for e in EXAMPLES
    ]


def make_zip(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


CSV_OPTIONS = {
    "format": "csv",
    "text": "Body",
    "labels": "Team",
    "label_separator": "|",
    "id": "Ticket",
    "split": "Part",
}

FORMATS: dict[str, tuple[Callable[[], bytes], dict[str, Any], str, int, dict[str, Any]]] = {
    "jsonl": (as_jsonl, {"format": "jsonl"}, "text", 80, TEXT),
    "csv": (as_csv, {"format": "csv", "options": CSV_OPTIONS}, "text", 80, TEXT),
    "parquet": (as_parquet, {"format": "parquet"}, "text", 80, TEXT),
    "svmlight": (as_svmlight, {"format": "svmlight"}, "features", 60, NUMBERS),
    "arff": (as_arff, {"format": "arff"}, "features", 60, NUMBERS),
    "fasttext": (as_fasttext, {"format": "fasttext"}, "text", 80, TEXT),
    "mbox": (as_mbox, {"options": {"format": "mbox", "label_header": "X-Team"}}, "email", 80, TEXT),
    "eml_zip": (as_eml_zip, {"format": "eml_zip"}, "email", 80, TEXT),
}


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_can_be_uploaded_and_trained_on(stack: Stack, name: str) -> None:
    content, fields, kind, n_examples, instance = FORMATS[name]
    dataset = stack.upload(content(), **fields)
    assert dataset["state"] == "ready", dataset
    assert (dataset["format"], dataset["kind"], dataset["n_examples"]) == (name, kind, n_examples)
    labels = [
        item["label"] for item in stack.call("GET", f"/v1/datasets/{dataset['id']}/labels", 200)["items"]
    ]
    first = stack.call("GET", f"/v1/datasets/{dataset['id']}/examples?limit=1", 200)["items"][0]
    assert set(first["labels"]) <= set(labels)
    training = stack.train(dataset["id"], model=f"format-{name}", learner={"algorithm": "svm"})
    job = stack.finished(training["id"])
    assert job["state"] == "succeeded", job
    response = stack.call("POST", f"/v1/models/format-{name}/predict", 200, json={"instances": [instance]})
    assert sorted(entry["label"] for entry in response["predictions"][0]["ranking"]) == labels


@pytest.mark.parametrize(
    ("compress", "headers"),
    [
        (gzip.compress, {}),
        (gzip.compress, {"Content-Encoding": "gzip"}),
        (zstandard.compress, {"Content-Encoding": "zstd"}),
    ],
)
@pytest.mark.parametrize("name", ["jsonl", "arff", "mbox"])
def test_compressed_content_gives_the_same_data_set(
    stack: Stack, name: str, compress: Callable[[bytes], bytes], headers: dict[str, str]
) -> None:
    content, fields, kind, n_examples, _ = FORMATS[name]
    dataset = stack.upload(compress(content()), headers=headers, **fields)
    assert dataset["state"] == "ready", dataset
    assert (dataset["kind"], dataset["n_examples"]) == (kind, n_examples)


@pytest.mark.parametrize("name", ["jsonl", "parquet", "svmlight", "arff", "fasttext", "eml_zip"])
def test_a_format_is_detected_from_the_content(stack: Stack, name: str) -> None:
    content, _, kind, n_examples, _ = FORMATS[name]
    dataset = stack.upload(content())
    assert dataset["state"] == "ready", dataset
    assert (dataset["kind"], dataset["n_examples"]) == (kind, n_examples)
