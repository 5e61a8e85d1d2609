"""Mutation tests of the readers: mutates small valid files of every format, and checks the readers' results.

A seed determines each file, so that a reader and a seed reproduce a fault.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import tempfile
import time
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from pydantic import TypeAdapter

from models import catalog
from models.artifact import load, save
from models.data.examples import Examples
from models.data.ingestion.ingest import ingest
from models.data.ingestion.label_changes import LabelChanges
from models.data.limits import IngestLimits
from models.data.readers.registry import FormatOptions
from models.data.store import StoredExamples
from models.errors import ArtifactError, BadDataError, ParameterError, UnsuitableDataError
from models.mail import read_message
from models.mail.language import detect_language
from models.pipeline import Pipeline

READERS = ["jsonl", "csv", "svmlight", "arff", "fasttext", "parquet", "mbox", "eml_zip", "mime", "artifact"]

LIMITS = IngestLimits(
    record_bytes=2**16, examples=5000, labels=2000, features=5000, decompressed_bytes=2**21, zip_members=200
)
MEMORY_FLOOR = 8 * 2**20
"""Bytes of memory that a reader can take for any file: buffers, the first rows of the writer, and the largest
record of a highly compressed file."""
MEMORY_RATIO = 10
"""Additional bytes of memory that a reader can take for each byte of the file."""
MAX_SECONDS = 60.0
"""Processor time that only an endless loop exceeds for files of this size."""

MESSAGES = Path(__file__).parents[1] / "models" / "mail" / "messages"

TOKENS = [
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b'"', b"'", b"{", b"}", b"[", b"]", b",", b":"),
    *(b"\n", b"\r", b"\r\n", b"\t", b" ", b"#", b"%", b"@", b"?", b"/", b"\\", b"\\u0000", b"\\ud800"),
    *(b"NaN", b"-Infinity", b"1e999", b"-0", b"1e-320", b"9" * 400, b"2199023255552", b"-1", b"0x1", b"1_0"),
    *(b"null", b"true", b'"labels"', b'"features"', b'"raw_email": "!"', b'"text": 5', b"a\xcc\x81"),
    *(b"\xf0\x9f", b"\x1a", b"@data\n", b"@attribute x {0,1}\n", b"hierarchical", b"1/2/3", b"{0 1, 0 2}"),
    *(b"[" * 3000, b"{" * 3000, b"From \n", b"X-Gmail-Labels: a,b\n", b"--b--", b"=?utf-8?b?", b"?="),
    *(b"Content-Type: multipart/mixed; boundary=b\n\n--b\n", b"Content-Transfer-Encoding: base64\n"),
    *(b"<!--", b"<p><ul><li>", b"PK\x05\x06", b"<!-->", b"--!>", b"<p style='font-size:0;display:none'>"),
    *(b"Subject : ", b">From \n", b"\r\r\n", b"117\n", b"\n--c\nContent-Type: text/html\n\n", b"= \n"),
    *(b"QQ==QUI=", b"\x1b$B-!", b"\x1b(I", b"=?utf-8*en?b?!?=", b"begin 644 a\n#0V%T\n`\nend\n", b"xn--99"),
    *(b"charset=x-sjis", b"charset=utf-16"),
]  # fmt: skip


class ReaderFault(AssertionError):  # noqa: N818 - a failed assertion
    """A reader broke one of the rules for all readers."""


@dataclass(frozen=True)
class Outcome:
    """The result of reading one file.

    Attributes:
        accepted: whether the reader accepted the file.
        peak_bytes: peak memory of Python and numpy.
        size_bytes: size of the file.
    """

    accepted: bool
    peak_bytes: int
    size_bytes: int


def check_reader(reader: str, seed: int, folder: Path) -> Outcome:
    """Mutate a file, run the reader on it, and check the result.

    Args:
        reader: one of ``READERS``.
        seed: determines the file.
        folder: folder for the files of the reader.

    Raises:
        ReaderFault: the reader raised an undocumented exception, gave no reason for a rejection, or took too
            much memory or time.
    """
    content = mutate(reader, seed)
    _load_language_model()
    rng = random.Random(seed)  # noqa: S311 - test data
    start_tracing = not tracemalloc.is_tracing()
    if start_tracing:
        tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    started = time.process_time()
    try:
        accepted = _READ.get(reader, _read_data)(reader, content, rng, folder)
    except (AssertionError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise ReaderFault(f"{reader} {seed}: {type(error).__name__}: {error}") from error
    finally:
        peak = tracemalloc.get_traced_memory()[1] - before
        if start_tracing:
            tracemalloc.stop()
    seconds = time.process_time() - started
    if peak > MEMORY_FLOOR + MEMORY_RATIO * len(content):
        raise ReaderFault(f"{reader} {seed}: {peak:,} bytes of memory for a file of {len(content):,}")
    if seconds > MAX_SECONDS:
        raise ReaderFault(f"{reader} {seed}: {seconds:.0f} s for a file of {len(content):,} bytes")
    return Outcome(accepted, peak, len(content))


@cache
def _load_language_model() -> None:
    """Load the model that the mail reader keeps, so that no single file accounts for its memory."""
    detect_language("The memory of the model does not depend on the file.")


def _read_data(reader: str, content: bytes, rng: random.Random, folder: Path) -> bool:
    labels: dict[str, Any] = {"labels": ["l1", "l2"]} if reader == "arff" and rng.random() < 0.6 else {}
    if reader == "arff" and rng.random() < 0.3:
        labels["ignore"] = ["sent", "bag"]
    if reader == "csv":
        labels = rng.choice(_CSV_OPTIONS)
    options: Any = (
        TypeAdapter[Any](FormatOptions).validate_python({"format": reader, **labels})
        if rng.random() < 0.9
        else None
    )
    target = folder / "set.parquet"
    max_bad_records = rng.choice([0, 5, 1000])
    changes = LabelChanges({"x": "y"}, {"l2"}, merge_similar=True) if rng.random() < 0.3 else None
    progress = [0]
    try:
        report = ingest(
            io.BytesIO(content),
            reader if rng.random() < 0.9 or options is not None else None,
            target,
            options=options,
            limits=LIMITS,
            max_bad_records=max_bad_records,
            changes=changes,
            progress=progress.append,
        )
    except BadDataError as error:
        if not str(error) or any(record.line < 1 or not record.reason for record in error.records):
            raise ReaderFault(f"a rejection without a line or a reason: {error!r} {error.records}") from error
        return False
    except ParameterError as error:
        if not str(error) or not error.pointer.startswith("/"):
            raise ReaderFault(f"a rejection without a pointer: {error!r}") from error
        return False
    examples = Examples.concatenate(list(StoredExamples(target).batches()))
    if not report.n_examples == examples.n_examples >= 1:
        raise ReaderFault(f"{report.n_examples} examples reported, {examples.n_examples} stored")
    is_read_twice = reader in {"parquet", "mbox"} or content.startswith((b"From ", b"PK"))
    if progress[-1] > len(content) and not is_read_twice:
        raise ReaderFault(f"{progress[-1]:,} bytes read of {len(content):,}")
    return True


def _read_mime(reader: str, content: bytes, rng: random.Random, folder: Path) -> bool:
    mail = read_message(content)
    if read_message(content) != mail:
        raise ReaderFault("two documents for the same message")
    return True


def _read_artifact(reader: str, content: bytes, rng: random.Random, folder: Path) -> bool:
    path = folder / "model.covey"
    path.write_bytes(content)
    try:
        model = load(path)
    except ArtifactError as error:
        if not str(error):
            raise ReaderFault("a rejection without a reason") from error
        return False
    documents: Any = ["red sky", "", "unknown words"]
    if model.kind_ == "text":
        with suppress(UnsuitableDataError):
            if not np.isfinite(model.scores(documents)).all():
                raise ReaderFault("scores that are not finite")
            model.predictions(documents)
    return True


_CSV_OPTIONS: list[dict[str, Any]] = [
    {},
    {},
    {"text": ["text", "id"], "ignore": ["split"]},
    {"columns": ["text", "labels", None, "split"]},
    {"columns": ["f", "labels"], "decimal": ","},
    {"labels": ["l1", "l2"], "decimal": ","},
    {"encoding": "utf-16"},
    {"label_names": ["zero", "one", "two"]},
]

_READ: dict[str, Callable[[str, bytes, random.Random, Path], bool]] = {
    "mime": _read_mime,
    "artifact": _read_artifact,
}


def mutate(reader: str, seed: int) -> bytes:
    """Return a mutated valid file, or random bytes; at most a few hundred kilobytes."""
    rng = random.Random(f"{reader} {seed}")  # noqa: S311 - test data
    if rng.random() < 0.03:
        return rng.randbytes(rng.randrange(300))
    whole = rng.choice(valid_files(reader))
    if reader == "artifact" and rng.random() < 0.8:
        return _mutate_artifact(rng, whole)
    if reader == "parquet" and rng.random() < 0.6:
        return _random_table(rng)
    if whole.startswith(b"PK") and rng.random() < 0.7:
        return _mutate_zip_members(rng, whole)
    content = _mutate_bytes(rng, whole)
    if reader not in {"artifact", "mime"} and rng.random() < 0.15:
        content = gzip.compress(content) if rng.random() < 0.5 else zstandard.compress(content)
        if rng.random() < 0.5:
            content = _mutate_bytes(rng, content)
    return content


def _mutate_bytes(rng: random.Random, content: bytes) -> bytes:
    for _ in range(rng.choice([0, 1, 1, 2, 3, 8])):
        mutation = rng.choice(_MUTATIONS)
        content = mutation(rng, content)[:400_000]
    return content


def _flip(rng: random.Random, content: bytes) -> bytes:
    flipped = bytearray(content or b"\0")
    for _ in range(rng.choice([1, 1, 2, 16])):
        flipped[rng.randrange(len(flipped))] = rng.randrange(256)
    return bytes(flipped)


def _insert(rng: random.Random, content: bytes) -> bytes:
    start, end = _span(rng, content)
    return content[:start] + rng.choice(TOKENS) + content[start if rng.random() < 0.5 else end :]


def _delete(rng: random.Random, content: bytes) -> bytes:
    start, end = _span(rng, content)
    return content[:start] + content[end:]


def _repeat(rng: random.Random, content: bytes) -> bytes:
    start, end = _span(rng, content)
    return content[:start] + content[start:end] * rng.choice([2, 3, 50, 3000]) + content[end:]


def _truncate(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _shuffle_lines(rng: random.Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    for _ in range(rng.choice([1, 2, 5])):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        if rng.random() < 0.5:
            lines[i], lines[j] = lines[j], lines[i]
        else:
            lines.insert(i, lines[j])
    return b"".join(lines)


def _splice(rng: random.Random, content: bytes) -> bytes:
    other = rng.choice(valid_files(rng.choice(READERS[:-1])))
    return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other) + 1) :]


def _span(rng: random.Random, content: bytes) -> tuple[int, int]:
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + rng.choice([1, 2, 4, 20, 100]))


_MUTATIONS: list[Callable[[random.Random, bytes], bytes]] = [
    _flip,
    _insert,
    _insert,
    _delete,
    _repeat,
    _truncate,
    _shuffle_lines,
    _splice,
]


def _mutate_zip_members(rng: random.Random, whole: bytes) -> bytes:
    """Mutate the members of a zip. The zip often stays valid, so that the reader reaches the members."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            for _ in range(rng.choice([1, 1, 1, 0, 2])):
                name = _mutate_bytes(rng, info.filename.encode()) if rng.random() < 0.2 else b""
                entry = zipfile.ZipInfo(name.decode(errors="replace")[:200] or info.filename)
                entry.compress_type = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
                with warnings.catch_warnings(action="ignore"):  # about duplicate names
                    new.writestr(entry, _mutate_bytes(rng, old.read(info)))
    return out.getvalue() if rng.random() < 0.8 else _mutate_bytes(rng, out.getvalue())


def _random_table(rng: random.Random) -> bytes:
    """Return a Parquet file with columns of random types under names that have a role."""
    names = ["text", "labels", "id", "split", "features", "subject", "from", "raw_email", "l1", "a"]
    columns = {
        name: rng.choice(_COLUMNS)
        for name in rng.sample(names, rng.randrange(1, 5)) + rng.choice([[], ["text"], ["labels"]])
    }
    if rng.random() < 0.6:
        columns["text"] = pa.array(["a", "b", None])
    if rng.random() < 0.6:
        columns["labels"] = pa.array([["x"], ["y", "x"], []])
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, compression=rng.choice(["none", "snappy", "zstd", "gzip"]))
    content = out.getvalue()
    return content if rng.random() < 0.7 else _mutate_bytes(rng, content)


_COLUMNS: list[Any] = [
    pa.array(["a", None, "b" * 1000]),
    pa.array([1, -5, 2**62]),
    pa.array([0.5, float("nan"), float("inf")]),
    pa.array([True, None, False]),
    pa.array([b"\xff", b"", None]),
    pa.array([["x"], [], None]),
    pa.array([[1], [2, None], []]),
    pa.array([[["x"]], [], None]),
    pa.array([{"a": 1.5}, {"a": None}, None]),
    pa.array([{"subject": "s", "text": "t"}, {}, None]),
    pa.array([[("a", 1.0)], [("a", 2.0), ("a", 3.0)], []], pa.map_(pa.string(), pa.float64())),
    pa.array([[("a", "x")], [], None], pa.map_(pa.string(), pa.string())),
    pa.array(["x", "y", "x"]).dictionary_encode(),
    pa.array([0, 1, 2], pa.timestamp("us")),
    pa.array([None, 1, 25], pa.decimal128(5, 2)),
    pa.array([None, None, None]),
    pa.array(["train", "test", "neither"]),
    pa.array([["x", None, "x"], ["\0"], [""]]),
    pa.array([1, 2, 3], pa.decimal128(10, 2)),
]


def _mutate_artifact(rng: random.Random, whole: bytes) -> bytes:
    """Mutate the manifest or the arrays of a saved model, and correct its checksums."""
    length = int.from_bytes(whole[:8], "little")
    described = json.loads(whole[8 : 8 + length])
    manifest = json.loads(described.pop("__metadata__")["manifest"])
    arrays = bytearray(whole[8 + length :])
    if rng.random() < 0.5 and arrays:
        for _ in range(rng.choice([1, 4, 40])):
            width = rng.choice([1, 4, 8])
            start = rng.randrange(max(len(arrays) - width, 1))
            arrays[start : start + width] = rng.choice([b"\xff", b"\0", b"\x7f", rng.randbytes(1)]) * width
        arrays = arrays[: len(whole) - 8 - length]
    if rng.random() < 0.6:
        for _ in range(rng.choice([1, 1, 3])):
            _mutate_json(rng, manifest)
    offset = 0
    entries = manifest.get("arrays")
    for entry in entries if isinstance(entries, list) else []:
        with suppress(KeyError, TypeError, ValueError):
            place = described[entry["name"]]
            size = place["data_offsets"][1] - place["data_offsets"][0]
            entry["sha256"] = sha256(arrays[offset : offset + size]).hexdigest()
            offset += size
            described[entry["name"]] |= {"dtype": entry["dtype"], "shape": entry["shape"]}
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    metadata = {"manifest": text, "sha256": sha256(text.encode()).hexdigest()}
    header = json.dumps({"__metadata__": metadata, **described}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + bytes(arrays)


_VALUES: list[Any] = [
    *(
        None,
        True,
        0,
        1,
        -1,
        2**31,
        2**63,
        10**30,
        0.5,
        -1e308,
        "",
        "x",
        "\0",
        "../../x",
        [],
        {},
        [[]],
        [1, "a"],
    ),
]


def _mutate_json(rng: random.Random, value: Any) -> None:
    """Replace or delete a random value inside a JSON value."""
    places = list(_places(value))
    holder, key = rng.choice(places)
    if rng.random() < 0.2:
        del holder[key]
    elif rng.random() < 0.4:
        other, other_key = rng.choice(places)
        with suppress(KeyError, IndexError):  # the other place can be deleted already
            holder[key] = json.loads(json.dumps(other[other_key]))
    else:
        holder[key] = rng.choice(_VALUES)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in keys:
        yield value, key
        yield from _places(value[key])


@cache
def valid_files(reader: str) -> list[bytes]:
    """Return small valid files for a reader."""
    return _VALID_FILES[reader]()


def _jsonl() -> list[bytes]:
    kinds: list[list[dict[str, Any]]] = [
        [{"text": "an invoice", "id": "1", "split": "train"}, {"text": "é 🦉\u2028", "split": "test"}],
        [{"text": "a parcel", "unknown_labels": ["z", "ü"], "split": "validation"}],
        [{"features": {"a": 1.5, "b": -2}}, {"features": {"c": 1e-9}}],
        [{"email": {"subject": "s", "from": "a@b.example", "text": "hello", "html": "<p>hello"}}],
        [{"raw_email": "U3ViamVjdDogaGkKCmhlbGxv"}, {"raw_email": ""}],
    ]
    choices = {"value": {"choices": ["x", "y"]}, "from_name": "topic", "type": "choices"}
    exports: list[Any] = [
        [{"text": "an invoice", "label": ["x"]}, {"text": None, "cats": {"x": 1, "y": None}, "meta": {}}],
        [{"id": 5, "data": {"text": "a"}, "annotations": [{"result": [choices]}, {"result": []}]}],
        [["an invoice", {"cats": {"x": 1.0}}], {"paragraphs": [{"raw": "a", "cats": []}]}],
        [{"text": "a", "accept": ["x"], "answer": "accept"}, {"text": "b", "accept": [], "answer": "ignore"}],
    ]
    return [
        *(
            "".join(json.dumps({**e, "labels": ["x", "y, z"]}) + "\n" for e in kind).encode()
            for kind in kinds
        ),
        *(json.dumps(export, indent=indent).encode() for export in exports for indent in (None, 1)),
        json.dumps(exports[1][0], indent=2).encode(),
    ]


LABEL_CELLS = b"""text;labels
one;['a', 'b']
two;["a", "b"]
three;[a, b]
four;{'a', "it's"}
five;array(['a' 'b'], dtype=object)
six;{"choices": ["a", {"b": null}]}
seven;<a><b>
eight;'a','b'
nine;\"""a, b"",c"
ten;{"a": 1, "b": 0.5}
"""


def _csv() -> list[bytes]:
    return [
        b'text,labels,id,split\n"an ""invoice""",x;y,1,train\nparcel,"x",2,test\n',
        b"subject;from;text;labels\r\nHello;a@b.example;hi;x|y\r\n",
        "text\tlabels\nübel\tx\n".encode("latin-1"),
        LABEL_CELLS,
        'sep=;\r\ntext;labels;labels;\r\n"übel";x;y;\r\nz;x\r\n'.encode("utf-16"),
        b"Unnamed: 0,f,ID,l1,l2\n0,1.5,7,1,-1\n1,2,9,0,?\n",
        b'f;labels\n"1,5";1\n-2,0;"0,2"\n',
    ]


def _svmlight() -> list[bytes]:
    return [
        b"# comment\n1,2 3:0.5 7:1e-3 # one\n2 1:1 3:-4\n 5:1\n",
        b"1 2199023255551:1\n0 1:1 1:2\n",
        b"2 9 3\n0, 2 qid:3 1:1\n+1,1.0 8:2\n",
        _zip({"d/train.svm": b"1 1:1\n", "d/test.svm": b"2 1:1\n"}),
    ]


def _fasttext() -> list[bytes]:
    lines = "__label__a __label__b-c some words\nno label\n__label__é text __label__d\n".encode()
    return [lines, lines.replace(b"\n", b"\r"), _zip({"a.txt": lines, "README.md": b"hello"})]


_ARFF = b"""% c
@relation 'r: -C 2'
@attribute a numeric
@attribute 'b, c' {red,'dark green'}
@attribute l1 {0,1}
@attribute l2 {0,1}
@data
1,red,0,1
{0 2.5, 3 1}
?,'dark green',1,0
"""
_HIERARCHICAL = (
    b"@RELATION r\n@ATTRIBUTE a NUMERIC\n@ATTRIBUTE class hierarchical 2,2/1/3,4/6\n@DATA\n1,2@4/6\n"
)
_WEKA = rb"""@relation 'r: -C -1'
@attribute words string
@attribute sent date 'yyyy'
@attribute bag relational
@attribute x numeric
@end bag
@attribute l1{0,1}
@attribute l2{a, 'b c', d}
@data
'a\n\u00fc \'b\'','2026','1\n2',1,'b c', {0.5}
'x','2026','1',?,? % comment
"""
_XML = (
    b'<labels xmlns="http://mulan.sourceforge.net/labels">'
    b'<label name="l1"><label name="l2"/></label></labels>'
)


def _arff() -> list[bytes]:
    members = {"d/x-train.arff": _ARFF, "d/x-test.arff": _ARFF}
    return [_ARFF, _HIERARCHICAL, _WEKA, _zip({"x.arff": _ARFF, "x.xml": _XML}), _zip(members)]


def _parquet() -> list[bytes]:
    tables = [
        {
            "text": ["some text", "more"] * 20,
            "labels": [["x", "y"], []] * 20,
            "split": ["train", "test"] * 20,
        },
        {"a": [0.5, -1.0] * 20, "x": [0, 1] * 20, "labels": [["x"], ["y"]] * 20},
        {"text": ["a"] * 4, "labels": [{"x": 1, "y": None}] * 4, "id": [1, None, 3, 4]},
    ]
    outs = [io.BytesIO() for _ in tables]
    for table, out in zip(tables, outs, strict=True):
        pq.write_table(pa.table(table), out)
    return [out.getvalue() for out in outs]


def _mime() -> list[bytes]:
    nested = b"".join(b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (n, n) for n in range(20))
    return [path.read_bytes() for path in sorted(MESSAGES.glob("*.eml"))] + [
        b"Subject: deep\n" + nested + b"\nx"
    ]


def _mbox() -> list[bytes]:
    separator = b"From me Thu Jan 01 00:00:00 1970\nX-Gmail-Labels: a,b\n"
    copy = b"From - \nX-Mozilla-Status: 0001\nMessage-ID: <1@b.example>\n\n>From now on\n"
    return [
        *(separator + b"\nbody\n\n" + separator + message + b"\n" for message in _mime()[:4]),
        separator + b"Message-ID: <1@b.example>\n\nFrom now on\n\n" + copy + copy,
    ]


def _eml_zip() -> list[bytes]:
    messages = _mime()
    with_id = b"Message-ID: <1@b.example>\nSubject: s\n\nbody\n"
    mailbox = b"From me Thu Jan 01 00:00:00 1970\nX-Gmail-Labels: a\n" + with_id
    layouts = {
        "a/cur/1.host:2,S": with_id,
        ".B.C/new/2": messages[0],
        "d/1": with_id,
        "Inbox": mailbox,
        "Inbox.msf": b"x",
        "Inbox.sbd/e": mailbox + b"\n" + mailbox,
        "f.mbox/Messages/1.emlx": b"%d\n" % len(with_id) + with_id + b"<?xml version='1.0'?>",
        "g\\1.eml": with_id,
        "h/1.msg": with_id,
    }
    return [
        _zip({f"top/a{i}/{i}.eml": message for i, message in enumerate(messages[:3])}),
        _zip(layouts),
        _zip({"Takeout/Mail/All.mbox": mailbox + b"\n" + mailbox}),
    ]


def _zip(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def _artifact() -> list[bytes]:
    texts = ["red rose", "blue sky", "red sky", "green grass", "green rose", "blue grass", "sky"] * 2
    sets: list[tuple[str, ...]] = [
        ("red",),
        ("blue",),
        ("red", "a"),
        ("green",),
        ("green", "a"),
        (),
        ("blue",),
    ]
    saved = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("mp_boost", "svm", "naive_bayes", "mlpp", "h_rls"):
            learner = catalog.LEARNER_PARAMETERS.validate_python(
                {"algorithm": name, **({"rounds": 3} if name == "mp_boost" else {})}
            )
            pipeline = Pipeline.from_parameters(
                catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
                learner,
                None if name == "svm" else catalog.own_decision(learner),
            ).fit(Examples("text", texts, sets * 2))
            save(pipeline, path := Path(folder) / name)
            saved.append(path.read_bytes())
    return saved


_VALID_FILES: dict[str, Callable[[], list[bytes]]] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "svmlight": _svmlight,
    "arff": _arff,
    "fasttext": _fasttext,
    "parquet": _parquet,
    "mbox": _mbox,
    "eml_zip": _eml_zip,
    "mime": _mime,
    "artifact": _artifact,
}
